"""When a plan is asked whether it still holds, and what conditions of its own settle without a model. Pure.

After a step that is marked `verify_after`, and after a model's judgement that becomes money (`plans/money.py`); and
before a step with an effect, about the results that it rests on and that nothing has judged yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodes.step_run import Check
from plans.expressions import InvalidExpression, holds, names_in
from plans.money import money_judgements
from plans.plan import Plan, Step, StepDraft, highest_risk
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from plans.lint import ToolView
    from tools.tool import Tool


def checked_after(plan: Plan, tools: Mapping[str, ToolView]) -> frozenset[str]:
    """The steps after which the plan is asked whether it still holds."""
    marked = {step.id for step in plan.steps if step.verify_after}
    return frozenset(marked | money_judgements(plan.steps, lambda step: _has_effect(step, tools)))


def most_questions(plan: Plan, tools: Mapping[str, ToolView], *, before_effects: bool) -> int:
    """How many questions to a model a run of the plan may take at most, if nothing goes wrong: one after each step that
    has no criterion of its own, and, where they are checked too, one before each effect that rests on something."""
    after = checked_after(plan, tools)
    asked = sum(step.id in after and step.success_when is None for step in plan.steps)
    effects = sum(bool(step.depends_on) and _has_effect(step, tools) for step in plan.steps)
    return asked + (effects if before_effects else 0)


def _has_effect(step: StepDraft, tools: Mapping[str, ToolView]) -> bool:
    tool = tools.get(step.tool or "")
    return tool is not None and tool.effect != "read"


def is_unchecked(fold: RunFold, step_id: str) -> bool:
    """Whether a step has given its result and nobody has checked it since."""
    run = fold.steps.get(step_id)
    return run is not None and run.status == "done" and (run.check is None or run.check.when == "before")


def by_condition(step: Step, plan: Plan, named: Mapping[str, JSON]) -> Check | None:
    """What the plan's own conditions say of a finished step's result; None where they leave the question open. They
    settle it where it has met a criterion of its own, or where each step that waits for it has a precondition about
    it. `named` are the values that are known."""
    if step.success_when is not None:
        return Check("after", "expression", f"its criterion is true: {step.success_when}", (step.id,), holds=True)
    dependents = [each for each in plan.steps if step.id in each.depends_on]
    if not dependents or not all(step.id in names_in(each.requires) for each in dependents):
        return None
    told = ", ".join(each.id for each in dependents)
    true = all(_true(each.requires or "", named) for each in dependents)
    reason = f"the precondition of {told} {'is true' if true else 'is judged before it begins'}"
    return Check("after", "expression", reason, (step.id,), holds=True if true else None)


def unjudged(step: Step, fold: RunFold, plan: Plan, tools: Mapping[str, ToolView]) -> tuple[str, ...]:
    """The results that a step rests on which neither a check nor a condition has judged, the nearest first. Of effects
    there is nothing to judge, and what a sub-goal came to is in its steps."""
    known = {each.id: each for each in plan.steps}
    judged = names_in(step.requires) | fold.checked
    waiting, found = list(step.depends_on), dict[str, bool]()
    for name in waiting:
        if name in found:
            continue
        step_before, tool = known[name], tools.get(known[name].tool or "")
        waiting += step_before.depends_on
        settled = name in judged or step_before.success_when is not None or fold.status(name) != "done"
        has_read = step_before.action != "plan" and (tool is None or tool.effect == "read")
        found[name] = has_read and not settled
    return tuple(name for name, counts in found.items() if counts)


def doubt(step: Step, tool: Tool | None, fold: RunFold, plan: Plan) -> str | None:
    """Why a person is to be asked before an effect: what it rests on could not be checked, and it is of high risk or
    cannot be undone."""
    if not fold.unsure or tool is None or tool.effect == "read":
        return None
    if tool.effect != "irreversible" and highest_risk(step.risk, tool.risk) != "high":
        return None
    known = {each.id: each for each in plan.steps}
    line = {step.id: None}
    while not fold.unsure.keys() & line.keys():
        before = len(line)
        line |= {name: None for each in list(line) for name in known[each].depends_on}
        if len(line) == before:
            return None
    why = next(reason for name, reason in fold.unsure.items() if name in line)
    return f"whether the plan still holds could not be found out: {why}"


def _true(condition: str, named: Mapping[str, JSON]) -> bool:
    """Whether a condition is known to be true: of what is not there yet nothing is known."""
    try:
        return names_in(condition) <= named.keys() and holds(condition, dict(named))
    except InvalidExpression:
        return False
