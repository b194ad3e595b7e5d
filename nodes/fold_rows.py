"""Every kind of journal row, and what it changes in the picture of a run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

from checkpoints.runs import OPEN
from nodes.fold_drafts import draft, older_form, revision
from nodes.fold_progress import anew, learned, replaced
from nodes.fold_resumes import resumed, stretch_ended
from nodes.fold_settling import effect_after_failure, late, settled
from nodes.fold_spending import early, limit, model, reopened, reservation, wall
from nodes.fold_verdicts import answer_verdicts, decision, edit_dropped, promised, verdict
from nodes.inheritance import inherited
from nodes.state import InputFile
from nodes.step_run import Check, StandIn, StepRun, base_id
from nodes.taint import ANSWER
from nodes.versions import journal_version, read_head
from plans.decisions import ApprovalRequest
from plans.failure import Failure
from plans.plan import Plan
from plans.policy import read_policy

if TYPE_CHECKING:
    from nodes.fold import RunFold

Body = Mapping[str, Any]
Apply = Callable[["RunFold", str, int, Body], None]


def _run(self: RunFold, _: str, __: int, body: Body) -> None:
    self.version = journal_version(body)
    self.head = read_head(body["head"], self.versions)


def _version(self: RunFold, _: str, __: int, body: Body) -> None:
    self.version = journal_version(body)


def _policy(self: RunFold, _: str, __: int, body: Body) -> None:
    self.policies = (*self.policies, read_policy(body["policy"]))


def _inputs(self: RunFold, _: str, __: int, body: Body) -> None:
    """Input files have changed since they were last looked at."""
    self.input_changes += 1
    self.changed_inputs = tuple(body["files"])
    anew(self)
    if self.head is not None:
        files = {name: InputFile.model_validate(file) for name, file in body["files"].items()}
        self.head = self.head.model_copy(update={"files": {**self.head.files, **files}})
    if body.get("verdict"):
        verdict(self, "", 0, body)


def _plan(self: RunFold, _: str, __: int, body: Body) -> None:
    earlier, steps_before = self.plan, self.plan.steps if self.plan else ()
    before = {step.id: step for step in steps_before}
    form = self.versions.read(body)
    self.plan = Plan.model_validate(form.plan)
    self.contract, self.form = max(self.contract, form.written), form
    revision(self, earlier, self.plan, body)
    now = {step.id: step for step in self.plan.steps}
    changed = {step_id for step_id, step in before.items() if now.get(step_id) != step}
    self.since.update({step_id: self.plan.revision for step_id, step in now.items() if before.get(step_id) != step})
    self.authors.update({step_id: self.plan.source for step_id, step in now.items() if before.get(step_id) != step})
    self.heard = self.is_exposed  # before what is replaced is forgotten
    self.swayed = (self.swayed - changed - _answer_changed(earlier, self.plan)) | set(body.get("swayed", ()))
    self.drawn_up.append((self.plan, frozenset(self.swayed)))
    _forget_checks(self, changed)
    replaced(self, steps_before, changed)
    for unit in [unit for unit in self.steps if base_id(unit) in changed]:
        before_change = self.steps.pop(unit)
        self.undecided.pop(unit, None)
        if unit in now:
            attempt = before_change.attempt
            self.steps[unit] = StepRun(attempt=attempt, first_attempt=attempt + 1)
    for step_id in changed:
        self.expansions.pop(step_id, None)
        self.reached.pop(step_id, None)
    self.asked = {i: asked for i, asked in self.asked.items() if not outdated(asked, changed)}
    self.edits = {unit: args for unit, args in self.edits.items() if base_id(unit) not in changed}
    self.rewritten = None
    promised(self, body)
    answer_verdicts(self, changed, body)


def _answer_changed(before: Plan | None, plan: Plan) -> set[str]:
    return {ANSWER} if before is not None and plan.answer != before.answer else set()


def _forget_checks(self: RunFold, changed: set[str]) -> None:
    self.checked -= changed
    for step_id in changed:
        self.unsure.pop(step_id, None)


def outdated(asked: ApprovalRequest, changed: Container[str]) -> bool:
    """Whether a question does not arise any more once a revision has these steps changed or gone: what was asked about
    the plan is answered by any."""
    return asked.kind in ("question", "review") or base_id(asked.step_id) in changed


def _intent(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    run = self.run(unit)
    if run.status == "running":  # an effect that is sent again with its key opens a new attempt without a move
        run.acted = True
    else:
        run.moved("running")
    run.attempt, run.in_doubt, run.verdict, run.resend = attempt, dict(body), None, False
    run.failure = None
    having = self.effects.get(body["effect_key"], ())
    if unit not in having:
        self.effects[body["effect_key"]] = (*having, unit)


def _unknown(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    run = self.run(unit)
    run.attempt, run.verdict, run.acted = attempt, None, True
    run.failure = Failure.model_validate(body["failure"])
    self.undecided[unit] = None
    self.usage = self.usage.plus(attempts=1)


def _outcome(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    run = self.run(unit)
    if run.status == "pending":
        run.moved("running")
    run.attempt, run.verdict = attempt, None
    intent, run.in_doubt = run.in_doubt, None
    run.elapsed_s += body.get("elapsed_s", 0.0)
    failure, called = body.get("failure"), body.get("called", True)
    self.heard = self.heard or failure is not None
    self.usage = self.usage.plus(attempts=int(called), cached=int("kept_s" in body), steps=0 if failure else 1)
    if failure:
        run.failure = Failure.model_validate(failure)
        self.undecided[unit] = None
        if intent:
            effect_after_failure(self, unit, intent, happened=bool(body.get("happened")))
            run.acted = run.acted or bool(body.get("happened"))
        run.failed()
        return
    run.failure = None
    run.gave(body)
    learned(self, body)


def _refusal(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    run = self.run(unit)
    run.attempt, run.verdict = attempt, None
    run.failure = Failure.model_validate(body["failure"])
    self.undecided[unit] = None
    self.reached.pop(unit, None)
    run.failed()


def _reached(self: RunFold, step_id: str, _: int, body: Body) -> None:
    self.reached[step_id] = body["goal"]


def _skip(self: RunFold, unit: str, _: int, body: Body) -> None:
    run = self.run(unit)
    run.skipped_because, run.in_doubt = body["reason"], None
    run.unneeded = body.get("unneeded", body["reason"].startswith("its condition is false"))  # 0.1.0 has the words only
    run.moved("skipped")


def _check(self: RunFold, step_id: str, _: int, body: Body) -> None:
    """The plan was asked whether it still holds. That it does not is a verdict about the run as a whole, in one row
    with it; before an effect it is a refusal of its own."""
    check = self.run(step_id).check = Check.of_row(body)
    self.checked.update(check.of)
    if check.holds is None and check.by == "model":
        self.unsure[step_id] = check.reason
    if body.get("verdict"):
        self.premises_broken += 1
        verdict(self, "", 0, body)


def _fallback(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    run = self.run(unit)
    run.tool, run.tried = body["tool"], (*run.tried, body.get("alternative", body["tool"]))
    run.args, run.degraded, run.not_before = body.get("args"), body.get("degraded"), None
    run.stand_in = StandIn.of_row(body)
    if run.tool is not None:  # another tool has tries of its own
        run.first_attempt = attempt + 1
    run.moved("pending")
    self.queue = [verdict for verdict in self.queue if verdict.key != f"{unit}#{attempt}"]


def _expansion(self: RunFold, step_id: str, _: int, body: Body) -> None:
    self.expansions[step_id] = list(body["elements"])
    run = self.run(step_id)
    run.degraded = body.get("degraded")
    run.moved("running")


def _asked(self: RunFold, _: str, __: int, body: Body) -> None:
    request = ApprovalRequest.model_validate(body["request"])
    self.asked[request.approval_id] = request


def _withdrawn(self: RunFold, _: str, __: int, body: Body) -> None:
    for approval_id in body["approval_ids"]:
        self.asked.pop(approval_id, None)


def _finish(self: RunFold, _: str, __: int, body: Body) -> None:
    self.finished = dict(body)
    if body["status"] not in OPEN:
        self.asked = {}
    wall(self, "", 0, body)
    stretch_ended(self, body["status"])


def _paused(self: RunFold, _: str, __: int, body: Body) -> None:
    for approval_id in body.get("listed", ()):
        self.shown.setdefault(approval_id, body["at"])
    wall(self, "", 0, body)
    stretch_ended(self, "paused")


APPLY: dict[str, Apply] = {
    "run": _run,
    "version": _version,
    "policy": _policy,
    "inherited": inherited,
    "inputs": _inputs,
    "draft": draft,
    "older_form": older_form,
    "plan": _plan,
    "early": early,
    "intent": _intent,
    "outcome": _outcome,
    "unknown": _unknown,
    "settlement": settled,
    "late": late,
    "refusal": _refusal,
    "reached": _reached,
    "skip": _skip,
    "verdict": verdict,
    "check": _check,
    "fallback": _fallback,
    "expansion": _expansion,
    "reservation": reservation,
    "model": model,
    "asked": _asked,
    "withdrawn": _withdrawn,
    "decision": decision,
    "edit_dropped": edit_dropped,
    "elapsed": wall,
    "paused": _paused,
    "resumed": resumed,
    "finish": _finish,
    "limit": limit,
    "reopened": reopened,
}
"""Every kind of journal row and what it changes."""
