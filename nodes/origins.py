"""Where a result that is not what was asked for comes from: told in one sentence, and handed to all that rests on it.

A step run is degraded of itself (another tool has answered, a mock, a kept result, or an input was missing) or because
it was made from one that is. What is stored with it are the step runs at the root, whose sentences are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nodes.step_run import StepRun, base_id
from plans.expressions import names_in
from plans.plan import Step
from plans.references import references_in
from plans.wording import listed

if TYPE_CHECKING:
    from nodes.fold import RunFold

MOST_ROOTS = 20
"""How many origins are kept with a step run; one that rests on more says that there are others."""
TOLD_ROOTS = 3
"""How many of them one sentence tells."""


def roots_among(fold: RunFold, read: Iterable[str]) -> tuple[str, ...]:
    """The step runs at which what is made from these went astray: those that are degraded, or what they rest on."""
    found: dict[str, None] = {}
    for name in read:
        run = fold.steps.get(name)
        if run is not None and run.output is not None:
            found |= dict.fromkeys((name, *run.rests_on) if run.degraded else run.rests_on)
    return tuple(found)[:MOST_ROOTS]


def degraded_inputs(fold: RunFold, step: Step, unit: str) -> dict[str, str]:
    """What is to be told of each input of a step run that is degraded, by the step it comes from."""
    told = {name: sentence(fold, name) for name in read_by(fold, step, unit)}
    return {name: said for name, said in told.items() if said is not None}


def read_by(fold: RunFold, step: Step, unit: str, *, conditions: bool = True) -> list[str]:
    """The step runs whose results this one is made from; with `conditions`, also those that decide whether it runs.
    What it only waits for is none of them."""
    if unit in fold.expansions:
        return fold.children(unit)
    if step.action == "llm":  # it sees all that it depends on
        return list(step.depends_on)
    read = {reference.name for reference in references_in([step.args, step.for_each])}
    for condition in (step.when, step.requires) if conditions else ():
        read |= names_in(condition)
    return [name for name in step.depends_on if name in read]


def sentence(fold: RunFold, unit: str) -> str | None:
    """What a step run's result was made by or from, as "it was …" goes on; None for one that is what was asked for."""
    run = fold.steps.get(unit, StepRun())
    roots = [f"{root}, which was {_own(fold, root)}" for root in run.rests_on[:TOLD_ROOTS]]
    if more := len(run.rests_on) - len(roots):
        roots.append(f"{more} more like that")
    made = f"made from {'; and from '.join(roots)}" if roots else None
    return " and ".join(part for part in (run.degraded, made) if part) or None


def remark(fold: RunFold, unit: str) -> str | None:
    """What is told beside a finished step run: where it went astray, or that nothing was called for it,
    and what came out when the plan was checked there."""
    run = fold.steps.get(unit, StepRun())
    kept = None if run.kept_s is None else f"answered from the cache, from {age(run.kept_s)} ago"
    checked = run.check.sentence if run.check is not None else None
    return "; ".join(part for part in (sentence(fold, unit) or kept, checked) if part) or None


def _own(fold: RunFold, root: str) -> str:
    return fold.steps.get(root, StepRun()).degraded or "degraded"


def rests_on_mock(fold: RunFold, unit: str) -> bool:
    """Whether a step run's result is a mock, or was made from one."""
    run = fold.steps.get(unit, StepRun())
    return run.mock or any(fold.steps.get(root, StepRun()).mock for root in run.rests_on)


def degraded_steps(fold: RunFold) -> dict[str, str]:
    """The sentence of each step of the current plan that is degraded."""
    steps = fold.plan.steps if fold.plan else ()
    told = {step.id: sentence(fold, step.id) for step in steps if fold.status(step.id) == "done"}
    return {step_id: said for step_id, said in told.items() if said is not None}


def notes(fold: RunFold) -> Iterator[str]:
    """One sentence for each result that is not what was asked for, with the steps that rest on it."""
    resting: dict[str, list[str]] = {}
    for unit, run in fold.steps.items():
        for root in run.rests_on:
            if unit == base_id(unit) and run.status == "done":
                resting.setdefault(root, []).append(unit)
    for unit, run in fold.steps.items():
        if run.degraded and run.status == "done":
            below = resting.get(unit, [])
            built = f"; {listed(below)} {'rests' if len(below) == 1 else 'rest'} on it" if below else ""
            yield f"step {unit} was {run.degraded}{built}"


def age(seconds: float) -> str:
    """`12 seconds`, `40 minutes`, `5 hours`, `3 days`."""
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= length:
            count = int(seconds / length)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a second"
