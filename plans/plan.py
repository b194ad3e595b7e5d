"""The plan contract: steps and their dependencies as an immutable, strict value.

`PlanDraft` is what an author (model, template, person) may write; `Plan` is what is stored and run. A change to a
plan makes a new revision. Containers are tuples and survive JSON and msgpack, which know only lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from plans.expressions import names_in
from plans.references import Reference, references_in
from plans.values import JSON

SCHEMA_VERSION = 1
STEP_ID = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
RESERVED_NAMES = frozenset({"inputs", "item", "secrets"})
"""Names that references may begin with and that are no steps."""

Action = Literal["tool", "llm", "plan"]
Risk = Literal["low", "medium", "high"]
Effect = Literal["read", "transactional", "idempotent", "irreversible"]
OnDependencyFailure = Literal["abort", "skip", "degrade"]
Source = Literal["template", "model", "local_replan", "global_replan", "human", "file", "degraded"]

MODEL_SOURCES: frozenset[Source] = frozenset({"model", "global_replan", "local_replan"})
"""The sources of what a model has written: it may decide less than a person or a template, and has tries left."""

RISKS: tuple[Risk, ...] = ("low", "medium", "high")

Names = Annotated[tuple[str, ...], Field(strict=False)]


def lacking(action: str, tool: str | None, instruction: str | None) -> str | None:
    """What a step of this action lacks or has too much, as a clause; None if nothing is wrong with it."""
    if action == "tool":
        return None if tool else "a step with action 'tool' names its tool"
    if tool:
        return f"a step with action {action!r} names no tool"
    return None if instruction else f"a step with action {action!r} has an instruction"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StepDraft(_Frozen):
    """One step as its author wrote it. `timeout_s` in seconds; `when`, `requires` and `success_when` are JMESPath."""

    id: str = Field(pattern=STEP_ID)
    title: str | None = Field(default=None, max_length=200)
    action: Action = "tool"
    tool: str | None = None
    args: dict[str, JSON] = Field(default_factory=dict)
    instruction: str | None = None
    for_each: str | None = None
    when: str | None = None
    requires: str | None = None
    depends_on: Names = ()
    reason: str = ""
    success_when: str | None = None
    output_schema: dict[str, JSON] | None = None
    risk: Risk | None = None
    require_approval: bool = False
    on_dependency_failure: OnDependencyFailure = "abort"
    timeout_s: float | None = Field(default=None, gt=0)
    verify_after: bool = False

    @model_validator(mode="after")
    def _has_what_its_action_needs(self) -> StepDraft:
        if problem := lacking(self.action, self.tool, self.instruction):
            raise ValueError(problem)
        return self


class PlanDraft(_Frozen):
    """A plan as its author wrote it: what a model may decide, and nothing more."""

    goal: str
    steps: Annotated[tuple[StepDraft, ...], Field(strict=False)]
    answer: str | None = None


class Step(StepDraft):
    """One step as it is stored: its edges complete, its risk decided."""

    risk: Risk = "low"

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the steps this one reads from, in order of appearance."""
        return referenced_steps(self)


class Plan(_Frozen):
    """A validated plan. `revision` counts from 1 within a run; `source` says who wrote it."""

    schema_version: int = SCHEMA_VERSION
    plan_id: str
    revision: int = Field(default=1, ge=1)
    goal: str
    steps: Annotated[tuple[Step, ...], Field(strict=False, min_length=1)]
    source: Source = "human"
    template: str | None = None
    answer: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_unnamed_plans(cls, value: Any) -> Any:
        """A plan written by hand needs no `plan_id`."""
        if isinstance(value, Mapping) and "plan_id" not in value:
            return {**value, "plan_id": "plan"}
        return value

    def step(self, step_id: str) -> Step:
        """The step of this id; KeyError if there is none."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)

    @property
    def draft(self) -> PlanDraft:
        """What an author would have written to get this plan."""
        steps = tuple(StepDraft.model_validate(step.model_dump()) for step in self.steps)
        return PlanDraft(goal=self.goal, steps=steps, answer=self.answer)


def referenced_steps(step: StepDraft) -> tuple[str, ...]:
    """Names of the steps that a step's references and conditions imply as dependencies, in order of appearance."""
    values = [step.args, step.instruction, step.for_each]
    return implied_steps(step, [reference for value in values for reference in references_in(value)])


def implied_steps(step: StepDraft, references: Iterable[Reference]) -> tuple[str, ...]:
    """The same, of a step whose references are known already."""
    names = [reference.name for reference in references]
    names += [name for condition in (step.when, step.requires) for name in sorted(names_in(condition))]
    return tuple(dict.fromkeys(name for name in names if name not in RESERVED_NAMES))


def highest_risk(*risks: Risk | None) -> Risk:
    """The highest of the given risks; "low" if none is given."""
    return max((risk for risk in risks if risk), key=RISKS.index, default="low")
