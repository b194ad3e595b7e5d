"""A step with `action: llm`: a model judges or writes from the outputs of the step's dependencies, and is checked.

The instruction goes out as its author wrote it; what its references stand for travels beside it as quoted data, so
that a tool's result cannot turn into an instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nodes.answered import unusable
from nodes.model_errors import AnswerUnusable
from nodes.models import Asks, ModelAnswer
from nodes.prompts import bounded, load, quoted
from nodes.schemas import problems
from plans.plan import RESERVED_NAMES, StepDraft
from plans.references import follow, references_in
from plans.values import JSON, clean

MAX_VALUES = 24_000
"""Characters of JSON that all values together may have in one prompt: about 8,000 tokens."""
MAX_TOKENS = 2_000
"""Longest answer of an llm step, in tokens."""

NOTHING: Mapping[str, str] = MappingProxyType({})

JUDGE = load("judge")
_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[A-Za-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an llm step gave: its checked value, the raw answer, and the prompt file's hash."""

    value: JSON
    answer: ModelAnswer
    prompt_sha256: str


def values_for(step: StepDraft, named: Mapping[str, JSON]) -> dict[str, JSON]:
    """What an llm step sees, by reference as it is written. `named` are the values of its dependencies, inputs, item.

    Dependencies that nothing refers to are seen whole. Raises UnresolvedReference.
    """
    references = references_in([step.instruction, step.args])
    values = {str(reference): follow(reference, named.__getitem__) for reference in references}
    read = {reference.name for reference in references}
    whole = [name for name in step.depends_on if name not in read | RESERVED_NAMES and name in named]
    return values | {f"${{{name}}}": named[name] for name in whole}


async def judge(
    model: Asks,
    step: StepDraft,
    values: Mapping[str, JSON],
    *,
    goal: str,
    missing: Sequence[str] = (),
    degraded: Mapping[str, str] = NOTHING,
) -> Judgement:
    """The step's value: what its `output_schema` describes, or text where it has none. `degraded` says of inputs, by
    name, why they are not what was asked for.

    Raises ModelFailed: MODEL_REFUSED for a refusal or a filter, MODEL_ANSWER_INVALID for an answer that is cut,
    empty, given twice or not of the schema; it then carries the answer and what was spent.
    """
    holes = {
        "goal": quoted(goal),
        "values": quoted(bounded(values, MAX_VALUES)),
        "missing": quoted(list(missing)),
        "instruction": quoted(step.instruction),
    }
    sections = ["task", "instruction"]
    if degraded:
        sections.insert(1, "degraded")
        holes["degraded"] = quoted(dict(degraded))
    if step.output_schema is None:
        prompt = JUDGE.render([*sections, "as_text"], holes)
    else:
        prompt = JUDGE.render([*sections, "as_json"], holes | {"schema": quoted(step.output_schema)})
    answer = await model.ask(prompt, schema=step.output_schema, max_tokens=MAX_TOKENS)
    return Judgement(accepted(answer, step.output_schema), answer, prompt.sha256)


def accepted(answer: ModelAnswer, output_schema: Mapping[str, JSON] | None) -> JSON:
    """The value in an answer, checked; ModelFailed if there is none to trust."""
    if failed := unusable(answer):
        raise failed
    text = _THOUGHTS.sub("", answer.text, count=1)
    try:
        return clean(text.strip() if output_schema is None else _conforming(text, output_schema))
    except ValueError as error:
        why = str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"it is no JSON (line {error.lineno}, column {error.colno})"
        message = f"the model's answer cannot be used: {why}"
        failed = AnswerUnusable(message, raw=answer.text, answer=answer)
        failed.spent = answer.spent
        raise failed from None


def _conforming(text: str, schema: Mapping[str, JSON]) -> JSON:
    """The JSON in a text, fenced or bare. ValueError says what is wrong, all of it at once."""
    fenced = _FENCE.match(text)
    value = json.loads(fenced[1] if fenced else text, object_pairs_hook=_once, parse_constant=_no_number)
    if wrong := problems(value, schema):
        raise ValueError("; ".join(wrong))
    return value


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(name: str) -> JSON:
    raise ValueError(f"{name} is no JSON number")
