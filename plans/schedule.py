"""Order among steps: cycles, what is ready, and which ready step matters most. Pure functions over edges.

`Edges` maps a step's id to the ids it depends on. Everything is linear in steps plus edges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from plans.moves import Status
from plans.plan import StepDraft, referenced_steps

Edges = Mapping[str, Sequence[str]]


def edges_of(steps: Iterable[StepDraft]) -> dict[str, tuple[str, ...]]:
    """Each step's dependencies: those it names and those its references imply, once each."""
    return {step.id: tuple(dict.fromkeys((*step.depends_on, *referenced_steps(step)))) for step in steps}


def dependents_of(edges: Edges) -> dict[str, list[str]]:
    """The edges turned round; unknown ids are left out."""
    found: dict[str, list[str]] = {step: [] for step in edges}
    for step, needed in edges.items():
        for dependency in needed:
            if dependency in found:
                found[dependency].append(step)
    return found


def cycle_in(edges: Edges) -> list[str] | None:
    """One cycle as the path that closes it (`["a", "b", "a"]`), or None."""
    finished: set[str] = set()
    for root in edges:
        path: dict[str, None] = {}
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            step, leaving = stack.pop()
            if leaving:
                path.pop(step)
                finished.add(step)
            elif step in path:
                names = list(path)
                return [*names[names.index(step) :], step]
            elif step not in finished and step in edges:
                path[step] = None
                stack.append((step, True))
                stack.extend((dependency, False) for dependency in reversed(edges[step]))
    return None


def in_order(edges: Edges) -> list[str]:
    """A topological order, stable by the order given. Raises ValueError on a cycle."""
    waiting = {step: len({d for d in needed if d in edges}) for step, needed in edges.items()}
    dependents = dependents_of({step: tuple(dict.fromkeys(needed)) for step, needed in edges.items()})
    ready = [step for step in edges if waiting[step] == 0]
    for step in ready:
        for dependent in dependents[step]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                ready.append(dependent)
    if len(ready) != len(edges):
        raise ValueError(f"the steps form a cycle: {' → '.join(cycle_in(edges) or [])}")
    return ready


def remaining_path(edges: Edges, duration: Callable[[str], float] = lambda _: 1.0) -> dict[str, float]:
    """For each step the longest time from its start to the end of the plan: the critical path's rule of priority."""
    dependents = dependents_of(edges)
    remaining: dict[str, float] = {}
    for step in reversed(in_order(edges)):
        remaining[step] = duration(step) + max((remaining[d] for d in dependents[step]), default=0.0)
    return remaining


_DONE: tuple[Status, ...] = ("done",)


def ready(edges: Edges, statuses: Mapping[str, Status], satisfied: Collection[Status] = _DONE) -> list[str]:
    """Pending steps whose dependencies all have a satisfying status, in the order given."""
    return [
        step
        for step, needed in edges.items()
        if statuses.get(step, "pending") == "pending"
        and all(statuses.get(dependency, "pending") in satisfied for dependency in needed)
    ]


def descendants(edges: Edges, step: str) -> set[str]:
    """Everything that depends on a step, directly or through others."""
    dependents = dependents_of(edges)
    found: set[str] = set()
    waiting = list(dependents.get(step, ()))
    while waiting:
        if (here := waiting.pop()) not in found:
            found.add(here)
            waiting.extend(dependents[here])
    return found
