"""What a caller of the library asks for, checked: a goal with its inputs, a plan or a template, and in which role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodes.given import given_draft
from nodes.inputs import declared_inputs, strange_inputs
from plans.errors import InvalidInput
from plans.goals import check_goal
from plans.plan import Plan, PlanDraft

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.sealing import Sealing
    from plans.principals import Principal

GivenPlan = Plan | PlanDraft | Mapping[str, Any]


async def wished(
    engine: Engine,
    who: Principal,
    sealing: Sealing,
    goal: str | None,
    inputs: Mapping[str, Any] | None,
    plan: GivenPlan | None,
    template: str | None,
    *,
    role: str | None,
) -> dict[str, Any]:
    """What is asked for, and by whom, as fields of a run's head, without secrets. Raises UsageError."""
    draft = given_draft(plan) if plan is not None else None
    goal = check_goal(goal if goal is not None else (draft.goal if draft else _named_template(template)))
    values, files = await declared_inputs(inputs or {}, None)
    return {
        "goal": sealing.text(goal),
        "inputs": sealing.inputs(values),
        "files": files,
        "untrusted": strange_inputs(inputs or {}),
        "given_plan": sealing.draft(draft) if draft is not None else None,
        "template": template,
        "role": who.acting_in(role),
        "tenant": who.tenant,
        "started_by": who.name,
        "output": engine.options.output,
    }


def _named_template(template: str | None) -> str:
    if template is None:
        raise InvalidInput("there is nothing to do: give a goal, a plan or the name of a template")
    return f"template {template}"
