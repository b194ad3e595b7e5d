"""A small model fills a template that is near to a goal, or says that it is none for it; what it says is checked.

The model judges whether the template does all that the goal asks and nothing more. A value that it gives must fit its
parameter and be the goal's or an input's own, and all that the goal names must be used: else the template is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodes.catalog import inputs_shown
from nodes.judge import accepted
from nodes.models import Asks, ModelAnswer
from nodes.prompts import Rendered, load, quoted
from nodes.strict_arguments import nullable, strict_object
from nodes.template_files import Parameter, TemplateFile
from nodes.template_parameters import parameters_from
from nodes.template_plans import Filled, Template
from nodes.template_slots import is_given, left_over
from nodes.template_text import Language, in_language, language_of
from plans.errors import InvalidInput
from plans.values import JSON

FILLER = load("filler")
MAX_TOKENS = 1_000
"""Longest answer, in tokens: some words and numbers, after what a thinking model thinks."""
SHOWN = 4
"""So many examples are shown, and so many goals that the template leaves alone."""
_KINDS = ("string", "integer", "number", "boolean")
_STEP = ("title", "tool", "args", "instruction", "for_each", "when")


@dataclass(frozen=True, slots=True)
class Filling:
    """What came of the question: the template with its parameters, or why it is not used; and the answer."""

    filled: Filled | None
    why_not: str | None
    answer: ModelAnswer


async def fill_by_model(model: Asks, template: Template, goal: str, inputs: Mapping[str, Any]) -> Filling:
    """Ask whether a template is what a goal asks for, and with what. Raises ModelFailed where there was no answer."""
    schema = answer_schema(template.written, inputs)
    answer = await model.ask(filler_prompt(template, goal, inputs, schema), schema=schema, max_tokens=MAX_TOKENS)
    said = accepted(answer, schema)
    filled, why_not = judged(template, goal, inputs, said)
    return Filling(filled, why_not, answer)


def filler_prompt(template: Template, goal: str, inputs: Mapping[str, Any], schema: Mapping[str, JSON]) -> Rendered:
    """The prompt of the question."""
    holes = {
        "procedure": quoted(_shown(template.written, language_of(goal))),
        "inputs": quoted(inputs_shown(inputs)),
        "goal": quoted(goal),
        "schema": quoted(dict(schema)),
    }
    return FILLER.render(["task"], holes)


def answer_schema(written: TemplateFile, inputs: Mapping[str, Any]) -> dict[str, JSON]:
    """What the model is held to: two judgements, and each parameter that the goal may say."""
    asked = {name: nullable(_kind(each)) for name, each in written.parameters.items() if _is_asked(name, each, inputs)}
    yes_or_no: JSON = {"type": "boolean"}
    return strict_object({"does_all": yes_or_no, "nothing_more": yes_or_no, "parameters": strict_object(asked)})


def judged(
    template: Template, goal: str, inputs: Mapping[str, Any], said: Mapping[str, Any]
) -> tuple[Filled | None, str | None]:
    """The template filled by an answer, or why it is not."""
    if not said["does_all"]:
        return None, "it does not do all that the goal asks"
    if not said["nothing_more"]:
        return None, "it does more than the goal asks"
    given = {name: value for name, value in said["parameters"].items() if value is not None}
    written = template.written
    for name, value in given.items():
        if not is_given(written.parameters[name], value, goal, inputs):
            return None, f"{name} is {value!r}, and neither the goal nor an input says so"
    try:
        values = parameters_from(written, {**inputs, **given}, {})
    except InvalidInput as error:
        return None, str(error)
    language = language_of(goal)
    if left := left_over(goal, values, inputs, template.vocabularies[language].known):
        return None, f"no parameter takes {', '.join(left)}"
    return Filled(template, goal, language, values), None


def _is_asked(name: str, parameter: Parameter, inputs: Mapping[str, Any]) -> bool:
    return parameter.source == "goal" and name not in inputs


def _kind(parameter: Parameter) -> JSON:
    """A parameter's schema in the strict dialect: its choice, or the kinds of values it has; the rest is checked."""
    schema = parameter.json_schema
    if isinstance(choice := schema.get("enum"), list) and all(isinstance(each, str | None) for each in choice):
        return {"type": "string", "enum": [each for each in choice if each is not None]}
    declared = schema.get("type", "string")
    kinds = [kind for kind in (declared if isinstance(declared, list) else [declared]) if kind in _KINDS]
    found: list[JSON] = [{"type": kind} for kind in kinds or ("string",)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _shown(written: TemplateFile, language: Language) -> JSON:
    """A template as the model sees it: what it does, step by step, what it needs, and what it is for and not for."""
    body = in_language(written.plan.model_dump(), language)
    parameters = {
        name: {"about": in_language(each.about, language), "schema": each.json_schema}
        for name, each in written.parameters.items()
        if each.source == "goal"
    }
    examples = [each for each in written.examples if language_of(each.goal) == language] or list(written.examples)
    others = [each for each in written.others if language_of(each) == language]
    return {
        "title": in_language(written.title, language),
        "steps": [{name: step[name] for name in _STEP if step.get(name)} for step in body["steps"]],
        "parameters": parameters,
        "examples": [{"goal": each.goal, "parameters": each.parameters} for each in examples[:SHOWN]],
        "not_for": others[:SHOWN],
    }
