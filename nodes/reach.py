"""What a repair of one step has to know of the plan around it: what it may read, and what is read of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodes.catalog import inputs_shown, summary
from nodes.planner import FinishedStep
from plans.expressions import names_in
from plans.plan import Plan, Step, StepDraft
from plans.references import references_in
from plans.values import JSON

MAX_ARGUMENT = 600
"""Longest argument of the failed step that is shown whole, as JSON text."""
MAX_RESULT = 500
MAX_RESULTS = 1_600
"""Characters of JSON that the summary of one result may have, and all of them together."""
MAX_NEEDED = 20
"""References to the failed step that are shown; the hundredth reader rarely reads something new."""

_FIRST_FIELD = re.compile(r"\.([A-Za-z_]\w*)")


def results_in_reach(
    plan: Plan, failed: StepDraft, inputs: Mapping[str, Any], finished: Sequence[FinishedStep]
) -> dict[str, JSON]:
    """What a replacement may refer to: inputs (those that the failed step reads as they are, of others the shape), and
    the results of the steps that it rested on, the nearest first, as far as there is room."""
    written = [reference.path for reference in references_in(_written(failed)) if reference.name == "inputs"]
    read = {field[1] for path in written if (field := _FIRST_FIELD.match(path))}
    shown = inputs_shown({name: value for name, value in inputs.items() if name in read})
    others = {name: summary(value) if _is_plain(value) else value for name, value in inputs.items() if name not in read}
    told: dict[str, JSON] = {"inputs": {**shown, **inputs_shown(others)}} if inputs else {}
    results = {done.step.id: done for done in finished}
    left = MAX_RESULTS
    for name in _rests_on(plan, failed):
        if (done := results.get(name)) is None:
            continue
        shown_result = done.shown(MAX_RESULT)
        left -= len(json.dumps(shown_result, ensure_ascii=False))
        if left < 0:
            told["more"] = "results of steps before these are not listed"
            break
        told[name] = shown_result
    return told


def args_shown(failed: StepDraft) -> dict[str, JSON]:
    """The failed step's arguments; of a long one the beginning, and a reference by which it can be kept."""
    return {
        name: _beginning(name, value) if name in long_args(failed) else value for name, value in failed.args.items()
    }


def long_args(failed: StepDraft) -> frozenset[str]:
    """The arguments of which a prompt shows only the beginning."""
    return frozenset(name for name, value in failed.args.items() if len(json.dumps(value)) > MAX_ARGUMENT)


def kept_reference(name: str) -> str:
    """What stands for an argument that is to stay as it is, in the answer to a repair only."""
    return f"${{kept.{name}}}"


def _beginning(name: str, value: JSON) -> JSON:
    text = json.dumps(value, ensure_ascii=False)
    return {"kept": kept_reference(name), "beginning": text[: MAX_ARGUMENT // 2], "characters": len(text)}


def needed(plan: Plan, step_id: str) -> list[JSON]:
    """The references and conditions by which others read a step's result, each once; the answer is a reader too."""
    found = dict.fromkeys(_read_by(plan, step_id))
    return list(found)[:MAX_NEEDED]


def needed_fields(plan: Plan, step_id: str) -> frozenset[str]:
    """The fields that others read directly of a step's result."""
    paths = [
        reference.path for value in _readers(plan) for reference in references_in(value) if reference.name == step_id
    ]
    return frozenset(field[1] for path in paths if (field := _FIRST_FIELD.match(path)))


def _rests_on(plan: Plan, failed: StepDraft) -> Iterator[str]:
    """The steps before one, the nearest first."""
    steps = {step.id: step for step in plan.steps}
    seen, level = set[str](), list(failed.depends_on)
    while level:
        fresh = [name for name in dict.fromkeys(level) if name not in seen]
        seen.update(fresh)
        yield from fresh
        level = [name for each in fresh if each in steps for name in steps[each].depends_on]


def _read_by(plan: Plan, step_id: str) -> Iterator[str]:
    for value in _readers(plan):
        yield from (str(reference) for reference in references_in(value) if reference.name == step_id)
    for step in plan.steps:
        yield from (each for each in (step.when, step.requires) if each is not None and step_id in names_in(each))


def _readers(plan: Plan) -> Iterator[JSON]:
    for step in plan.steps:
        yield _written(step)
    yield plan.answer


def _written(step: Step | StepDraft) -> JSON:
    return [step.args, step.instruction, step.for_each]


def _is_plain(value: Any) -> bool:
    """Whether an input is a value of JSON; a file is a Path."""
    return value is None or isinstance(value, str | bool | int | float | list | dict)
