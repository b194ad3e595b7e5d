"""Plans without a model: templates that match a goal, take their parameters from it and its inputs, and give a plan.

A pattern covers the whole goal, politeness aside, so that a goal which asks for more than a template does is left
alone. Inputs are JSON values; a `Path` among them is a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from nodes.template_files import Example, TemplateFile, Words, read_template, read_words
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
from plans.errors import ConfigurationError, InvalidInput
from plans.plan import PlanDraft
from plans.values import JSON

SHARED_WORDS = "_words.yaml"
"""The file of a folder that holds words for the patterns of all its templates."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Template:
    """One template, ready to match: as written, with its patterns compiled."""

    written: TemplateFile
    patterns: tuple[tuple[Language, re.Pattern[str]], ...]

    @property
    def name(self) -> str:
        """The name it is called by."""
        return self.written.name

    @property
    def tools(self) -> frozenset[str]:
        """The tools its plan uses."""
        return frozenset(step["tool"] for step in self.written.plan.steps if step.get("tool"))

    def title(self, language: Language = "en") -> str:
        """Its title in a language."""
        return str(in_language(self.written.title, language))


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


def load_templates(folder: Traversable | None = None) -> tuple[Template, ...]:
    """A folder's templates, then the shipped ones; a folder's template replaces the shipped one of its name.

    Raises ConfigurationError with every fault of every file.
    """
    own = list(_read_folder(folder)) if folder is not None else []
    names = {template.name for template in own}
    shipped = _read_folder(files("nodes").joinpath("templates"))
    return (*own, *(template for template in shipped if template.name not in names))


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
        if found := _matched(template, goal):
            language, groups = found
            return Filled(template, goal, language, parameters_from(template.written, inputs, groups))
    return None


def choose(templates: Sequence[Template], name: str, inputs: Mapping[str, Any], goal: str | None = None) -> Filled:
    """A template asked for by name: parameters come from the inputs, and from the goal where it matches.

    Raises InvalidInput for a name that is none, and for parameters that are missing or wrong.
    """
    template = named(name, templates)
    language, groups = _matched(template, goal or "") or (language_of(goal or ""), {})
    return Filled(
        template, goal or template.title(language), language, parameters_from(template.written, inputs, groups)
    )


def fill(template: Template, parameters: Mapping[str, JSON], goal: str, language: Language | None = None) -> PlanDraft:
    """The plan of a template for these parameters, in a language or that of the goal. Raises InvalidInput."""
    language = language or language_of(goal)
    values: dict[str, JSON | Reference] = {"goal": goal, "language": language}
    for name, value in checked(template.written, parameters).items():
        is_file = template.written.parameters[name].source == "file"
        values[name] = _input_reference(str(value)) if is_file else value
    plan = in_language(template.written.plan.model_dump(), language)
    steps = [_step(step, values) for step in plan["steps"]]
    return PlanDraft.model_validate({"goal": goal, "steps": steps, "answer": filled(plan["answer"], values)})


def _step(step: Mapping[str, JSON], values: Mapping[str, JSON | Reference]) -> JSON:
    """A step with its holes filled; an argument that is nothing but a hole without a value is left out."""
    args = {name: value for name, value in (step.get("args") or {}).items() if not _is_left_open(value, values)}
    return filled({**step, "args": args}, values)


def _is_left_open(value: JSON, values: Mapping[str, JSON | Reference]) -> bool:
    hole = HOLE.fullmatch(value) if isinstance(value, str) else None
    return hole is not None and values[hole[1]] is None


def overview(templates: Iterable[Template], language: Language = "en") -> list[dict[str, JSON]]:
    """What can be shown of each template: name, title, toolkit, whether it is critical, parameters, example goals."""
    return [
        {
            "name": template.name,
            "title": template.title(language),
            "toolkit": template.written.toolkit,
            "critical": template.written.critical,
            "parameters": [
                {
                    "name": name,
                    "from": parameter.source,
                    "about": in_language(parameter.about, language),
                    "required": parameter.required,
                    "default": parameter.default,
                }
                for name, parameter in template.written.parameters.items()
            ],
            "examples": [example.goal for example in template.written.examples],
        }
        for template in templates
    ]


def _matched(template: Template, goal: str) -> tuple[Language, dict[str, str]] | None:
    if len(goal) > MAX_GOAL:
        return None
    texts = {language: comparable(goal, language) for language in LANGUAGES}
    for language, pattern in template.patterns:
        if found := pattern.fullmatch(texts[language]):
            return language, {name: text for name, text in found.groupdict().items() if text is not None}
    return None


def _input_reference(name: str) -> Reference:
    return Reference(
        "${inputs." + (name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)) + "}"
    )


def _read_folder(folder: Traversable) -> Iterator[Template]:
    faults: list[str] = []
    templates: list[Template] = []
    if not folder.is_dir():
        raise ConfigurationError(f"the folder of templates {folder} does not exist or is not a folder")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    shared, wrong = _shared_words(found)
    faults += [f"{SHARED_WORDS}: {fault}" for fault in wrong]
    for file in found:
        if file.name != SHARED_WORDS:
            template, wrong = _read_file(file, shared)
            faults += [f"{file.name}: {fault}" for fault in wrong]
            templates += [template] if template else []
    if faults:
        raise ConfigurationError("\n  ".join((f"the templates in {folder} cannot be used:", *faults)))
    yield from templates


def _shared_words(found: Iterable[Traversable]) -> tuple[Words, list[str]]:
    for file in found:
        if file.name == SHARED_WORDS:
            return read_words(file.read_text("utf-8"))
    return {}, []


def _read_file(file: Traversable, shared: Words) -> tuple[Template | None, list[str]]:
    try:
        written, faults = read_template(file.read_text("utf-8"), shared)
    except (OSError, UnicodeDecodeError) as error:
        return None, [f"cannot be read: {error}"]
    if written is None:
        return None, faults
    template = Template(written, tuple((language, pattern) for language, _, pattern in written.patterns()))
    return template, [*_name_faults(file, written), *_example_faults(template)]


def _name_faults(file: Traversable, written: TemplateFile) -> list[str]:
    stem = file.name.rpartition(".")[0]
    return [] if stem == written.name else [f"name: {written.name!r} is not the file's name, {stem!r}"]


def _example_faults(template: Template) -> Iterator[str]:
    for goal in template.written.others:
        if _matched(template, goal):
            yield f"others: it matches {goal!r}"
    for index, example in enumerate(template.written.examples):
        if wrong := _wrong_with(template, example):
            yield f"examples[{index}] ({example.goal!r}): {wrong}"


def _wrong_with(template: Template, example: Example) -> str | None:
    inputs = {name: _example_input(value) for name, value in example.inputs.items()}
    try:
        found = match(example.goal, inputs, [template])
        if found is None:
            return "no pattern matches it"
        fill(template, found.parameters, found.goal, found.language)
    except (InvalidInput, ValidationError) as error:
        return " ".join(str(error).split())
    extracted = {name: found.parameters.get(name) for name in example.parameters}
    return None if extracted == example.parameters else f"gives {extracted}, expected {example.parameters}"


def _example_input(value: JSON) -> Any:
    is_file = isinstance(value, Mapping) and set(value) == {"file"}
    return PurePath(value["file"]) if is_file else value
