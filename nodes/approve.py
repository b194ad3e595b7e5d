"""approve: the only place that interrupts. No effects before the interrupt, and one interrupt per run of the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from nodes.acting import principal_of
from nodes.answers import ALLOWED, check_decision, read_answers, take_decisions
from nodes.events import Event
from nodes.state import AgentState
from plans.decisions import ApprovalRequest, Decision, Reject
from plans.errors import ApprovalConflict

if TYPE_CHECKING:
    from nodes.session import Session


def ask(state: AgentState) -> Any:
    """Interrupt with every pending request, as state lists them; gives the answer on resume.

    The list comes from state alone: it must be the same when the node runs again, whatever was decided meanwhile.
    """
    return interrupt(inbox_request(state.get("approvals") or []))


def inbox_request(requests: Sequence[ApprovalRequest]) -> dict[str, Any]:
    """The requests in the shape that agent inboxes read (LangChain's HITL request), with what binds each of them."""
    return {
        "action_requests": [
            {
                "name": request.tool,
                "args": request.args,
                "description": f"{request.step_id}: {request.reason}",
                "approval_id": request.approval_id,
                "args_sha256": request.args_sha256,
                "step_id": request.step_id,
                "risk": request.risk,
                "reason": request.reason,
                "kind": request.kind,
            }
            for request in requests
        ],
        "review_configs": [
            {"action_name": request.tool, "allowed_decisions": list(ALLOWED[request.kind])} for request in requests
        ],
    }


async def approve(state: AgentState, session: Session, answer: Any) -> dict[str, Any]:
    """Take the decisions. Anything but an exact decision stays pending; the first decision of each request wins."""
    requests = state.get("approvals") or []
    for request, decision in zip(requests, read_answers(requests, answer), strict=True):
        if decision is not None:
            await _store(session, request, decision)
    taken = await take_decisions(session)
    if session.fold.is_edited:
        return {"edge": "edited", "status": "running"}
    rejected = any(isinstance(decision, Reject) for _, decision in taken)
    return {"edge": "rejected" if rejected else "approved", "status": "running"}


async def _store(session: Session, request: ApprovalRequest, decision: Decision) -> None:
    try:
        engine = session.engine
        check_decision(request, decision, engine.registry, can_plan=engine.planner is not None)
        by = principal_of(engine, session.config)
        await engine.approvals.decide(request.approval_id, decision, by, via="graph", args_sha256=request.args_sha256)
    except ApprovalConflict as conflict:
        session.emit(Event(kind="notice", step_id=request.step_id, message=str(conflict)))
