"""One planning call: goal, tools and what has happened so far become a prompt, the model's text becomes a reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nodes.answered import unusable
from nodes.budget import Cut, Detail, fitted
from nodes.catalog import described, failure_shown, inputs_shown, shortened, text_shown, texts_cut
from nodes.model_errors import PromptTooLong
from nodes.model_settings import PROMPT_TOKENS
from nodes.models import Asks, ModelAnswer
from nodes.plan_form import PLAN_SCHEMA, PlanForm
from nodes.prompts import Rendered, load, quoted
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import PlanDraft, StepDraft
from plans.reader import Reading, read_plan
from plans.values import JSON
from tools.person import ASK_USER
from tools.tool import Tool

MAX_FAULTS = 30
"""Faults of a refused draft that are shown; more say nothing new."""

WHOLE = Cut()
PLANNER = load("planner")


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step that will not run again: its definition, a summary of its result that may stand in a prompt, and what the
    result was made by or from where that is not what was asked for."""

    step: StepDraft
    summary: JSON
    degraded: str | None = None

    def shown(self, longest: int | None = None) -> JSON:
        """The result as a prompt has it, its summary of at most so many characters of JSON."""
        summary = self.summary if longest is None else shortened(self.summary, longest)
        return {"summary": summary, "degraded": self.degraded} if self.degraded else summary


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """What a planning call gave: the reading (a draft or faults), the raw answer, and the prompt file's hash."""

    reading: Reading
    answer: ModelAnswer
    prompt_sha256: str


@dataclass(frozen=True, slots=True)
class Part:
    """What is told of a sub-goal beside its words: the goals it is a part of, the outermost first; what its references
    stand for; who reads its result; what the ids of its steps begin with; which form its answer is to have."""

    of: tuple[str, ...]
    values: Mapping[str, JSON]
    read_by: Mapping[str, JSON]
    prefix: str
    schema: Mapping[str, JSON] | None = None


async def draft_plan(
    model: Asks,
    goal: str,
    inputs: Mapping[str, Any],
    catalog: Iterable[Tool],
    *,
    faults: Sequence[Fault] = (),
    finished: Sequence[FinishedStep] = (),
    failure: Failure | None = None,
    few_shots: Sequence[tuple[str, JSON]] = (),
    budget: int = PROMPT_TOKENS,
    part: Part | None = None,
    subgoals: bool = False,
    secrets: Sequence[str] = (),
) -> PlannerAnswer:
    """Ask for a plan. `catalog` is what this run may use now; a `Path` among the inputs is a file.

    With `finished` steps the draft holds only what is still to be done (see `keeping`); of a `part` it holds the part
    alone. Only with `subgoals` may a step of it be planned later. Raises ModelFailed where
    there was no answer; an answer that is no plan comes back as faults. A prompt is as long as
    `budget` allows, in tokens, and shorter where the endpoint finds that too long (`nodes/budget.py`).
    """
    catalog = list(catalog)
    form = PlanForm(catalog, subgoals=subgoals)
    told: dict[str, Any] = {
        "faults": faults,
        "finished": finished,
        "failure": failure,
        "part": part,
        "secrets": secrets,
    }
    write = partial(planning_prompt, goal, inputs, catalog, few_shots=few_shots, **told)
    answer = await _asked(model, fitted(lambda cut: write(cut=cut), budget), form)
    return PlannerAnswer(read_answer(answer, form), answer, PLANNER.sha256)


async def _asked(model: Asks, prompts: Iterable[Rendered], form: PlanForm) -> ModelAnswer:
    """The answer to the first prompt that the endpoint does not find too long."""
    refused: PromptTooLong | None = None
    for prompt in prompts:
        try:
            return await model.ask(prompt, schema=form.schema)
        except PromptTooLong as too_long:
            refused = too_long
    raise refused or AssertionError("there is always a prompt")


