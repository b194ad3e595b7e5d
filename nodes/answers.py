"""What a person's decision changes in a run. Decisions are read from the table they are stored in, never from state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nodes.admit import call_name
from nodes.clarified import answer_row, check_answer
from nodes.events import Event
from nodes.policing import terms_of
from nodes.recording import announce, outcome_body, record_refusal
from nodes.rejection import meaning
from nodes.replies import NOBODY_ASKED, TOO_LATE, check_plan, verdict_of
from nodes.step_run import base_id
from plans.decisions import ApprovalRequest, Approve, Decision, Edit, Reject, RequestKind, Respond, Vote
from plans.errors import MalformedDecision
from plans.failure import Failure
from plans.plan import Plan, PlanDraft
from plans.references import escape
from plans.values import JSON, dotted, unclean

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.registry import Registry

ALLOWED: Mapping[RequestKind, tuple[str, ...]] = {
    "risk": ("approve", "edit", "reject"),
    "unknown_outcome": ("approve", "reject", "respond"),
    "review": ("approve", "edit", "respond", "reject"),
    "question": ("respond", "edit", "reject"),
    "ticket": ("approve", "respond", "reject"),
    "clarification": ("respond", "reject"),
}
"""What may be answered to each kind of request. Of an unknown outcome: approve = it has not happened, run it;
respond = it has happened, with this result; reject = leave it and skip the step. Of a question about the plan:
respond = plan anew with these words, edit = this plan, reject = end. Of a review of a plan: approve = it runs as it is,
the others as before. Of a ticket: approve = try once more, respond and reject as before. Of what the user was asked:
respond = the answer, reject = there is none, and the step that has asked fails."""
ABOUT_THE_RUN = frozenset({"question", "ticket", "review"})
"""Kinds of request whose answer is a verdict, and whose rejection ends the run."""
ABOUT_A_PLAN = frozenset({"question", "review"})
"""Kinds of request that no step asks, and that may be answered by a whole plan."""


def check_decision(request: ApprovalRequest, decision: Decision, registry: Registry, *, can_plan: bool = True) -> None:
    """Raise MalformedDecision if this cannot be the answer to this request, saying what can. `can_plan` is whether
    there is a model that can do something with an instruction."""
    allowed = ALLOWED[request.kind]
    if decision.type not in allowed:
        raise MalformedDecision(
            f"{decision.type!r} is no answer to {request.tool} of step {request.step_id}; allowed: {', '.join(allowed)}"
        )
    if (found := next(unclean(decision.model_dump()), None)) is not None:
        raise MalformedDecision(f"{dotted(found[0])} of the decision {found[1]}")
    if isinstance(decision, Respond):
        _check_words(request, decision, allowed, can_plan=can_plan)
    if isinstance(decision, Edit):
        _check_edit(request, decision, registry)


def _check_words(request: ApprovalRequest, decision: Respond, allowed: Sequence[str], *, can_plan: bool) -> None:
    if request.kind == "clarification":
        check_answer(request, decision)
    if request.kind in ABOUT_THE_RUN and not (can_plan and decision.message.strip()):
        lacks = "the instruction is empty" if can_plan else "an instruction needs a model; set SURESTEP_MODEL"
        raise MalformedDecision(f"{lacks}. Else: {', '.join(word for word in allowed if word != 'respond')}")


def _check_edit(request: ApprovalRequest, decision: Edit, registry: Registry) -> None:
    """Raise MalformedDecision if a plan cannot run, or a step cannot be called with these arguments."""
    if request.kind in ABOUT_A_PLAN:
        check_plan(request, decision.args, registry)
        return
    if base_id(request.step_id) != request.step_id:
        raise MalformedDecision(f"{request.step_id} is one element of a for_each: approve or reject it")
    tool = registry.get(request.tool)
    if tool is None:
        raise MalformedDecision(
            f"{request.tool} of step {request.step_id} has no arguments to edit: approve or reject it"
        )
    if problems := tool.check_args(decision.args):
        said = "; ".join(f"{path}: {message}" if path else message for path, message in problems)
        raise MalformedDecision(f"{request.tool} does not take the edited arguments: {said}")
    if broken := tool.breaches(decision.args):
        raise MalformedDecision(f"the edited arguments are not allowed: {broken[0].sentence}")


async def take_decisions(session: Session) -> list[tuple[ApprovalRequest, Decision]]:
    """Apply every stored decision that this run has not applied yet. No answer in time is a no. A person's no to what
    a new revision has taken back a moment before is a no all the same, to the same call under whatever id."""
    taken = []
    known = await session.engine.approvals.of_run(session.head_run_id)
    if any(stored.status == "expired" and stored.decided_at is None for stored in known):
        await session.engine.approvals.expire(session.head_run_id)  # the silence is on record before it counts
    for stored in known:
        request = session.fold.asked.get(stored.request.approval_id)
        decision = TOO_LATE if stored.status == "expired" else stored.decision
        if request is not None and decision is not None:
            await apply_decision(session, request, decision, stored.decided_by or "nobody", stored.votes)
            taken.append((request, decision))
        elif isinstance(stored.decision, Reject) and _is_unheard(session, stored.request):
            by = stored.decided_by or "nobody"
            body = _row_of(session, stored.request, stored.decision, by, stored.votes)
            body["revision"] = session.fold.next_revision - 2  # what has come since was written without it
            await session.record("decision", stored.request.step_id, stored.request.attempt, body=body)
    return taken


def _is_unheard(session: Session, request: ApprovalRequest) -> bool:
    """Whether a question about an action was answered when this run did not ask it any more."""
    asks = request.approval_id in session.fold.asked or request.approval_id in session.fold.answered
    return request.kind == "risk" and not asks


async def apply_decision(
    session: Session, request: ApprovalRequest, decision: Decision, by: str, votes: Sequence[Vote] = ()
) -> None:
    """Write the decision into the journal and do what it says; nothing starts here, steps only may start again."""
    unit = request.step_id
    body = _row_of(session, request, decision, by, votes)
    carried = None
    if request.kind == "unknown_outcome":  # in the same row: a decision that settles nothing would leave it in doubt
        body["settlement"], carried = await _settlement(session, unit, decision, by)
    if request.kind == "clarification" and isinstance(decision, Respond):
        more, carried = await answer_row(session, request, decision)
        body |= more
    if request.kind in ABOUT_THE_RUN:
        body |= _about_the_run(session, request, decision)
    if request.approval_id not in session.fold.asked:
        return
    await session.record("decision", unit, request.attempt, body=body, artifact=carried)
    if isinstance(decision, Reject) and request.kind not in ("unknown_outcome", *ABOUT_THE_RUN):
        await _reject(session, request, decision)
    if request.kind not in ABOUT_A_PLAN:
        announce(session, unit, session.step(base_id(unit)))
        session.scheduling().unpark(unit)
    session.emit(Event(kind="approval", step_id=unit, tool=request.tool, status=decision.type, message=by))


def _row_of(
    session: Session, request: ApprovalRequest, decision: Decision, by: str, votes: Sequence[Vote]
) -> dict[str, Any]:
    """What the row of a decision says, whatever it is about."""
    args = decision.args if isinstance(decision, Edit) else request.args
    call = call_name(request.tool, args)
    body: dict[str, Any] = {
        "approval_id": request.approval_id,
        "kind": request.kind,
        "action": f"{request.step_id}|{call}",
        "call": call,
        "tool": request.tool,
        "decision": decision.model_dump(),
        "by": by,
        "voters": [{"name": vote.by.name, "roles": list(vote.by.roles)} for vote in votes],
        "terms": terms_of(request, decision),
    }
    if isinstance(decision, Reject) and request.kind == "risk":
        body["means"] = meaning(session.engine.registry.get(request.tool), request.tool, request.args)
    return body


def _about_the_run(session: Session, request: ApprovalRequest, decision: Decision) -> dict[str, Any]:
    """What the row says of an answer about the plan or a ticket: the verdict it comes to, in the same row, for one
    without the other would leave the run with nothing to go on by."""
    verdict = verdict_of(session, request, decision)
    body: dict[str, Any] = {"verdict": verdict.model_dump(), "instruction": request.approval_id} if verdict else {}
    about = {name: request.args[name] for name in ("goal", "step") if name in request.args}
    return body | ({"about": about} if isinstance(decision, Edit) else {})


async def _settlement(session: Session, unit: str, decision: Decision, by: str) -> tuple[dict[str, Any], Any]:
    """What a person's word makes of an effect in doubt, and the small artifact that belongs to it."""
    why = "decided by a person"
    if isinstance(decision, Reject):
        return {"how": "skip", "by": by, "why": decision.message or why}, None
    if isinstance(decision, Respond):
        output, carried = await outcome_body(
            session, unit, _value(decision.message), started=session.clock.monotonic(), by_person=True
        )
        return {**output, "how": "happened", "by": by, "why": why}, carried
    return {"how": "run", "by": by, "why": why}, None


