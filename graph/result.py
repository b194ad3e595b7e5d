"""What a caller gets of a run, in the shape that stays stable."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from graph.revisions import Revision
from nodes.state import Forked, TemplateUse
from nodes.step_run import Check
from plans.decisions import ApprovalRequest
from plans.failure import Failure
from plans.faults import Fault
from plans.limits import Usage
from plans.plan import Plan

ResultStatus = Literal["done", "paused", "failed", "cancelled", "limited", "running"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LateEnd(_Frozen):
    """How an attempt ended `late_s` seconds after it had been given up: `code` None means well, with the result under
    `output_ref`. `settled` says that this was the word on an effect in doubt."""

    attempt: int
    late_s: float
    code: str | None = None
    output_ref: str | None = None
    settled: bool = False


class StepResult(_Frozen):
    """One step of the current plan and where it stands. `degraded` says what its result was made by or from, where
    that is not what was asked for; `mock` that it is made up, or made from what is; `kept_s` how old it was when it
    was taken from the cache; `check` what came out when the plan was asked there whether it still holds. A `for_each`
    step counts the attempts and adds up the seconds of its `children`. `tainted_by` names the step runs, inputs and,
    as "replan", changes of the plan through which a stranger may have had a say in its result. One that is `in_doubt`
    has begun an effect of which nobody knows whether it has happened."""

    id: str
    tool: str | None
    status: str
    attempts: int
    in_doubt: bool = False
    output_ref: str | None = None
    failure: Failure | None = None
    degraded: str | None = None
    mock: bool = False
    kept_s: float | None = None
    skipped_because: str | None = None
    elapsed_s: float = 0.0
    title: str | None = None
    late: tuple[LateEnd, ...] = ()
    check: Check | None = None
    tainted_by: tuple[str, ...] = ()
    children: tuple[StepResult, ...] = ()


class Missing(_Frozen):
    """A step, or one element of it (`s3[1]`), of which an ended run has no result: what it was to do, and why it has
    not."""

    step: str
    what: str
    why: str


class Tainted(_Frozen):
    """A line of the answer, as the plan has it, that rests on text which a stranger may have written, and through which
    step runs, inputs or ("replan") changes of the plan."""

    line: str
    tainted_by: tuple[str, ...]


class LeftOut(_Frozen):
    """A line of the plan's answer that is not in the answer, as it is written, and which reference found nothing."""

    line: str
    why: str


class Resumed(_Frozen):
    """One time that a run was gone on with: why (`trigger`), what was found (`result`, of what in `about`), when (wall
    time in seconds), and how this stretch of the run ended, if it has. `nodes/fold_resumes.py` has the words."""

    trigger: str
    result: str
    about: tuple[str, ...] = ()
    at: float | None = None
    ended: str | None = None


