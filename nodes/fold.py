"""What has happened in a run, folded from its journal rows. Pure: the same rows always give the same picture.

A step run is keyed by its step's id; the children of a `for_each` step are `s3[0]`, `s3[1]`, …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodes.fold_drafts import Revised
from nodes.fold_progress import Progress
from nodes.fold_resumes import Resumption
from nodes.fold_rows import APPLY
from nodes.state import RunHead, TemplateUse, Verdict
from nodes.step_run import Output, StepRun, base_id, child_index
from nodes.versions import not_ours, row_body, unknown_row
from plans.caps import Hit
from plans.decisions import ApprovalRequest
from plans.limits import Usage
from plans.moves import SETTLED, Status
from plans.plan import Plan, PlanDraft, Source, Step
from plans.policy import Policy
from plans.versions import PLAN_VERSIONS, Form, PlanVersions

if TYPE_CHECKING:
    from checkpoints.rows import Row

__all__ = ["Output", "RunFold", "StepRun", "base_id", "fold", "fold_journal"]


@dataclass(slots=True)
class RunFold:
    """The picture of one run.

    `queue` holds verdicts whose turn has not come; `undecided` step runs whose failure has no verdict; `since`, by
    step, the revision in which it came to be what it is; `reserved`, by question, what a model that has not answered
    may have cost; `answered` the ids of approvals whose decision was taken; `shown`, by id, since when (seconds since
    1970) people are shown it; `edits`, by step, calls that a person has changed and that no revision has yet,
    `rewritten` the same of a whole plan; `effects`, by the effect's name, the step runs that have it, or may have it,
    to their name; `on_exhausted` and `critical` what the run's template says of when nothing mends it, `simplified`
    that the first was turned to; `late`, by step run, what came back after it had been given up; `had` names steps of a
    fork that its parent has run, and whose effect would be another one now; `drafts` what became of every draft of a
    plan, by its name, in their order (`nodes/drafts.py`); `authors`, by step, the source of the revision that has made
    it what it is, `swayed` the steps that a model has written when text that is not trusted may have told it what to
    write; `checked` the steps about whose results the plan was asked whether it still holds, `unsure`, by step, why a
    model could not say so, `premises_broken` how often it did not hold after a step; `contract` is the version of the
    plan contract that the run is on, `form` how its plan was stored, `versions` those that are known here; `version`
    that of the journal's rows from here on; `archived` where the rows came from, if that was the archive. `hits`, by
    name, are limits that have stopped the run; `policies` those that it is held to (`nodes/policing.py`). `in_review`
    is the revision that a person is to look at before anything of it starts, `rounds` how often a planner has asked the
    user, `reviewed` that one was approved so, or written by a person; `revisions` what each after the first has
    changed. `planned_anew` are the codes for which a step or the plan was planned anew, `made_from` is the template
    that the plan was made of at first. `reached`, by step, are sub- goals that wait for their plan, each in its words.
    `left_off` is the last row of the drive before this one; None in a first drive, and once it is told.
    """

    head: RunHead | None = None
    plan: Plan | None = None
    steps: dict[str, StepRun] = field(default_factory=dict)
    expansions: dict[str, list[str]] = field(default_factory=dict)
    authors: dict[str, Source] = field(default_factory=dict)
    swayed: set[str] = field(default_factory=set)
    drawn_up: list[tuple[Plan, frozenset[str]]] = field(default_factory=list)
    heard: bool = False
    checked: set[str] = field(default_factory=set)
    unsure: dict[str, str] = field(default_factory=dict)
    premises_broken: int = 0
    queue: list[Verdict] = field(default_factory=list)
    undecided: dict[str, None] = field(default_factory=dict)
    reached: dict[str, str] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    reserved: dict[str, dict[str, int]] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    rejected: dict[str, int] = field(default_factory=dict)
    asked: dict[str, ApprovalRequest] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)
    edits: dict[str, dict[str, Any]] = field(default_factory=dict)
    rewritten: dict[str, Any] | None = None
    on_exhausted: PlanDraft | None = None
    critical: bool = False
    simplified: bool = False
    policies: tuple[Policy, ...] = ()
    effects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    local_replans: Counter[str] = field(default_factory=Counter)
    global_replans: int = 0
    planned_anew: list[str] = field(default_factory=list)
    made_from: TemplateUse | None = None
    rounds: int = 0
    in_review: int | None = None
    reviewed: bool = False
    revisions: list[Revised] = field(default_factory=list)
    had: frozenset[str] = frozenset()
    instructions: dict[str, str] = field(default_factory=dict)
    input_changes: int = 0
    usage: Usage = Usage()
    hits: dict[str, Hit] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    resumes: list[Resumption] = field(default_factory=list)
    changed_inputs: tuple[str, ...] = ()
    left_off: str | None = None
    late: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    finished: dict[str, Any] | None = None
    drafts: dict[str, dict[str, Any]] = field(default_factory=dict)
    contract: int = 0
    form: Form | None = None
    version: int = 1
    archived: str | None = None
    versions: PlanVersions = field(default=PLAN_VERSIONS, compare=False)

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

    def children(self, step_id: str) -> list[str]:
        """The step runs that a `for_each` step has become, in the order of its list."""
        return [f"{step_id}[{index}]" for index in range(len(self.expansions.get(step_id, ())))]

    def kept(self) -> list[Step]:
        """Steps that a new revision must keep byte for byte: settled, running or in doubt."""
        steps = self.plan.steps if self.plan else ()
        return [step for step in steps if self.status(step.id) in SETTLED or self.status(step.id) == "running"]

    @property
    def is_exposed(self) -> bool:
        """Whether the run has met text that a stranger may have written, the words of a failure included."""
        return self.heard or any(run.is_strange for run in self.steps.values())

    @property
    def next_revision(self) -> int:
        """The number of the revision that a draft would become."""
        return self.plan.revision + 1 if self.plan else 1

    @property
    def question(self) -> ApprovalRequest | None:
        """What a person is asked about the plan as a whole, if anything."""
        return next((asked for asked in self.asked.values() if asked.kind == "question"), None)

    @property
    def is_edited(self) -> bool:
        """Whether a person has written what no revision has yet."""
        return bool(self.edits or self.rewritten)

    def counts(self) -> dict[str, int]:
        """How many steps of the current plan have each status."""
        return dict(Counter(self.status(step.id) for step in self.plan.steps)) if self.plan else {}

    def waiting(self) -> list[ApprovalRequest]:
        """What people are asked, in the order of the plan: steps that ask at the same time do so in any order."""
        place = {step.id: index for index, step in enumerate(self.plan.steps)} if self.plan and self.asked else {}
        return sorted(
            self.asked.values(),
            key=lambda asked: (place.get(base_id(asked.step_id), 0), child_index(asked.step_id) or 0),
        )

    def apply(self, kind: str, step_id: str | None, attempt: int, body: Mapping[str, Any]) -> None:
        """Take one journal row in. Unknown kinds are refused: a picture with holes would be wrong."""
        if (change := APPLY.get(kind)) is None:
            raise unknown_row(kind)
        change(self, step_id or "", attempt, row_body(kind, body, self.version))


def fold_journal(rows: Iterable[Row], versions: PlanVersions = PLAN_VERSIONS) -> RunFold:
    """The picture that a run's rows give, as the journal has them."""
    return fold(((row.kind, row.step_id, row.attempt, row.body) for row in rows), versions)


def fold(
    rows: Iterable[tuple[str, str | None, int, Mapping[str, Any]]], versions: PlanVersions = PLAN_VERSIONS
) -> RunFold:
    """The picture that a run's rows give, in their order, to who knows these versions of the plan contract."""
    picture = RunFold(versions=versions)
    for place, (kind, step_id, attempt, body) in enumerate(rows, 1):
        try:
            picture.apply(kind, step_id, attempt, body)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise not_ours(kind, place, error) from error
    return picture
