"""Checks of a plan's shape: its goal, how many steps, their ids, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterator

from plans.faults import Fault
from plans.goals import goal_problem
from plans.lint_scope import Placed, Scope, fault
from plans.plan import RESERVED_NAMES
from plans.schedule import cycle_in
from plans.values import printable
from plans.wording import listed, nearest

MAX_CYCLES = 10
"""Cycles that are shown; each costs a search of the plan."""


def size_faults(scope: Scope) -> Iterator[Fault]:
    """A goal that is none, no steps, too many steps."""
    if problem := goal_problem(scope.draft.goal):
        yield fault("SCHEMA_INVALID", f"the goal {problem}", path=("goal",))
    if not scope.draft.steps and not scope.nameless:
        yield fault("PLAN_EMPTY", "the plan has no steps", path=("steps",), fix="give it at least one step")
    if len(scope.draft.steps) > scope.limits.max_steps:
        yield fault(
            "TOO_MANY_STEPS",
            f"the plan has {len(scope.draft.steps)} steps; the limit is {scope.limits.max_steps}",
            path=("steps",),
            fix="use for_each for what repeats, or raise the limit max_steps",
        )


def id_faults(scope: Scope) -> Iterator[Fault]:
    """Two steps of one id, and ids that mean something else in references."""
    first: dict[str, int] = {}
    for position, step in scope.placed:
        at = (position, step)
        if not step.id:
            continue
        if step.id in first:
            message = f"the id {step.id!r} is already that of steps[{first[step.id]}]"
            yield fault("DUPLICATE_STEP_ID", message, at, ("id",), fix="give each step an id of its own")
        elif step.id in RESERVED_NAMES:
            message = f"a step cannot be called {step.id!r}: in references that name means something else"
            yield fault("SCHEMA_INVALID", message, at, ("id",), fix=f"call it {step.id}_step, for example")
        first.setdefault(step.id, position)


def dependency_faults(scope: Scope) -> Iterator[Fault]:
    """A `depends_on` that names no step of the plan."""
    for position, step in scope.placed:
        for index, name in enumerate(step.depends_on):
            if name not in scope.steps and not scope.nameless:
                message = f"there is no step {printable(name)!r} to depend on"
                fix = _meant(scope, (position, step), name)
                yield fault("UNKNOWN_DEPENDENCY", message, (position, step), ("depends_on", index), fix=fix)


def _meant(scope: Scope, at: Placed, name: str) -> str:
    if name in RESERVED_NAMES:
        return f"leave it out: {name} is always there"
    if name in scope.tools or name in scope.callers:
        callers = [caller for caller in scope.callers.get(name, ()) if caller != at[1].id]
        if callers:
            return f"{name} is a tool; the step that calls it is {listed(callers)}"
        return f"{name} is a tool and no other step calls it; leave it out"
    meant = nearest(name, scope.steps)
    return f"did you mean {meant!r}?" if meant else f"the steps are {listed(scope.steps)}"


def cycle_faults(scope: Scope) -> Iterator[Fault]:
    """Steps that wait for themselves, and cycles through several steps, each with its path."""
    places = {step.id: (position, step) for position, step in reversed(list(scope.placed))}
    edges = dict(scope.edges)
    for name, needed in edges.items():
        if name in needed:
            message = f"step {name} waits for itself"
            yield fault("CYCLE", message, places[name], ("depends_on",), fix="remove that dependency or reference")
            edges[name] = tuple(other for other in needed if other != name)
    for _ in range(MAX_CYCLES):
        path = cycle_in(edges)
        if path is None:
            return
        message = f"these steps wait for each other: {' → '.join(path)} (each needs the next)"
        yield fault("CYCLE", message, places[path[0]], ("depends_on",), fix="remove one of these edges")
        for name in path:
            edges.pop(name, None)
