"""Who stands guard before an effect: steps that it waits for and that ask a person, or that change something. Pure.

Such a step may fail, be rejected, or never come to be asked, and then what waits for it does not run. A plan that is
written anew without it has the effect without that word. Guards are known by what they do, and by what they are to come
to; reads are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plans.lint import ToolView
from plans.plan import Step
from plans.sameness import call_names
from plans.schedule import edges_of, in_order
from plans.subgoals import is_planned
from tools.person import ASK_USER

ALL_OF_THEM = "@all"
"""Beside a step's guards: that it does not run where what it waits for has given nothing."""


def guard_names(steps: Iterable[Step]) -> dict[str, str]:
    """For each step, by its id, the name by which it is known as a guard: what it does, and what it is to come to. A
    sub-goal has the same before and after it was planned."""
    plain = [step.model_copy(update={"args": {}}) if is_planned(step) else step for step in steps]
    names = call_names(plain)
    return {step.id: f"{names[step.id]} {' '.join((step.success_when or '').split())}" for step in plain}


def guards_in(
    steps: Sequence[Step],
    tools: Mapping[str, ToolView],
    swayed: Iterable[str] = (),
    *,
    named: Mapping[str, str] | None = None,
) -> dict[str, frozenset[str]]:
    """For each step, by its id, the names of the guards before it. What runs although they gave nothing has none, and
    nothing does that a model has brought in later (`swayed`). `named` are steps that are known by another name."""
    names, known, edges = {**guard_names(steps), **(named or {})}, {step.id: step for step in steps}, edges_of(steps)
    guards = {step.id for step in steps if is_guard(step, tools)} - set(swayed)
    found: dict[str, frozenset[str]] = {}
    for step_id in in_order(edges):
        needed = [each for each in edges[step_id] if each in known]
        if known[step_id].on_dependency_failure == "degrade":
            found[step_id] = frozenset()
            continue
        own = (names[each] for each in needed if each in guards)
        found[step_id] = frozenset({ALL_OF_THEM}).union(own, *(found[each] for each in needed))
    return found


def is_guard(step: Step, tools: Mapping[str, ToolView]) -> bool:
    """Whether a step asks a person before it gives anything, or changes something, or may do either once it is
    planned."""
    if step.action == "plan":
        return not is_planned(step)
    tool = tools.get(step.tool or "")
    asks = step.require_approval or step.risk == "high" or step.tool == ASK_USER
    return asks or (tool is not None and tool.effect != "read")
