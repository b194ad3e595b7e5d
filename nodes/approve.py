"""approve: the only place that interrupts. No effects before the interrupt, and one interrupt per run of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from nodes.acting import principal_of
from nodes.answers import check_decision, take_decisions
from nodes.beginning import thread_of
from nodes.events import Event
from nodes.hitl import Said, inbox_request, read_answer, sent_at
from nodes.sealing import sealed_decision
from nodes.state import AgentState
from plans.decisions import ApprovalRequest, Decision, Reject
from plans.errors import ApprovalConflict, ForeignDecision

if TYPE_CHECKING:
    from nodes.session import Session


def ask(state: AgentState) -> Any:
    """Interrupt with every pending request, as state lists them; gives the answer on resume.

    The list comes from state alone: it must be the same when the node runs again, whatever was decided meanwhile.
    """
    return interrupt(inbox_request(state.get("approvals") or [], state.get("refused") or []))


async def approve(state: AgentState, session: Session, answer: Any) -> dict[str, Any]:
    """Take the decisions. Anything but an exact decision stays pending; the first decision of each request wins.

    What was not taken, and why, is told on the stream, in the next interrupt, and in the run's output.
    """
    said = read_answer(state.get("approvals") or [], answer, lambda request: _too_early(session, request))
    refused = [told for each in said if (told := await _store(session, each)) is not None]
    taken = await take_decisions(session)
    edge = "rejected" if any(isinstance(decision, Reject) for _, decision in taken) else "approved"
    return {"edge": "edited" if session.fold.is_edited else edge, "status": "running", "refused": refused}


def _too_early(session: Session, request: ApprovalRequest) -> bool:
    """Whether the answer was sent before the request was shown: a double click answers nothing that comes next."""
    sent, shown = sent_at(session.config or {}), session.fold.shown.get(request.approval_id)
    return sent is not None and shown is not None and sent < shown


async def _store(session: Session, said: Said) -> dict[str, str] | None:
    """Store a decision; what is told of one that is not taken."""
    try:
        if said.why_not is not None:
            raise said.why_not
        if said.request is not None and said.decision is not None:
            await _decide(session, said.request, said.decision, said.args_sha256 or said.request.args_sha256)
    except ApprovalConflict as conflict:
        request = said.request
        about = {"approval_id": request.approval_id, "step_id": request.step_id} if request else {}
        session.emit(Event(kind="notice", step_id=about.get("step_id"), message=str(conflict)))
        return {**about, "code": conflict.code, "message": str(conflict)}
    return None


async def _decide(session: Session, request: ApprovalRequest, decision: Decision, seen: str) -> None:
    engine, here = session.engine, thread_of(session.config or RunnableConfig())
    if here not in (None, session.head.thread_id):
        raise ForeignDecision(
            f"this thread is a copy: its run goes on on thread {session.head.thread_id}, and is answered there. "
            "A run of its own is made by `surestep fork`"
        )
    check_decision(request, decision, engine.registry, can_plan=engine.planner is not None)
    by, sealed = principal_of(engine, session.config), await sealed_decision(engine, request, decision)
    await engine.approvals.decide(request.approval_id, sealed, by, via="graph", args_sha256=seen)
