"""A template's parameters: taken from a goal's words, from inputs of their names, or from the input files; checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from nodes.catalog import Unseen
from nodes.schemas import problems
from nodes.template_files import Parameter, TemplateFile
from nodes.template_text import in_language
from plans.errors import InvalidInput
from plans.values import JSON


def parameters_from(written: TemplateFile, inputs: Mapping[str, Any], groups: Mapping[str, str]) -> dict[str, JSON]:
    """Every parameter's value. `groups` are the goal's own words for them; a `Path` among the inputs is a file.

    A file parameter's value is the name of its input. Raises InvalidInput naming everything that is wrong.
    """
    values: dict[str, JSON] = {}
    for name, parameter in written.parameters.items():
        if parameter.source == "file":
            values[name] = _file_input(name, parameter, inputs, groups.get(name))
        elif name in groups:
            values[name] = from_words(parameter, groups[name])
        elif name in inputs and not isinstance(inputs[name], Unseen):
            values[name] = inputs[name]
        elif not parameter.required:
            values[name] = parameter.default
    return checked(written, values)


def checked(written: TemplateFile, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The values, if there is one for each parameter and it fits; else InvalidInput naming everything that is wrong."""
    faults = [f"{name!r} is no parameter of it" for name in values if name not in written.parameters]
    for name, parameter in written.parameters.items():
        faults += _faults(name, parameter, values)
    if faults:
        raise InvalidInput(f"the template {written.name!r} cannot be used like this: {'; '.join(faults)}.")
    return dict(values)


def _faults(name: str, parameter: Parameter, values: Mapping[str, JSON]) -> Iterator[str]:
    if name not in values:
        yield f"{name!r} is missing ({in_language(parameter.about, 'en')}); give it as --input {name}=VALUE"
        return
    schema = {"type": "string"} if parameter.source == "file" else parameter.json_schema
    for problem in problems(values[name], schema):
        yield f"{name} ({in_language(parameter.about, 'en')}): {problem.removeprefix('$: ')}"


def from_words(parameter: Parameter, text: str) -> JSON:
    """What a goal's words for a parameter mean: what the template says, a number where one is wanted, else the text."""
    for pattern, value in parameter.words.items():
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return value
    if {"integer", "number"} & set(_types(parameter)):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _types(parameter: Parameter) -> list[str]:
    declared = parameter.json_schema.get("type", [])
    return declared if isinstance(declared, list) else [declared]


def _file_input(name: str, parameter: Parameter, inputs: Mapping[str, Any], mentioned: str | None) -> str:
    """The name of the one input file that is meant; InvalidInput says how to give it."""
    given = {key: value for key, value in inputs.items() if isinstance(value, PurePath)}
    how = f"Give it as --file {name}=PATH, or inputs={{'{name}': Path(...)}} in Python"
    if mentioned is not None:
        return _mentioned_file(mentioned, given, how)
    if name in given:
        return name
    fitting = [key for key, path in given.items() if path.name.lower().endswith(parameter.suffixes)]
    candidates = fitting or list(given)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise InvalidInput(f"this goal is about a file, and none was given. {how}.")
    shown = ", ".join(f"{key} ({given[key].name})" for key in candidates)
    raise InvalidInput(f"this goal is about one file, and several could be meant: {shown}. {how}.")


def _mentioned_file(mentioned: str, given: Mapping[str, PurePath], how: str) -> str:
    wanted = mentioned.lower()
    for key, path in given.items():
        if wanted in (key.lower(), path.name.lower(), str(path).lower()):
            return key
    raise InvalidInput(f"the goal names the file {mentioned!r}, and no input file is called so. {how}.")