def _value(text: str) -> JSON:
    """What a person has written: JSON where it is that, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if next(unclean(value), None) else value


async def _reject(session: Session, request: ApprovalRequest, decision: Reject) -> None:
    run = session.fold.run(request.step_id)
    why = f": {decision.message}" if decision.message else ""
    message = f"{_who_did_not(request, decision)} {request.tool} of step {request.step_id}{why}"
    code = "APPROVAL_EXPIRED" if decision is TOO_LATE else "REJECTED"
    failure = Failure(code=code, message=message, step_id=request.step_id, tool=request.tool, attempt=run.attempt + 1)
    await record_refusal(session, request.step_id, failure)


def _who_did_not(request: ApprovalRequest, decision: Reject) -> str:
    nobody = decision in (TOO_LATE, NOBODY_ASKED)
    if request.kind == "clarification":
        return "nobody has answered" if nobody else "the user does not answer"
    return "nobody has approved" if nobody else "a person has rejected"


def edited_draft(plan: Plan, edits: Mapping[str, Mapping[str, JSON]]) -> PlanDraft:
    """The plan with the edited calls, by step, in place; what a person wrote is literal, not a reference."""
    draft = plan.draft
    steps = tuple(
        step.model_copy(update={"tool": edit["tool"], "args": _literal(edit["args"])})
        if (edit := edits.get(step.id))
        else step
        for step in draft.steps
    )
    return draft.model_copy(update={"steps": steps})


def _literal(value: JSON) -> JSON:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value


def by_default(mode: str) -> str:
    """By which door an answer has come that nobody has given one by one."""
    return f"--approve {mode}"


def default_decision(mode: str, kind: RequestKind) -> Decision | None:
    """What is decided without asking, when the run was started with `--approve all` or `none`: of a question that is
    not whether something may be done, that nobody answers it."""
    if mode == "ask":
        return None
    if kind in ABOUT_THE_RUN - {"review"} or kind == "clarification":
        return Reject(message=f"this run asks nobody ({by_default(mode)})")
    return Approve() if mode == "all" else NOBODY_ASKED
