"""Takes people's decisions about a run: what waits, whether a decision fits it, and the first one wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from checkpoints.refusals import Word
from nodes.answers import by_default, check_decision, default_decision
from nodes.hitl import read_decision
from nodes.sealing import sealed_decision
from plans.decisions import ApprovalRequest, Approve, Decision, Edit, Reject, Respond
from plans.errors import MalformedDecision, UnknownApproval

if TYPE_CHECKING:
    from checkpoints.approvals import Approval
    from nodes.engine import Engine
    from nodes.fold import RunFold
    from plans.principals import Principal


GivenDecision = Decision | Mapping[str, Any]
"""A decision, or the same as clients write it: `{"type": "approve", "args_sha256": …}`."""


async def waiting(engine: Engine, picture: RunFold) -> dict[str, ApprovalRequest]:
    """What waits for a person; also what the table asks and the journal does not know, when a process died between
    the two: the same question arises again, and finds its answer."""
    pending = await engine.approvals.pending(picture.head.thread_id) if picture.head else []
    return {request.approval_id: request for request in pending} | picture.asked


async def take_decisions(
    engine: Engine, picture: RunFold, decisions: Mapping[str, GivenDecision], by: Principal, via: str = "library"
) -> list[Approval]:
    """Check every decision, then store all of them or none; gives how the questions stand. Raises ApprovalConflict."""
    if not decisions:
        return []
    asked, thread_id = await waiting(engine, picture), picture.head.thread_id if picture.head else None
    if unknown := [Word(each, _any_word(given)) for each, given in decisions.items() if each not in asked]:
        raise await engine.approvals.refused(unknown, by, thread_id)
    read = {each: _read(asked[each], given) for each, given in decisions.items()}
    for approval_id, (decision, _) in read.items():
        check_decision(asked[approval_id], decision, engine.registry, can_plan=engine.planner is not None)
    sealed = {each: await sealed_decision(engine, asked[each], decision) for each, (decision, _) in read.items()}
    words = [Word(each, decision, read[each][1]) for each, decision in sealed.items()]
    asks_nobody = via == by_default("none")
    return await engine.approvals.decide_all(words, by, via=via, thread_id=thread_id, refuses=asks_nobody)


def _read(request: ApprovalRequest, given: GivenDecision) -> tuple[Decision, str]:
    """A decision, and the hash of the arguments it is about: those it names, else those that wait. Raises
    ApprovalConflict."""
    if isinstance(given, Approve | Reject | Edit | Respond):
        return given, request.args_sha256
    said = read_decision(request, given)
    if said.decision is None:
        raise said.why_not or MalformedDecision(f"no decision about {request.tool} of step {request.step_id}")
    if given.get("approval_id", request.approval_id) != request.approval_id:
        raise MalformedDecision(f"the decision under {request.approval_id} names another approval")
    return said.decision, said.args_sha256 or request.args_sha256


def _any_word(given: GivenDecision) -> Decision:
    """What is said about a question that is not there; of one in another form it matters only that it is said."""
    return given if isinstance(given, Approve | Reject | Edit | Respond) else Reject()


async def take_decision_of_step(
    engine: Engine, picture: RunFold, step_id: str, decision: GivenDecision, by: Principal, via: str = "library"
) -> Approval:
    """Store a decision about what this step asks, and give how that stands. Raises ApprovalConflict."""
    asked = await waiting(engine, picture)
    found = [request.approval_id for request in asked.values() if request.step_id == step_id]
    if not found and picture.head:  # it may have been answered; then it is told by whom
        stored = await engine.approvals.of_run(picture.head.run_id)
        found = [each.request.approval_id for each in stored if each.request.step_id == step_id][-1:]
    if not found:
        others = ", ".join(sorted(request.step_id for request in asked.values())) or "none"
        thread_id = picture.head.thread_id if picture.head else "this thread"
        raise UnknownApproval(f"step {step_id!r} of {thread_id} waits for nobody; steps that wait: {others}")
    return (await take_decisions(engine, picture, {found[0]: decision}, by, via))[0]


def decided_for_all(picture: RunFold, approve: str) -> dict[str, Decision]:
    """What `approve` ("all" or "none") answers of that which waits. Whether an effect has happened is a question of
    fact: no rule about approvals answers it."""
    return {
        approval_id: decision
        for approval_id, request in picture.asked.items()
        if request.kind != "unknown_outcome" and (decision := default_decision(approve, request.kind))
    }