def planning_prompt(
    goal: str,
    inputs: Mapping[str, Any],
    catalog: Iterable[Tool],
    *,
    faults: Sequence[Fault] = (),
    finished: Sequence[FinishedStep] = (),
    failure: Failure | None = None,
    few_shots: Sequence[tuple[str, JSON]] = (),
    part: Part | None = None,
    secrets: Sequence[str] = (),
    cut: Cut = WHOLE,
) -> Rendered:
    """The prompt of a planning call. Results appear in it by their summaries only, and everything quoted. What the cut
    leaves out is named."""
    catalog = list(catalog)
    sections = ["task", *(["part"] if part is not None else [])]
    sections += ["asking"] if any(tool.name == ASK_USER for tool in catalog) else []
    shots = few_shots if cut.examples else ()
    holes = {
        "schema": quoted(PLAN_SCHEMA),
        "tools": quoted(described(catalog, cut.detail)),
        "examples": "\n\n".join(f"For the goal {quoted(asked)}:\n\n{quoted(plan)}" for asked, plan in shots),
        "goal": quoted(goal),
        "inputs": quoted(inputs_shown(inputs)),
        **_part(part),
    }
    if secrets:
        sections.append("secrets")
        holes["secrets"] = quoted([f"${{secrets.{name}}}" for name in secrets])
    if finished:
        sections.append("finished")
        holes["finished"] = quoted(_history(finished, cut.history))
    if failure is not None:
        sections.append("failure")
        holes["failure"] = quoted({"step": failure.step_id, "tool": failure.tool, **failure_shown(failure)})
    if faults:
        sections.append("faults")
        holes["faults"] = quoted([text_shown(str(fault)) for fault in faults[:MAX_FAULTS]])
    if left_out := _left_out(cut, few_shots, finished):
        sections.append("left_out")
        holes["left_out"] = "; ".join(left_out)
    return PLANNER.render(sections, holes)


def _part(part: Part | None) -> dict[str, str]:
    if part is None:
        return {}
    answer = {"schema": dict(part.schema)} if part.schema is not None else {}
    return {
        "part_of": quoted(list(part.of)),
        "values": quoted(dict(part.values)),
        "read_by": quoted({**answer, "by": dict(part.read_by)}),
        "prefix": part.prefix,
    }


def _left_out(cut: Cut, few_shots: Sequence[Any], finished: Sequence[FinishedStep]) -> list[str]:
    """What a prompt says of what is missing in it."""
    told = ["examples"] if few_shots and not cut.examples else []
    if len(finished) > cut.history:
        told.append(f"the results of the first {len(finished) - cut.history} finished steps")
    if cut.detail == Detail.RESULT_TYPES:
        told.append("schemas of results: a type stands there, in which `?` marks what may be missing")
    elif cut.detail == Detail.TYPES:
        told.append("schemas of tools: types stand there, in which `?` marks what may be left out")
    elif cut.detail == Detail.ARGUMENT_TYPES:
        told.append("what tools return, and schemas: types stand there, in which `?` marks what may be left out")
    return told


def read_answer(answer: ModelAnswer, form: PlanForm) -> Reading:
    """The plan in a model's answer, or what is wrong with it. Who was held to no form has written the plan's own."""
    if failed := unusable(answer):
        return Reading(draft=None, repaired=False, faults=(Fault(code=failed.fault, message=str(failed)),))
    return read_plan(answer.text, answer.finish_reason, form=None if answer.mode == "text" else form.restored)


def keeping(finished: Iterable[StepDraft], draft: PlanDraft) -> PlanDraft:
    """The draft with the finished steps in front, each byte for byte; one that was merely repeated is dropped."""
    kept = {step.id: step for step in finished}
    new = (step for step in draft.steps if step.id not in kept or not _repeats(step, kept[step.id]))
    return draft.model_copy(update={"steps": (*kept.values(), *new)})


def _repeats(step: StepDraft, stored: StepDraft) -> bool:
    """Whether a step is a stored one over again, as an author writes it: without what validation has added."""
    risk = step.risk or stored.risk
    after = stored.depends_on if set(step.depends_on) <= set(stored.depends_on) else step.depends_on
    return step.model_copy(update={"risk": risk, "depends_on": after}).model_dump() == stored.model_dump()


def _history(finished: Sequence[FinishedStep], newest: int) -> list[JSON]:
    """The finished steps in their order: of the newest what they gave, of those before only that there is something."""
    older = len(finished) - newest
    return [_finished(step) if place >= older else _mentioned(step) for place, step in enumerate(finished)]


def _finished(finished: FinishedStep) -> JSON:
    step = finished.step
    args = texts_cut(step.args)
    return {"id": step.id, "title": step.title, "tool": step.tool, "args": args, "result": finished.shown()}


def _mentioned(finished: FinishedStep) -> JSON:
    return {"id": finished.step.id, "tool": finished.step.tool}
