"""One planning call: goal, tools and what has happened so far become a prompt, the model's text becomes a reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nodes.answered import unusable
from nodes.catalog import Offered, described, inputs_shown
from nodes.model_errors import PromptTooLong
from nodes.models import Asks, ModelAnswer
from nodes.plan_form import PLAN_SCHEMA, PlanForm
from nodes.prompts import Rendered, load, quoted
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import PlanDraft, StepDraft
from plans.reader import Reading, read_plan
from plans.values import JSON

MAX_FAULTS = 30
"""Faults of a refused draft that are shown; more say nothing new."""

PLANNER = load("planner")


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step that will not run again: its definition, a summary of its result that may stand in a prompt, and what the
    result was made by or from where that is not what was asked for."""

    step: StepDraft
    summary: JSON
    degraded: str | None = None

    def shown(self) -> JSON:
        """The result as a prompt has it."""
        return {"summary": self.summary, "degraded": self.degraded} if self.degraded else self.summary


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """What a planning call gave: the reading (a draft or faults), the raw answer, and the prompt file's hash."""

    reading: Reading
    answer: ModelAnswer
    prompt_sha256: str


async def draft_plan(
    model: Asks,
    goal: str,
    inputs: Mapping[str, Any],
    catalog: Iterable[Offered],
    *,
    faults: Sequence[Fault] = (),
    finished: Sequence[FinishedStep] = (),
    failure: Failure | None = None,
    few_shots: Sequence[tuple[str, JSON]] = (),
) -> PlannerAnswer:
    """Ask for a plan. `catalog` is what this run may use now; a `Path` among the inputs is a file.

    With `finished` steps the draft holds only what is still to be done (see `keeping`). Raises ModelFailed where
    there was no answer; an answer that is no plan comes back as faults. A prompt that is too long with its examples is
    sent without them.
    """
    catalog = list(catalog)
    form = PlanForm(catalog)
    prompt = partial(planning_prompt, goal, inputs, catalog, faults=faults, finished=finished, failure=failure)
    try:
        answer = await model.ask(prompt(few_shots=few_shots), schema=form.schema)
    except PromptTooLong:
        if not few_shots:
            raise
        answer = await model.ask(prompt(), schema=form.schema)
    return PlannerAnswer(read_answer(answer, form), answer, PLANNER.sha256)


def planning_prompt(
    goal: str,
    inputs: Mapping[str, Any],
    catalog: Iterable[Offered],
    *,
    faults: Sequence[Fault] = (),
    finished: Sequence[FinishedStep] = (),
    failure: Failure | None = None,
    few_shots: Sequence[tuple[str, JSON]] = (),
) -> Rendered:
    """The prompt of a planning call. Results appear in it by their summaries only, and everything quoted."""
    sections = ["task"]
    holes = {
        "schema": quoted(PLAN_SCHEMA),
        "tools": quoted(described(catalog)),
        "examples": "\n\n".join(f"For the goal {quoted(asked)}:\n\n{quoted(plan)}" for asked, plan in few_shots),
        "goal": quoted(goal),
        "inputs": quoted(inputs_shown(inputs)),
    }
    if finished:
        sections.append("finished")
        holes["finished"] = quoted([_finished(step) for step in finished])
    if failure is not None:
        sections.append("failure")
        holes["failure"] = quoted({"step": failure.step_id, "tool": failure.tool, **failure.for_model()})
    if faults:
        sections.append("faults")
        holes["faults"] = quoted([str(fault) for fault in faults[:MAX_FAULTS]])
    return PLANNER.render(sections, holes)


def read_answer(answer: ModelAnswer, form: PlanForm) -> Reading:
    """The plan in a model's answer, or what is wrong with it. Who was held to no form has written the plan's own."""
    if failed := unusable(answer):
        return Reading(draft=None, repaired=False, faults=(Fault(code=failed.fault, message=str(failed)),))
    return read_plan(answer.text, answer.finish_reason, form=None if answer.mode == "text" else form.restored)


def keeping(finished: Iterable[StepDraft], draft: PlanDraft) -> PlanDraft:
    """The draft with the finished steps in front, each byte for byte; one that the model merely repeated is dropped."""
    kept = tuple(finished)
    return draft.model_copy(update={"steps": (*kept, *(step for step in draft.steps if step not in kept))})


def _finished(finished: FinishedStep) -> JSON:
    step = finished.step
    return {"id": step.id, "title": step.title, "tool": step.tool, "args": step.args, "result": finished.shown()}