class RunResult(_Frozen):
    """How a run ended, or where it stands. `plan` is the current revision in full, `made_from` the template that it was
    made of, if it was; `archived` says where the run's files are, once it is in the archive; `raise_limits` values of
    the limits that have stopped it with which it would go on. `missing` says of an ended run which results it is
    without, though its plan wanted them, and `left_out` which lines of the plan's answer found nothing. `revisions` are
    those after the first, each with what it has changed about the one before."""

    run_id: str
    thread_id: str
    status: ResultStatus
    goal: str
    answer: str | None = None
    report_ref: str | None = None
    plan: Plan | None = None
    made_from: TemplateUse | None = None
    steps: tuple[StepResult, ...] = ()
    approvals: tuple[ApprovalRequest, ...] = ()
    failures: tuple[Failure, ...] = ()
    usage: Usage = Usage()
    raise_limits: dict[str, float | int] = {}
    resumes: tuple[Resumed, ...] = ()
    missing: tuple[Missing, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tainted: tuple[Tainted, ...] = ()
    revisions: tuple[Revision, ...] = ()
    archived: str | None = None
    forked: Forked | None = None

    _EXIT_CODES: ClassVar[dict[str, int]] = {
        "done": 0, "failed": 1, "paused": 3, "limited": 4, "cancelled": 5, "running": 6,
    }  # fmt: skip
    _CONFIGURATION: ClassVar[frozenset[str]] = frozenset({"MODEL_NOT_CONFIGURED", "INVALID_INPUT"})

    @property
    def partial(self) -> bool:
        """Whether the run is done without some of its steps: a success that says what it lacks."""
        return self.status == "done" and bool(self.missing)

    @property
    def exit_code(self) -> int:
        """What a command that ran this ends with; a goal that nothing can plan is a matter of configuration (2)."""
        if self.status == "failed" and self.plan is None and self.failures:
            return 2 if self.failures[0].code in self._CONFIGURATION else 1
        return self._EXIT_CODES[self.status]

    def as_json(self) -> dict[str, Any]:
        """The object that `run --json` prints; a fork's also names what it was made of, and a step in doubt says so."""
        archived = {"archived": self.archived} if self.archived else {}
        forked = {"forked": self.forked.model_dump(include={"run_id", "thread_id", "step_id"})} if self.forked else {}
        revised = {"revisions": [each.model_dump(mode="json") for each in self.revisions]} if self.revisions else {}
        resumes = {"resumes": [each.model_dump() for each in self.resumes]} if self.resumes else {}
        higher = {"raise_limits": dict(self.raise_limits)} if self.raise_limits else {}
        return {
            "run_id": self.run_id,
            "thread_id": self.thread_id,
            "status": self.status,
            "answer": self.answer,
            **self._not_whole(),
            "plan": _plan_as_json(self.plan, self.made_from) if self.plan else None,
            "steps": [_step_as_json(step) for step in self.steps],
            "approvals": [request.model_dump(mode="json") for request in self.approvals],
            "usage": self.usage.model_dump(mode="json"),
            "tainted": [each.model_dump(mode="json") for each in self.tainted],
            **higher,
            **revised,
            **resumes,
            **archived,
            **forked,
        }

    def _not_whole(self) -> dict[str, Any]:
        """What is said only of a run that lacks something."""
        told: dict[str, Any] = {}
        if self.missing:
            told |= {"partial": self.partial, "missing": [each.model_dump(mode="json") for each in self.missing]}
        if self.left_out:
            told |= {"left_out": [each.model_dump(mode="json") for each in self.left_out]}
        return told


class RunSummary(_Frozen):
    """One line of `surestep runs`."""

    run_id: str
    thread_id: str
    status: str
    goal: str
    created_at: datetime
    ended_at: datetime | None = None


class PlanPreview(_Frozen):
    """A plan that has not run: which steps will ask a person, what to mind, and how long its critical path is.

    `estimate` holds `steps`, `critical_path_steps`, `at_most_s` (by timeouts) and `model_calls`.
    """

    plan: Plan
    approvals: tuple[str, ...]
    warnings: tuple[Fault, ...]
    estimate: dict[str, float]


def _plan_as_json(plan: Plan, made_from: TemplateUse | None) -> dict[str, Any]:
    template = {"template": made_from.model_dump(mode="json")} if made_from else {}
    return {"plan_id": plan.plan_id, "revision": plan.revision, "source": plan.source, **template}


def _step_as_json(step: StepResult) -> dict[str, Any]:
    shown = step.model_dump(
        mode="json", include={"id", "tool", "status", "attempts", "output_ref", "degraded", "mock", "tainted_by"}
    )
    doubt: dict[str, Any] = {"in_doubt": True} if step.in_doubt else {}
    late = {"late": [each.model_dump(mode="json") for each in step.late]} if step.late else {}
    checked = step.model_dump(mode="json", include={"check"}) if step.check else {}
    failure = step.failure.model_dump(mode="json") if step.failure else None
    return {**shown, "failure": failure, **doubt, **late, **checked}
