"""Checks of steps with `action: plan`: what they may say, how deep they are nested, and that they lead on."""

from __future__ import annotations

from collections.abc import Iterator

from plans.faults import Fault
from plans.lint_scope import Placed, Scope, fault
from plans.subgoals import LONGEST_ID, RESULT, around, is_planned, parents_in
from plans.wording import listed

SHORTEST_REST = "_2__s12"
"""What comes behind a sub-goal's id in those of its steps, at the least for a plan of some steps made anew."""


def subgoal_faults(scope: Scope) -> Iterator[Fault]:
    """Arguments and repetition that a sub-goal cannot have; one that is too deep; one that is what it is a part of."""
    if all(step.action != "plan" for step in scope.draft.steps):
        return
    parents = parents_in(scope.steps.values())
    for at in scope.placed:
        step = at[1]
        if step.action != "plan":
            continue
        yield from _misplaced(at)
        if not is_planned(step):
            outer = list(around(step.id, parents))
            yield from _too_deep(scope, at, len(outer) + 1)
            yield from _too_long(at)
            wanted = {_said(scope.draft.goal): "the goal itself"}
            wanted |= {
                _said(each.instruction or ""): f"that of step {each.id}, which it is a part of" for each in outer
            }
            if (same := wanted.get(_said(step.instruction or ""))) is not None:
                message = f"its sub-goal is {same}: planning it would lead here again"
                yield fault("NO_PROGRESS", message, at, ("instruction",), fix="write the steps that reach it")


def _misplaced(at: Placed) -> Iterator[Fault]:
    step = at[1]
    if step.for_each is not None:
        message = "a step with action 'plan' is planned once, and cannot go over a list"
        fix = "let its own plan have the step with for_each"
        yield fault("SCHEMA_INVALID", message, at, ("for_each",), fix=fix)
    if others := sorted(step.args.keys() - {RESULT}):
        message = f"a step with action 'plan' takes no arguments, and has {listed(others)}"
        fix = "say in its instruction what it is to know, by references"
        yield fault("INVALID_ARGS", message, at, ("args",), fix=fix)


def _too_deep(scope: Scope, at: Placed, depth: int) -> Iterator[Fault]:
    most = scope.limits.max_subgoal_depth
    if depth > most:
        nested = f"nested {depth} deep" if depth > 1 else "a sub-goal"
        message = f"the step is {nested}; the limit max_subgoal_depth is {most}"
        yield fault("LIMIT_INFEASIBLE", message, at, ("action",), fix="write its steps into this plan")


def _too_long(at: Placed) -> Iterator[Fault]:
    """The ids of its steps will begin with its own, and could not be as short as they had to be."""
    most = LONGEST_ID - len(SHORTEST_REST)
    if len(at[1].id) > most:
        message = f"a step with action 'plan' has an id of {len(at[1].id)} characters; those of its steps begin with it"
        yield fault("SCHEMA_INVALID", message, at, ("id",), fix=f"use an id of at most {most} characters")


def _said(text: str) -> str:
    """What two sub-goals have in common that say the same."""
    return " ".join(text.casefold().split())
