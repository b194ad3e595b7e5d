"""What has happened in a run, folded from its journal rows. Pure: the same rows always give the same picture.

A step run is keyed by its step's id; the children of a `for_each` step are `s3[0]`, `s3[1]`, …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodes.state import RunHead, Verdict
from plans.decisions import ApprovalRequest
from plans.failure import Failure
from plans.limits import Usage
from plans.moves import SETTLED, Status, move
from plans.plan import Plan, Step


@dataclass(frozen=True, slots=True)
class Output:
    """Where a step run's result is: never the result itself."""

    output_ref: str
    size: int
    sha256: str
    media_type: str


@dataclass(slots=True)
class StepRun:
    """The life of one step (or one child of a `for_each`) so far."""

    status: Status = "pending"
    attempt: int = 0
    first_attempt: int = 1
    tool: str | None = None
    args: dict[str, Any] | None = None
    output: Output | None = None
    failure: Failure | None = None
    verdict: Verdict | None = None
    not_before: float | None = None
    degraded: str | None = None
    tried: tuple[str, ...] = ()
    in_doubt: dict[str, Any] | None = None
    resend: bool = False
    exhausted: bool = False
    elapsed_s: float = 0.0
    skipped_because: str | None = None

    @property
    def tries(self) -> int:
        """Attempts since the step was last (re)defined."""
        return self.attempt - self.first_attempt + 1

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good: dependents wait for it no longer."""
        return self.status in SETTLED or (self.status == "failed" and self.exhausted)

    def moved(self, status: Status) -> None:
        """Make a legal move."""
        self.status = move(self.status, status)


def base_id(unit: str) -> str:
    """`s3` for `s3[0]`, and for `s3` itself."""
    return unit.partition("[")[0]


@dataclass(slots=True)
class RunFold:
    """The picture of one run."""

    head: RunHead | None = None
    plan: Plan | None = None
    steps: dict[str, StepRun] = field(default_factory=dict)
    expansions: dict[str, list[str]] = field(default_factory=dict)
    queue: list[Verdict] = field(default_factory=list)
    undecided: dict[str, None] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    asked: dict[str, ApprovalRequest] = field(default_factory=dict)
    effects: dict[str, str] = field(default_factory=dict)
    local_replans: Counter[str] = field(default_factory=Counter)
    global_replans: int = 0
    instructions: list[str] = field(default_factory=list)
    usage: Usage = Usage()
    finished: dict[str, Any] | None = None

    def run(self, unit: str) -> StepRun:
        """The step run of this id, made pending if nothing is known of it."""
        return self.steps.setdefault(unit, StepRun())

    def status(self, step_id: str) -> Status:
        """The status of a step; pending if nothing is known of it."""
        known = self.steps.get(step_id)
        return known.status if known else "pending"

    def is_over(self, unit: str) -> bool:
        """Whether this step run has ended for good."""
        run = self.steps.get(unit)
        return run is not None and run.is_over

    def kept(self) -> list[Step]:
        """Steps that a new revision must keep byte for byte: settled, running or in doubt."""
        steps = self.plan.steps if self.plan else ()
        return [step for step in steps if self.status(step.id) in SETTLED or self.status(step.id) == "running"]

    def counts(self) -> dict[str, int]:
        """How many steps of the current plan have each status."""
        return dict(Counter(self.status(step.id) for step in self.plan.steps)) if self.plan else {}

    def apply(self, kind: str, step_id: str | None, attempt: int, body: Mapping[str, Any]) -> None:
        """Take one journal row in. Unknown kinds are refused: a picture with holes would be wrong."""
        APPLY[kind](self, step_id or "", attempt, body)


def fold(rows: Iterable[tuple[str, str | None, int, Mapping[str, Any]]]) -> RunFold:
    """The picture that a run's rows give, in their order."""
    picture = RunFold()
    for kind, step_id, attempt, body in rows:
        picture.apply(kind, step_id, attempt, body)
    return picture


