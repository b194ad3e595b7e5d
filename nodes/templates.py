"""Plans without a model: the shipped templates and a user's own, read from folders of YAML and proved before use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from nodes.template_files import Example, TemplateFile, Words, faults_of, read_template, read_words
from nodes.template_near import near
from nodes.template_plans import Filled, Template, choose, fill, match, named
from nodes.template_text import Language, in_language
from plans.errors import ConfigurationError, InvalidInput
from plans.values import JSON

__all__ = [
    "Filled", "Template", "choose", "fill", "load_templates", "match", "named", "near", "overview", "read_folder",
]  # fmt: skip

SHARED_WORDS = "_words.yaml"
"""The file of a folder that holds words for the patterns of all its templates."""


def load_templates(folder: Traversable | None = None) -> tuple[Template, ...]:
    """A folder's templates, then the shipped ones; a folder's template replaces the shipped one of its name.

    Raises ConfigurationError with every fault of every file of the folder.
    """
    own = read_folder(folder) if folder is not None else ()
    names = {template.name for template in own}
    shipped = read_folder(files("nodes").joinpath("templates"), proved=True)
    return (*own, *(template for template in shipped if template.name not in names))


def overview(templates: Iterable[Template], locale: str = "en") -> list[dict[str, JSON]]:
    """What can be shown of each template: name, title, toolkit, whether it is critical, parameters, example goals.

    Texts are Chinese where the locale is (`zh`, `zh_CN`), else English.
    """
    language: Language = "zh" if locale.lower().startswith("zh") else "en"
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


def read_folder(folder: Traversable, *, proved: bool = False) -> tuple[Template, ...]:
    """The templates of a folder by file name. What is already `proved` is not tried on its examples again.

    Raises ConfigurationError with every fault of every file.
    """
    faults: list[str] = []
    templates: list[Template] = []
    if not folder.is_dir():
        raise ConfigurationError(f"the folder of templates {folder} does not exist or is not a folder")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    shared, wrong = _shared_words(found)
    faults += [f"{SHARED_WORDS}: {fault}" for fault in wrong]
    for file in found:
        if file.name != SHARED_WORDS:
            template, wrong = _read_file(file, shared, proved=proved)
            faults += [f"{file.name}: {fault}" for fault in wrong]
            templates += [template] if template else []
    if faults:
        raise ConfigurationError("\n  ".join((f"the templates in {folder} cannot be used:", *faults)))
    return tuple(templates)


def _shared_words(found: Iterable[Traversable]) -> tuple[Words, list[str]]:
    for file in found:
        if file.name == SHARED_WORDS:
            return read_words(file.read_text("utf-8"))
    return {}, []


def _read_file(file: Traversable, shared: Words, *, proved: bool) -> tuple[Template | None, list[str]]:
    try:
        written, faults = read_template(file.read_text("utf-8"), shared)
    except (OSError, UnicodeDecodeError) as error:
        return None, [f"cannot be read: {error}"]
    if written is None or proved:
        return Template(written) if written else None, faults
    if faults := faults_of(written):
        return None, faults
    return Template(written), [*_name_faults(file, written), *example_faults(Template(written))]


def _name_faults(file: Traversable, written: TemplateFile) -> list[str]:
    stem = file.name.rpartition(".")[0]
    return [] if stem == written.name else [f"name: {written.name!r} is not the file's name, {stem!r}"]


def example_faults(template: Template) -> Iterator[str]:
    """What a template does otherwise than its examples and its `others` say."""
    for goal in template.written.others:
        if template.matched(goal):
            yield f"others: it matches {goal!r}"
    for index, example in enumerate(template.written.examples):
        if wrong := _wrong_with(template, example):
            yield f"examples[{index}] ({example.goal!r}): {wrong}"


def _wrong_with(template: Template, example: Example) -> str | None:
    inputs = {name: example_input(value) for name, value in example.inputs.items()}
    try:
        found = match(example.goal, inputs, [template])
        if found is None:
            return "no pattern matches it"
        found.draft, found.on_exhausted  # noqa: B018  # what cannot be filled raises
    except (InvalidInput, ValidationError) as error:
        return " ".join(str(error).split())
    extracted = {name: found.parameters.get(name) for name in example.parameters}
    return None if extracted == example.parameters else f"gives {extracted}, expected {example.parameters}"


def example_input(value: JSON) -> Any:
    """An input of an example: a file is a path."""
    is_file = isinstance(value, Mapping) and set(value) == {"file"}
    return PurePath(value["file"]) if is_file else value
