"""Where a run stands, told as the events that would have led there: for whoever begins to watch in the middle."""

from __future__ import annotations

from collections.abc import Iterator

from nodes.events import Event
from nodes.fold import RunFold
from nodes.origins import remark
from nodes.step_run import StepRun


def standing(picture: RunFold) -> Iterator[Event]:
    """The plan, every step run that is not merely pending, and every request that waits for a person."""
    if (question := picture.question) is not None:
        yield Event(
            kind="approval", step_id=question.step_id, tool=question.tool, status="pending", message=question.reason
        )
    if picture.plan is None:
        return
    yield Event(kind="plan", message=picture.plan.source, plan=picture.plan.model_dump(mode="json"))
    asked = {request.step_id: request for request in picture.asked.values()}
    for step in picture.plan.steps:
        children = [f"{step.id}[{index}]" for index in range(len(picture.expansions.get(step.id, ())))]
        for unit in (step.id, *children):
            run = picture.steps.get(unit, StepRun())
            if run.status != "pending":
                own = [picture.steps.get(child, StepRun()) for child in children] if unit == step.id else []
                yield _moved(picture, unit, step.title, run.tool or step.tool or step.action, run, own)
            if unit in asked:
                request = asked[unit]
                yield Event(kind="approval", step_id=unit, tool=request.tool, status="pending", message=request.reason)


def _moved(picture: RunFold, unit: str, title: str | None, tool: str, run: StepRun, children: list[StepRun]) -> Event:
    elements = f"{len(children)} elements" if children and run.status == "running" else None
    return Event(
        kind="step",
        step_id=unit,
        title=title,
        tool=tool,
        status="in_doubt" if run.in_doubt is not None else run.status,
        attempt=run.attempt,
        elapsed_s=run.elapsed_s + sum(child.elapsed_s for child in children),
        message=run.failure.message if run.failure else run.skipped_because or remark(picture, unit) or elements,
    )
