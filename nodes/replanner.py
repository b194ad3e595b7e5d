"""One repair call: the failed step, its failure and the tools that may stand in go to a small model; one step comes
back.

The prompt holds what that takes and no more (`nodes/shortlist.py` says which tools; `bench/w7.py` measures it). The
replacement keeps the failed step's id, because that step is not finished; everything else of the plan stays byte for
byte. What guards the step (approval, risk, verification) can only be added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodes.catalog import failure_shown, text_shown, texts_cut
from nodes.models import Asks, ModelAnswer
from nodes.plan_form import RepairForm
from nodes.planner import FinishedStep, read_answer
from nodes.prompts import Rendered, load, quoted
from nodes.reach import args_shown, kept_reference, long_args, needed, needed_fields, results_in_reach
from nodes.shortlist import Shortlist, shortlist
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import Plan, PlanDraft, StepDraft, highest_risk
from plans.reader import Reading
from tools.tool import Tool

MAX_FAULTS = 10
"""Faults of a refused replacement that are shown."""

REPLANNER = load("replanner")


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair call gave: the replacement or faults, the raw answer, and the prompt file's hash."""

    step: StepDraft | None
    faults: tuple[Fault, ...]
    repaired: bool
    answer: ModelAnswer
    prompt_sha256: str


@dataclass(frozen=True, slots=True)
class Broken:
    """What has to be mended, and in what: `own` is the failed step's tool as it is registered, `finished` are steps
    with a result, `faults` those of the replacement before."""

    plan: Plan
    failure: Failure
    inputs: Mapping[str, Any]
    own: Tool | None = None
    finished: Sequence[FinishedStep] = ()
    faults: Sequence[Fault] = ()

    @property
    def step(self) -> StepDraft:
        """The step that failed: a child's parent for `s3[0]`, which has no definition of its own."""
        return self.plan.step((self.failure.step_id or "").partition("[")[0])


async def redraw_step(model: Asks, broken: Broken, catalog: Iterable[Tool], *, closer: Asks | None = None) -> Repair:
    """Ask for a step in the place of the one that failed. An answer that names a tool whose outline was not shown is
    asked for once more, of `closer`, with that outline.

    Raises ModelFailed where there was no answer; an answer that is no single step comes back as faults.
    """
    catalog = list(catalog)
    tools = shortlist(broken.step, broken.own, needed_fields(broken.plan, broken.step.id), catalog)
    repair = await _asked(model, broken, tools)
    nearer = tools.closer(repair.step.tool) if repair.step is not None else None
    if nearer is not None:
        repair = await _asked(closer or model, broken, nearer)
    return _no_further(repair, tools, catalog)


async def _asked(model: Asks, broken: Broken, tools: Shortlist) -> Repair:
    form = RepairForm(broken.step.id, tools.shown, (tool.name for tool in tools.named))
    prompt = repair_prompt(broken, tools)
    answer = await model.ask(prompt, schema=form.schema)
    reading = read_answer(answer, form)
    step, found = _single(reading, broken.step)
    return Repair(step, found, reading.repaired, answer, prompt.sha256)


def _no_further(repair: Repair, tools: Shortlist, catalog: Iterable[Tool]) -> Repair:
    """A replacement whose tool may not stand in is a fault. What is no tool, or none of this run, the linter finds."""
    step, tool = repair.step, repair.step.tool if repair.step is not None else None
    if step is None or tool is None or tool in tools.names or all(each.name != tool for each in catalog):
        return repair
    message = f"{tool} changes the world in a way that the failed step would not have"
    fault = Fault(code="NOT_PERMITTED", step=step.id, path="tool", message=message)
    return replace(repair, step=None, faults=(fault,))


def repair_prompt(broken: Broken, tools: Shortlist) -> Rendered:
    """The prompt of a repair call: nothing of the plan but the failed step, what it may read and what is read of it."""
    plan, failed = broken.plan, broken.step
    sections = ["task", "kept"] if long_args(failed) else ["task"]
    written = failed.model_dump(mode="json", exclude_defaults=True)
    holes = {
        "goal": quoted(text_shown(plan.goal)),
        "step": quoted({**texts_cut(written), "args": args_shown(failed)}),
        "failure": quoted(failure_shown(broken.failure)),
        "available": quoted(results_in_reach(plan, failed, broken.inputs, broken.finished)),
        "needed": quoted(needed(plan, failed.id)),
        "tools": quoted(tools.outlines()),
    }
    if tools.named:
        sections.append("others")
        holes["others"] = quoted(tools.lines)
    if broken.faults:
        sections.append("faults")
        holes["faults"] = quoted([text_shown(str(fault)) for fault in broken.faults[:MAX_FAULTS]])
    return REPLANNER.render(sections, holes)


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
    kept = {kept_reference(name): failed.args[name] for name in long_args(failed)}
    return step.model_copy(
        update={
            "args": {n: kept.get(value, value) if isinstance(value, str) else value for n, value in step.args.items()},
            "id": failed.id,
            "title": step.title or failed.title,
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
