"""What a person's answer to a question about the plan, or to a ticket, makes of the run: the next verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodes.given import given_draft, rejected
from nodes.state import Verdict
from plans.decisions import ApprovalRequest, Approve, Decision, Edit, Reject, Respond
from plans.errors import MalformedDecision, PlanRejected
from plans.faults import errors_among
from plans.limits import Limits
from plans.lint import lint
from plans.plan import PlanDraft

if TYPE_CHECKING:
    from nodes.session import Session
    from plans.values import JSON
    from tools.registry import Registry

TOO_LATE = Reject(message="nobody answered in time")
"""What an approval that has expired comes to."""
NOBODY_ASKED = Reject(message="this run asks nobody (--approve none)")
"""What is decided without a person in a run that was told to ask none."""


def check_plan(request: ApprovalRequest, plan: dict[str, JSON], registry: Registry) -> None:
    """Raise MalformedDecision with every fault of a plan that a person has written in answer to a question."""
    try:
        draft = written_draft(request.args, plan)
        if errors := errors_among(lint(draft, registry, inputs=None, limits=Limits())):
            raise rejected(errors)
    except PlanRejected as error:
        raise MalformedDecision(str(error)) from None


def written_draft(asked: Mapping[str, JSON], plan: dict[str, JSON]) -> PlanDraft:
    """The plan that a person has written; one without a goal of its own is for the goal in question. Raises
    PlanRejected."""
    return given_draft({"goal": asked.get("goal"), **plan})


def verdict_of(session: Session, request: ApprovalRequest, decision: Decision) -> Verdict | None:
    """What the answer leads to: a plan written anew with the person's words, one more attempt, or the end. None for a
    plan that the person has written, and for one that may run as it is."""
    match decision:
        case Respond(message=said):
            number = len(session.fold.instructions) + 1
            step_id = _about(request) or ""
            return Verdict(
                verdict="global_replan",
                step_id=step_id,
                attempt=-number,
                code="NEW_INSTRUCTION",
                reason=said,
                counted=False,
            )
        case Approve() if request.kind == "ticket":
            why = f"a person has allowed one more attempt ({request.args['ticket']})"
            return _on_step(session, request, why)
        case Reject(message=why):
            return _end(request, why, nobody=decision in (TOO_LATE, NOBODY_ASKED))
        case Edit():
            return None
        case Approve() if request.kind == "review":
            return None
    return _end(request, "a yes answers no question")  # it was stored by somebody who does not check


def _about(request: ApprovalRequest) -> str | None:
    """The step whose failure is in question, if one is."""
    if request.kind == "review":
        return None
    step = request.args.get("step") if request.kind == "question" else request.step_id
    return str(step) if step else None


def _on_step(session: Session, request: ApprovalRequest, why: str) -> Verdict:
    failure = session.fold.run(request.step_id).failure
    code = failure.code if failure is not None else "TOOL_ERROR"
    return Verdict(verdict="retry", step_id=request.step_id, attempt=request.attempt, code=code, reason=why)


def _end(request: ApprovalRequest, why: str, *, nobody: bool = False) -> Verdict:
    """The honest end: of a plan that nobody could make, or was not to run, or of a ticket that somebody has closed."""
    if request.kind == "question":
        code, reason = "PLAN_INVALID", request.reason
    elif request.kind == "review":
        code = "APPROVAL_EXPIRED" if nobody else "REJECTED"
        reason = "nobody has looked at the plan" if nobody else "a person has looked at the plan and rejected it"
    else:
        code, reason = "REJECTED", f"ticket {request.args['ticket']} was closed without a repair"
    return Verdict(
        verdict="finish",
        step_id="",
        attempt=-request.attempt,
        code=code,
        reason=f"{reason}; {why}" if why else reason,
        counted=False,
    )
