"""What a caller of the library asks for, checked: a goal with its inputs, a plan or a template, and in which role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Wish:
    """What a caller asks for, as it was given."""

    goal: str | None = None
    inputs: Mapping[str, Any] | None = None
    plan: GivenPlan | None = None
    template: str | None = None
    role: str | None = None


async def wished(engine: Engine, who: Principal, sealing: Sealing, wish: Wish) -> dict[str, Any]:
    """What is asked for, and by whom, as fields of a run's head, without secrets. Raises UsageError."""
    draft = given_draft(wish.plan) if wish.plan is not None else None
    goal = wish.goal if wish.goal is not None else (draft.goal if draft else _named_template(wish.template))
    goal = check_goal(goal)
    inputs = wish.inputs or {}
    values, files = await declared_inputs(inputs, None)
    return {
        "goal": sealing.text(goal),
        "inputs": sealing.inputs(values),
        "files": files,
        "untrusted": strange_inputs(inputs),
        "given_plan": sealing.draft(draft) if draft is not None else None,
        "template": wish.template,
        "role": who.acting_in(wish.role),
        "tenant": who.tenant,
        "started_by": who.name,
        "output": engine.options.output,
    }


def _named_template(template: str | None) -> str:
    if template is None:
        raise InvalidInput("there is nothing to do: give a goal, a plan or the name of a template")
    return f"template {template}"
