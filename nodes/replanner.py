"""One repair call: the failed step, its failure and the tools go to a small model; one step comes back.

The replacement keeps the failed step's id, because that step is not finished; everything else of the plan stays byte
for byte. What guards the step (approval, risk, verification) can only be added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.catalog import Offered, described, inputs_shown
from nodes.models import Asks, ModelAnswer
from nodes.plan_form import PLAN_SCHEMA, PlanForm
from nodes.planner import MAX_FAULTS, FinishedStep, read_answer
from nodes.prompts import Rendered, load, quoted
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import Plan, PlanDraft, StepDraft, highest_risk
from plans.reader import Reading
from plans.references import references_in
from plans.values import JSON

REPLANNER = load("replanner")


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair call gave: the replacement or faults, the raw answer, and the prompt file's hash."""

    step: StepDraft | None
    faults: tuple[Fault, ...]
    repaired: bool
    answer: ModelAnswer
    prompt_sha256: str


async def redraw_step(
    model: Asks,
    plan: Plan,
    failure: Failure,
    inputs: Mapping[str, Any],
    catalog: Iterable[Offered],
    *,
    finished: Sequence[FinishedStep] = (),
    faults: Sequence[Fault] = (),
) -> Repair:
    """Ask for a step in the place of the one that failed (`failure.step_id`, a child's parent for `s3[0]`).

    Raises ModelFailed where there was no answer; an answer that is no single step comes back as faults.
    """
    failed = plan.step((failure.step_id or "").partition("[")[0])
    catalog = list(catalog)
    form = PlanForm(catalog)
    prompt = repair_prompt(plan, failed, failure, inputs, catalog, finished=finished, faults=faults)
    answer = await model.ask(prompt, schema=form.schema)
    reading = read_answer(answer, form)
    step, found = _single(reading, failed)
    return Repair(step, found, reading.repaired, answer, prompt.sha256)


def repair_prompt(
    plan: Plan,
    failed: StepDraft,
    failure: Failure,
    inputs: Mapping[str, Any],
    catalog: Iterable[Offered],
    *,
    finished: Sequence[FinishedStep] = (),
    faults: Sequence[Fault] = (),
) -> Rendered:
    """The prompt of a repair call: nothing of the plan but the failed step, what it may read and who reads it."""
    available = {done.step.id: done.shown() for done in finished}
    holes = {
        "schema": quoted(PLAN_SCHEMA),
        "tools": quoted(described(catalog)),
        "goal": quoted(plan.goal),
        "step": quoted(failed.model_dump(mode="json", exclude_defaults=True)),
        "failure": quoted(failure.for_model()),
        "available": quoted({"inputs": inputs_shown(inputs), **available}),
        "read_by": quoted(_readers(plan, failed.id)),
    }
    if faults:
        holes["faults"] = quoted([str(fault) for fault in faults[:MAX_FAULTS]])
    return REPLANNER.render(["task", "faults"] if faults else ["task"], holes)


def with_replacement(plan: Plan, replacement: StepDraft) -> PlanDraft:
    """The plan's draft with one step replaced; the others are the same values."""
    draft = plan.draft
    steps = tuple(replacement if step.id == replacement.id else step for step in draft.steps)
    return draft.model_copy(update={"steps": steps})


def _single(reading: Reading, failed: StepDraft) -> tuple[StepDraft | None, tuple[Fault, ...]]:
    if reading.draft is None:
        return None, tuple(reading.faults)
    if len(reading.draft.steps) != 1:
        message = f"one step was asked for, {len(reading.draft.steps)} came"
        return None, (Fault(code="PLAN_AMBIGUOUS", message=message, step=failed.id, path="steps"),)
    return _guarded(reading.draft.steps[0], failed), ()


def _guarded(step: StepDraft, failed: StepDraft) -> StepDraft:
    """The new step under the old one's id and conditions, guarded at least as well."""
    return step.model_copy(
        update={
            "id": failed.id,
            "when": failed.when,
            "requires": failed.requires,
            "for_each": failed.for_each,
            "depends_on": tuple(dict.fromkeys((*failed.depends_on, *step.depends_on))),
            "on_dependency_failure": failed.on_dependency_failure,
            "require_approval": failed.require_approval or step.require_approval,
            "verify_after": failed.verify_after or step.verify_after,
            "risk": highest_risk(failed.risk, step.risk),
        }
    )


def _readers(plan: Plan, step_id: str) -> dict[str, JSON]:
    """Who refers to a step's result, and by which references; the answer counts as a reader."""
    texts = {step.id: [step.args, step.instruction, step.for_each] for step in plan.steps} | {"answer": [plan.answer]}
    found = {
        reader: [str(reference) for reference in references_in(values) if reference.name == step_id]
        for reader, values in texts.items()
    }
    return {reader: references for reader, references in found.items() if references}
