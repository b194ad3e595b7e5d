"""The plan linter: every fault of a draft at once, each with its place and, where that is clear, what would be right.

Pure and linear in the size of the plan. What has no errors becomes a Plan: its edges complete, its risks decided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from plans.faults import MOST, Fault
from plans.limits import Limits
from plans.lint_calls import action_faults, argument_faults, depth_faults
from plans.lint_conditions import condition_faults
from plans.lint_limits import deadline_warnings, limit_faults
from plans.lint_order import order_warnings
from plans.lint_references import reference_faults
from plans.lint_schemas import schema_faults
from plans.lint_scope import Permits, Scope, ToolView
from plans.lint_structure import cycle_faults, dependency_faults, id_faults, size_faults
from plans.lint_subgoals import subgoal_faults
from plans.lint_warnings import warnings
from plans.plan import Plan, PlanDraft, Source, Step, StepDraft, highest_risk
from plans.reader import Reading
from plans.schedule import edges_of

__all__ = ["DEFAULT_LIMITS", "Permits", "ToolView", "build_plan", "lint", "lint_reading"]

DEFAULT_LIMITS = Limits()

_CHECKS = (
    size_faults, id_faults, action_faults, argument_faults, dependency_faults, reference_faults, condition_faults,
    cycle_faults, schema_faults, subgoal_faults, limit_faults, warnings, order_warnings, deadline_warnings,
)  # fmt: skip


def lint(
    draft: PlanDraft,
    tools: Mapping[str, ToolView],
    *,
    inputs: Collection[str] | None = (),
    limits: Limits = DEFAULT_LIMITS,
    role_permits: Permits | None = None,
) -> list[Fault]:
    """Every fault of a draft, errors and warnings. `inputs` are the names a reference may use (None: any);
    `role_permits` says whether this run's role may use a tool."""
    return _found(Scope(draft, tools, inputs, limits, role_permits, range(len(draft.steps))))


def lint_reading(
    reading: Reading,
    tools: Mapping[str, ToolView],
    *,
    inputs: Collection[str] | None = (),
    limits: Limits = DEFAULT_LIMITS,
    role_permits: Permits | None = None,
) -> list[Fault]:
    """Every fault of a text that was read: what reading found, and what is wrong with the steps that can be read."""
    if reading.draft is not None:
        positions = range(len(reading.draft.steps))
        scope = Scope(reading.draft, tools, inputs, limits, role_permits, positions, storable=True)
    elif legible := reading.legible:
        places, doubtful, nameless = legible.positions, legible.doubtful, legible.nameless
        scope = Scope(legible.draft, tools, inputs, limits, role_permits, places, doubtful, nameless)
    else:
        return list(reading.faults)
    told = {(fault.code, fault.path) for fault in reading.faults}
    return [*reading.faults, *(fault for fault in _found(scope) if (fault.code, fault.path) not in told)]


def build_plan(
    draft: PlanDraft,
    tools: Mapping[str, ToolView],
    *,
    plan_id: str,
    revision: int,
    source: Source,
    template: str | None = None,
) -> Plan:
    """The plan of a draft without errors: dependencies that references imply are added, risks are never below the
    tool's own."""
    edges = edges_of(draft.steps)
    steps = tuple(_stored(step, edges[step.id], tools) for step in draft.steps)
    return Plan(
        plan_id=plan_id,
        revision=revision,
        goal=draft.goal,
        steps=steps,
        source=source,
        template=template,
        answer=draft.answer,
    )


def _stored(step: StepDraft, needed: tuple[str, ...], tools: Mapping[str, ToolView]) -> Step:
    tool = tools.get(step.tool) if step.tool else None
    risk = highest_risk(step.risk, tool.risk if tool else None)
    fields = {name: getattr(step, name) for name in StepDraft.model_fields}
    return Step(**{**fields, "depends_on": needed, "risk": risk})


def _found(scope: Scope) -> list[Fault]:
    if not scope.storable and (too_deep := list(islice(depth_faults(scope), MOST))):
        return too_deep
    return [found for check in _CHECKS for found in islice(check(scope), MOST)]
