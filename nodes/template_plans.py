"""From a goal to a plan by a template: whether it does what the whole goal asks, with which parameters, which plan.

A pattern covers the whole goal, politeness aside, so that a goal which asks for more than a template does is left
alone. Inputs are JSON values; a `Path` among them is a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nodes.template_files import PlanBody, TemplateFile
from nodes.template_parameters import checked, parameters_from
from nodes.template_text import (
    HOLE,
    LANGUAGES,
    MAX_GOAL,
    Language,
    Reference,
    comparable,
    filled,
    in_language,
    language_of,
)
from nodes.template_words import Vocabulary, vocabulary
from plans.errors import InvalidInput
from plans.plan import PlanDraft
from plans.values import JSON, sha256_of

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Template:
    """One template. Its patterns are compiled when a goal is first held against them."""

    written: TemplateFile

    @property
    def name(self) -> str:
        """The name it is called by."""
        return self.written.name

    @property
    def tools(self) -> frozenset[str]:
        """The tools its plan uses; the simplified one may lack some of its own."""
        return frozenset(step["tool"] for step in self.written.plan.steps if step.get("tool"))

    @cached_property
    def sha256(self) -> str:
        """The hash of what it says, the shared words that it may use among it: another file is another template."""
        said = self.written.model_dump(mode="json", exclude=None if self.written.tenants else {"tenants"})
        return sha256_of(said)

    def is_for(self, tenant: str) -> bool:
        """Whether runs of this tenant may be made of it."""
        return not self.written.tenants or tenant in self.written.tenants

    @cached_property
    def vocabularies(self) -> Mapping[Language, Vocabulary]:
        """What it says, word by word, in each language."""
        return {language: vocabulary(self.written, language) for language in LANGUAGES}

    def title(self, language: Language = "en") -> str:
        """Its title in a language."""
        return str(in_language(self.written.title, language))

    def matched(self, goal: str) -> tuple[Language, dict[str, str]] | None:
        """The language it understands the goal in and the goal's words for parameters; None if it does not."""
        if len(goal) > MAX_GOAL:
            return None
        for language in _languages_of(goal):
            text = comparable(goal, language)
            for pattern in self.written.patterns(language):
                if found := pattern.fullmatch(text):
                    return language, {name: words for name, words in found.groupdict().items() if words is not None}
        return None


@dataclass(frozen=True, slots=True)
class Filled:
    """A template with everything it needs. A file parameter's value is the name of the input that is the file."""

    template: Template
    goal: str
    language: Language
    parameters: Mapping[str, JSON]

    @property
    def draft(self) -> PlanDraft:
        """The plan it gives."""
        return fill(self.template, self.parameters, self.goal, self.language)

    @property
    def on_exhausted(self) -> PlanDraft | None:
        """The simplified plan for when nothing mends that one; None if the template has none."""
        simpler = self.template.written.on_exhausted
        return None if simpler is None else fill(self.template, self.parameters, self.goal, self.language, body=simpler)


def named(name: str, templates: Sequence[Template]) -> Template:
    """The template of this name; InvalidInput lists those there are."""
    for template in templates:
        if template.name == name:
            return template
    known = ", ".join(sorted(template.name for template in templates))
    raise InvalidInput(f"there is no template {name!r}; there are: {known or 'none'}")


def match(
    goal: str, inputs: Mapping[str, Any], templates: Iterable[Template], *, tools: Collection[str] | None = None
) -> Filled | None:
    """The first template that does what the whole goal asks, with its parameters; None if there is none.

    `tools` are the names that exist: a template that needs another is passed over. Raises InvalidInput where a
    template matches but an input it needs is missing, ambiguous or wrong.
    """
    for template in templates:
        if tools is not None and not template.tools <= set(tools):
            continue
        if found := template.matched(goal):
            language, groups = found
            return Filled(template, goal, language, parameters_from(template.written, inputs, groups))
    return None


def choose(templates: Sequence[Template], name: str, inputs: Mapping[str, Any], goal: str | None = None) -> Filled:
    """A template asked for by name: parameters come from the inputs, and from the goal where it matches.

    Raises InvalidInput for a name that is none, and for parameters that are missing or wrong.
    """
    template = named(name, templates)
    language, groups = template.matched(goal or "") or (language_of(goal or ""), {})
    return Filled(
        template, goal or template.title(language), language, parameters_from(template.written, inputs, groups)
    )


def fill(
    template: Template,
    parameters: Mapping[str, JSON],
    goal: str,
    language: Language | None = None,
    *,
    body: PlanBody | None = None,
) -> PlanDraft:
    """The plan of a template, or another `body` of its, for these parameters, in a language or that of the goal.

    Raises InvalidInput.
    """
    language = language or language_of(goal)
    values: dict[str, JSON | Reference] = {"goal": goal, "language": language}
    for name, value in checked(template.written, parameters).items():
        is_file = template.written.parameters[name].source == "file"
        values[name] = _input_reference(str(value)) if is_file else value
    plan = in_language((body or template.written.plan).model_dump(), language)
    steps = [_step(step, values) for step in plan["steps"]]
    return PlanDraft.model_validate({"goal": goal, "steps": steps, "answer": filled(plan["answer"], values)})


def _step(step: Mapping[str, JSON], values: Mapping[str, JSON | Reference]) -> JSON:
    """A step with its holes filled; an argument that is nothing but a hole without a value is left out."""
    args = {name: value for name, value in (step.get("args") or {}).items() if not _is_left_open(value, values)}
    return filled({**step, "args": args}, values)


def _is_left_open(value: JSON, values: Mapping[str, JSON | Reference]) -> bool:
    hole = HOLE.fullmatch(value) if isinstance(value, str) else None
    return hole is not None and values[hole[1]] is None


def _languages_of(goal: str) -> tuple[Language, ...]:
    """Patterns of these languages can match: a goal without Chinese characters is not Chinese."""
    return ("zh", "en") if language_of(goal) == "zh" else ("en",)


def _input_reference(name: str) -> Reference:
    return Reference(
        "${inputs." + (name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)) + "}"
    )
