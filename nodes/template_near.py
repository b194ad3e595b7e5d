"""A template for a goal that none matches: the nearest that can be filled and does nothing that nobody asked for.

Two ways lead here. With a small model, the nearest is offered to it (`offered`). After a planner has failed, the
loosest that is acceptable without anybody's judgement is taken (`near`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from nodes.template_nearness import Nearness, nearest
from nodes.template_parameters import parameters_from
from nodes.template_plans import Filled, Template
from nodes.template_slots import candidates, left_over
from nodes.template_text import language_of
from plans.errors import InvalidInput
from plans.values import JSON

OFFERED_FROM = 0.35
"""The least score of a template that a small model is asked about."""
TAKEN_FROM = 0.5
"""The least score of a template that is taken without a model."""

AS_NEAR = 0.05
"""Of templates whose scores differ by less, one that only reads comes first."""


class HasEffect(Protocol):
    """A tool as far as this looks at it."""

    @property
    def effect(self) -> str: ...  # noqa: D102  # the protocol's field is the tool's


def near(
    goal: str, inputs: Mapping[str, Any], templates: Sequence[Template], *, tools: Mapping[str, HasEffect]
) -> Filled | None:
    """The nearest template that does what the goal asks as far as words can say; None if there is none.

    It changes nothing in the world, knows every word of the goal, denies what the goal denies, and finds each of its
    parameters exactly once; nothing that the goal names is left over.
    """
    for each in nearest(goal, templates):
        if each.score < TAKEN_FROM:
            return None
        asks_else = each.strange or each.refused or each.turned or each.like_other >= each.like_example
        if asks_else or not _reads(each.template, tools):
            continue
        if (filled := _filled(each.template, goal, inputs)) is not None:
            return filled
    return None


def offered(
    goal: str, inputs: Mapping[str, Any], templates: Sequence[Template], *, tools: Mapping[str, HasEffect]
) -> Nearness | None:
    """The nearest template that may do what the goal asks, for a small model to judge and to fill; None if there is
    none. The goal names nothing that its parameters could not take, and says all that they need; a template that
    changes something knows every word of it."""
    possible = [
        each
        for each in nearest(goal, templates)
        if each.score >= OFFERED_FROM
        and not each.refused
        and each.like_other <= each.like_example
        and each.template.tools <= set(tools)
        and _could_be_filled(each.template, goal, inputs)
    ]
    equal = [each for each in possible if each.score > possible[0].score - AS_NEAR]
    first = next((each for each in equal if _reads(each.template, tools)), equal[0] if equal else None)
    return first if first is None or not first.strange or _reads(first.template, tools) else None


def _reads(template: Template, tools: Mapping[str, HasEffect]) -> bool:
    return all(name in tools and tools[name].effect == "read" for name in template.tools)


def _filled(template: Template, goal: str, inputs: Mapping[str, Any]) -> Filled | None:
    language = language_of(goal)
    found = candidates(template.written, goal, language)
    if any(len(values) > 1 for values in found.values()):
        return None
    values = _parameters(template, found, inputs)
    if values is None or left_over(goal, values, inputs, template.vocabularies[language].known):
        return None
    return Filled(template, goal, language, values)


def _could_be_filled(template: Template, goal: str, inputs: Mapping[str, Any]) -> bool:
    language = language_of(goal)
    found = candidates(template.written, goal, language)
    possible: dict[str, JSON] = {
        f"{name}{place}": value for name, values in found.items() for place, value in enumerate(values)
    }
    if left_over(goal, possible, inputs, template.vocabularies[language].known):
        return False
    return _parameters(template, found, inputs) is not None


def _parameters(
    template: Template, found: Mapping[str, Sequence[JSON]], inputs: Mapping[str, Any]
) -> dict[str, JSON] | None:
    """The parameters by what the goal says first of each, and by the inputs; None where one is missing or wrong."""
    said = {name: values[0] for name, values in found.items() if values}
    try:
        return parameters_from(template.written, {**inputs, **said}, {})
    except InvalidInput:
        return None
