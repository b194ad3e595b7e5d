"""Whether a run can go on without a step, as those that depend on it say. Pure.

What a step of a sub-goal's plan gives serves that sub-goal: where the plan says nothing better, the step fails with its
sub-goal, and what depends on that says whether the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from plans.plan import Step
from plans.subgoals import members, parents_in


def can_do_without(steps: Sequence[Step], step_id: str, settled: Callable[[str], bool]) -> bool:
    """Whether the run can go on without this step: everything that depends on it and has not ended says so, or nothing
    depends on it."""
    family, parent = _around(steps, step_id)
    for step in steps:
        if step_id not in step.depends_on or step.on_dependency_failure != "abort" or settled(step.id):
            continue
        if parent is None or step.id not in family or not can_do_without(steps, parent.id, settled):
            return False
    return True


def gone_on_without(steps: Sequence[Step], step_id: str) -> bool:
    """Whether something that depended on this step has gone on without it."""
    if any(step_id in step.depends_on and step.on_dependency_failure != "abort" for step in steps):
        return True
    _, parent = _around(steps, step_id)
    return parent is not None and gone_on_without(steps, parent.id)


def _around(steps: Sequence[Step], step_id: str) -> tuple[Collection[str], Step | None]:
    """The sub-goal whose plan a step stands in, and that with all of its steps."""
    if "__" not in step_id:
        return (), None
    parent = parents_in(steps).get(step_id)
    if parent is None:
        return (), None
    whole = next(step for step in steps if step.id == parent.id)
    return {whole.id, *members(whole)}, whole
