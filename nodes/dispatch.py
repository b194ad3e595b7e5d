"""dispatch: is there something to run, somebody to ask, or nothing left?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoints.crash_points import reached
from nodes.answers import take_decisions
from nodes.chat import asking
from nodes.clarify import plan_with_answers
from nodes.instructions import take_instructions
from nodes.review import ask_review
from nodes.state import AgentState
from nodes.validate import revise

if TYPE_CHECKING:
    from nodes.session import Session


async def dispatch(state: AgentState, session: Session) -> dict[str, Any]:
    """Run while anything can; ask a person only when nothing runs and nothing is ready; else finish."""
    while True:
        await _take_what_people_say(session)
        if session.cancelled:
            return {"edge": "finish"}
        await ask_review(session)
        if session.decision_needed or (session.fold.plan is not None and not session.scheduling().idle):
            await session.stands("running")
            return {"edge": "run", "status": "running"}
        if not session.fold.asked:
            return {"edge": "run" if await plan_with_answers(session) else "finish"}
        if await _paused(session):
            return {"edge": "human_interrupt", "status": "paused", **asking(session, state)}


async def _take_what_people_say(session: Session) -> None:
    await take_instructions(session)
    if session.fold.asked:
        await take_decisions(session)
    if session.fold.is_edited:  # decided while other steps ran, or before the process died
        await revise(session)


async def _paused(session: Session) -> bool:
    """Let the run go, unless one of its questions was answered in the meantime: then it goes on by itself."""
    asked = list(session.fold.asked)
    await session.late.stop()
    if list(session.fold.asked) == asked and await _let_go(session):
        return True
    session.late.listen()
    return False


async def _let_go(session: Session) -> bool:
    at = session.clock.wall()
    listed = {"listed": list(session.fold.asked), "at": at}
    await session.record("paused", body={"wall_s": round(session.elapsed_s(), 3), **listed}, wait=True)
    await session.stands("paused")
    reached("pause.recorded")
    if await session.let_go(unless_decided=list(session.fold.asked)):
        return True
    return not await take_decisions(session) and await session.let_go()
