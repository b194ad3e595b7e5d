"""dispatch: is there something to run, somebody to ask, or nothing left?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.answers import take_decisions
from nodes.state import AgentState

if TYPE_CHECKING:
    from nodes.session import Session


async def dispatch(state: AgentState, session: Session) -> dict[str, Any]:
    """Run while anything can; ask a person only when nothing runs and nothing is ready; else finish."""
    if session.fold.asked:
        await take_decisions(session)
    if session.decision_needed or not session.scheduling().idle:
        return {"edge": "run", "status": "running"}
    if session.fold.asked:
        await session.record("paused", body={"wall_s": round(session.elapsed_s(), 3)})
        await session.set_status("paused")
        return {"edge": "human_interrupt", "status": "paused"}
    return {"edge": "finish"}
