"""What an ended run is without: steps that failed, those left out because of that, and those it did not come to. Pure.

A step that its own condition has left out is none of them, nor is one that only lacked such a step's result: that is
how the plan was meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodes.step_run import StepRun

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from plans.plan import Step

NOT_REACHED = "the run ended before it"
_NONE = StepRun()


@dataclass(frozen=True, slots=True)
class Lack:
    """A step run whose result is not there: what it was to do, and why it has not."""

    unit: str
    what: str
    why: str
    failed: bool = False


def lacks(fold: RunFold) -> list[Lack]:
    """What there is no result of, in plan order; of a `for_each` step that has failed the elements that have."""
    return [] if fold.plan is None else [lack for step in fold.plan.steps for lack in _of_step(fold, step)]


def _of_step(fold: RunFold, step: Step) -> Iterator[Lack]:
    run = fold.steps.get(step.id, _NONE)
    children = [unit for unit in fold.children(step.id) if _is_lost(fold.steps.get(unit, _NONE))]
    for unit in children:
        yield _lack(step, unit, fold.steps[unit])
    if run.status in ("pending", "running") and run.failure is None:
        yield Lack(step.id, _what(step), NOT_REACHED)
    elif (run.failure is not None and not children) or (run.status == "skipped" and is_missed(fold, step.id)):
        yield _lack(step, step.id, run)


def is_missed(fold: RunFold, step_id: str) -> bool:
    """Whether a step that gave no result was to give one, and not left out as its plan wanted it."""
    steps = {step.id: step for step in fold.plan.steps} if fold.plan else {}
    waiting, seen = [step_id], set[str]()
    while waiting:
        name = waiting.pop()
        run = fold.steps.get(name, _NONE)
        if name in seen or run.output is not None or run.unneeded or name not in steps:
            continue
        seen.add(name)
        below = [each for each in steps[name].depends_on if fold.steps.get(each, _NONE).output is None]
        if run.status != "skipped" or not below:
            return True
        waiting += below
    return False


def _is_lost(run: StepRun) -> bool:
    return run.failure is not None or (run.status == "skipped" and not run.unneeded)


def _lack(step: Step, unit: str, run: StepRun) -> Lack:
    why = run.failure.message if run.failure else run.skipped_because or ""
    return Lack(unit, _what(step), why, failed=run.failure is not None)


def _what(step: Step) -> str:
    return step.title or step.reason or step.tool or step.instruction or step.action