def _run(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.head = RunHead.model_validate(body["head"])


def _plan(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    before = {step.id: step for step in self.plan.steps} if self.plan else {}
    self.plan = Plan.model_validate(body["plan"])
    now = {step.id: step for step in self.plan.steps}
    changed = {step_id for step_id, step in before.items() if now.get(step_id) != step}
    for unit in [unit for unit in self.steps if base_id(unit) in changed]:
        before_change = self.steps.pop(unit)
        self.undecided.pop(unit, None)
        if unit in now:
            attempt = before_change.attempt
            self.steps[unit] = StepRun(attempt=attempt, first_attempt=attempt + 1)
    for step_id in changed:
        self.expansions.pop(step_id, None)
    answered = set(body.get("answers", ()))
    self.queue = [v for v in self.queue if v.key not in answered and base_id(v.step_id) not in changed]
    if body["purpose"] == "global":
        self.queue = [verdict for verdict in self.queue if verdict.verdict != "global_replan"]


def _intent(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    if run.status != "running":  # an effect that is sent again with its key opens a new attempt without a move
        run.moved("running")
    run.attempt, run.in_doubt, run.verdict, run.resend = attempt, dict(body), None, False
    run.failure = None
    self.effects[body["effect_key"]] = unit


def _unknown(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    run.attempt, run.verdict = attempt, None
    run.failure = Failure.model_validate(body["failure"])
    self.undecided[unit] = None
    self.usage = self.usage.plus(attempts=1)


def _settlement(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    run.failure = run.verdict = None
    self.undecided.pop(unit, None)
    if body["how"] == "run":
        run.resend = True
        return
    run.in_doubt = None
    if body["how"] == "skip":
        run.skipped_because = body["why"]
        run.moved("skipped")
        return
    run.output = Output(**body["output"])
    run.moved("done")
    self.usage = self.usage.plus(steps=1)


def _outcome(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    if run.status == "pending":
        run.moved("running")
    run.attempt, run.verdict = attempt, None
    intent, run.in_doubt = run.in_doubt, None
    run.elapsed_s += body.get("elapsed_s", 0.0)
    self.usage = self.usage.plus(attempts=1)
    if failure := body.get("failure"):
        run.failure = Failure.model_validate(failure)
        self.undecided[unit] = None
        if intent:  # a definite failure of an effect: it has not happened
            self.effects.pop(intent["effect_key"], None)
        run.moved("failed")
        return
    run.output, run.failure = Output(**body["output"]), None
    run.degraded = body.get("degraded")
    run.moved("done")
    self.usage = self.usage.plus(steps=1)


def _refusal(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    run.attempt, run.verdict = attempt, None
    run.failure = Failure.model_validate(body["failure"])
    self.undecided[unit] = None
    run.moved("failed")


def _skip(self: RunFold, unit: str, _: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    run.skipped_because, run.in_doubt = body["reason"], None
    run.moved("skipped")


def _verdict(self: RunFold, unit: str, _: int, body: Mapping[str, Any]) -> None:
    verdict = Verdict.model_validate(body["verdict"])
    _count_replans(self, verdict)
    if verdict.code == "NEW_INSTRUCTION":
        self.instructions.append(verdict.reason)
        self.queue.append(verdict)
        return
    run = self.run(unit)
    run.verdict = verdict
    self.undecided.pop(unit, None)
    if verdict.verdict == "retry":
        run.not_before = verdict.not_before
        if run.status == "running":
            run.resend = True
        else:
            run.moved("pending")
    elif verdict.verdict in ("next", "finish"):
        run.exhausted = True
    if verdict.verdict not in ("next", "retry", "ask"):
        self.queue.append(verdict)


def _count_replans(self: RunFold, verdict: Verdict) -> None:
    if verdict.verdict == "local_replan":
        self.local_replans[base_id(verdict.step_id)] += 1
        self.usage = self.usage.plus(local_replans=1)
    if verdict.verdict == "global_replan" and all(queued.verdict != "global_replan" for queued in self.queue):
        self.global_replans += 1
        self.usage = self.usage.plus(global_replans=1)


def _fallback(self: RunFold, unit: str, attempt: int, body: Mapping[str, Any]) -> None:
    run = self.run(unit)
    run.tool, run.tried = body["tool"], (*run.tried, body["tool"])
    run.args, run.degraded = body.get("args"), body["degraded"]
    run.first_attempt, run.not_before = attempt + 1, None
    run.moved("pending")
    self.queue = [verdict for verdict in self.queue if verdict.key != f"{unit}#{attempt}"]


def _expansion(self: RunFold, step_id: str, _: int, body: Mapping[str, Any]) -> None:
    self.expansions[step_id] = list(body["elements"])
    self.run(step_id).moved("running")


def _model(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.models[body["key"]] = dict(body)
    spent = {name: body.get(name, 0) for name in ("prompt_tokens", "completion_tokens", "cost")}
    self.usage = self.usage.plus(model_calls=1, **spent)


def _decision(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.decisions[body["action"]] = dict(body)
    self.asked.pop(body["approval_id"], None)
    if body["decision"]["type"] == "reject" and body["kind"] == "risk":
        self.rejected.add(body["call"])


def _asked(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    request = ApprovalRequest.model_validate(body["request"])
    self.asked[request.approval_id] = request


def _withdrawn(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    for approval_id in body["approval_ids"]:
        self.asked.pop(approval_id, None)


def _finish(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.finished = dict(body)
    self.usage = self.usage.model_copy(update={"wall_s": body["wall_s"]})


def _paused(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.usage = self.usage.model_copy(update={"wall_s": body["wall_s"]})


def _reopened(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    self.finished = None
    for run in self.steps.values():
        if run.exhausted and run.failure and run.failure.class_ == "limit":
            run.exhausted, run.failure, run.verdict = False, None, None
            run.moved("pending")
    self.queue = [verdict for verdict in self.queue if verdict.verdict != "finish"]
    if self.head and (limits := body.get("limits")):
        self.head = self.head.model_copy(update={"limits": self.head.limits.model_validate(limits)})


Apply = Callable[[RunFold, str, int, Mapping[str, Any]], None]
APPLY: dict[str, Apply] = {
    "run": _run,
    "plan": _plan,
    "intent": _intent,
    "outcome": _outcome,
    "unknown": _unknown,
    "settlement": _settlement,
    "refusal": _refusal,
    "skip": _skip,
    "verdict": _verdict,
    "fallback": _fallback,
    "expansion": _expansion,
    "model": _model,
    "asked": _asked,
    "withdrawn": _withdrawn,
    "decision": _decision,
    "paused": _paused,
    "finish": _finish,
    "reopened": _reopened,
}
"""Every kind of journal row and what it changes."""
