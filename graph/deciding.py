"""Takes people's decisions about a run: what waits, whether a decision fits it, and the first one wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from checkpoints.refusals import Word
from nodes.answers import check_decision, default_decision
from plans.decisions import ApprovalRequest, Decision
from plans.errors import ApprovalConflict

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.fold import RunFold
    from plans.principals import Principal


async def waiting(engine: Engine, picture: RunFold) -> dict[str, ApprovalRequest]:
    """What waits for a person; also what the table asks and the journal does not know, when a process died between
    the two: the same question arises again, and finds its answer."""
    pending = await engine.approvals.pending(picture.head.thread_id) if picture.head else []
    return {request.approval_id: request for request in pending} | picture.asked


async def take_decisions(engine: Engine, picture: RunFold, decisions: Mapping[str, Decision], by: Principal) -> None:
    """Check every decision, then store all of them or none; the first decision of a request wins.

    Raises ApprovalConflict.
    """
    asked = await waiting(engine, picture) if decisions else {}
    for approval_id, decision in decisions.items():
        request = asked.get(approval_id)
        if request is None:
            raise ApprovalConflict(f"nothing waits under the approval id {approval_id!r}; it may have been decided")
        check_decision(request, decision, engine.registry, can_plan=engine.planner is not None)
    words = [Word(each, decision, asked[each].args_sha256) for each, decision in decisions.items()]
    await engine.approvals.decide_all(words, by)


async def take_decision_of_step(
    engine: Engine, picture: RunFold, step_id: str, decision: Decision, by: Principal
) -> ApprovalRequest:
    """Store a decision about what this step asks, and give the question. Raises ApprovalConflict."""
    asked = await waiting(engine, picture)
    found = next((request for request in asked.values() if request.step_id == step_id), None)
    if found is None:
        others = ", ".join(sorted(request.step_id for request in asked.values())) or "none"
        thread_id = picture.head.thread_id if picture.head else "this thread"
        raise ApprovalConflict(f"step {step_id!r} of {thread_id} waits for nobody; steps that wait: {others}")
    await take_decisions(engine, picture, {found.approval_id: decision}, by)
    return found


def decided_for_all(picture: RunFold, approve: str) -> dict[str, Decision]:
    """What `approve` ("all" or "none") answers of that which waits. Whether an effect has happened is a question of
    fact: no rule about approvals answers it."""
    return {
        approval_id: decision
        for approval_id, request in picture.asked.items()
        if request.kind != "unknown_outcome" and (decision := default_decision(approve, request.kind))
    }
