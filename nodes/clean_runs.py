"""Whether a run went as its plan says from beginning to end, so that its plan may be used again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nodes.origins import degraded_steps
from nodes.template_record import is_edited

if TYPE_CHECKING:
    from nodes.fold import RunFold


def objections(fold: RunFold) -> list[str]:
    """Everything that speaks against learning from a run, each a part of a sentence; empty for a clean one."""
    if fold.head is None or fold.plan is None:
        return ["it has no plan"]
    status = (fold.finished or {}).get("status")
    found = [] if status == "done" else [f"it is not done ({status or 'it has not ended'})"]
    return [*found, *_about_the_plan(fold), *_about_people(fold), *_about_steps(fold)]


def _about_the_plan(fold: RunFold) -> Iterator[str]:
    if fold.plan is not None and fold.plan.template is not None:
        yield f"its plan was made of the template {fold.plan.template!r} already"
    if fold.planned_anew:
        yield f"something was planned anew ({', '.join(dict.fromkeys(fold.planned_anew))})"
    elif fold.plan is not None and fold.plan.revision > 1 and not is_edited(fold):
        yield "its plan was written in parts"
    if fold.head is not None and fold.head.forked is not None:
        yield "it was forked from another run, which has done a part of it"


def _about_people(fold: RunFold) -> Iterator[str]:
    decided = {body["decision"]["type"] for body in fold.decisions.values()}
    if is_edited(fold) or "edit" in decided:
        yield "a person has changed its plan"
    if fold.rejected or "reject" in decided:
        yield "a person has rejected a step"
    if fold.instructions:
        yield "a later instruction has changed what it is about"
    if fold.input_changes:
        yield "its input files have changed meanwhile"


def _about_steps(fold: RunFold) -> Iterator[str]:
    for failure in (fold.finished or {}).get("failures", ()):
        yield f"step {failure['step_id']} failed ({failure['code']})" if failure["step_id"] else failure["code"]
    for unit, run in fold.steps.items():
        if run.attempt > 1:
            yield f"step {unit} took {run.attempt} attempts"
    degraded = degraded_steps(fold)
    for unit, why in degraded.items():
        yield f"step {unit} is not what was asked for: {why}"
