"""What a goal gives a template's parameters: values found by its own patterns, and whether a value is the goal's.

Where no pattern matches the whole goal, a part of it may still say what a parameter is. Whatever fills a template,
each number, id, file, address and quotation of the goal must be used by it: one that is left over asks for something
more. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from nodes.schemas import problems
from nodes.template_files import Parameter, TemplateFile
from nodes.template_parameters import from_words
from nodes.template_text import Language, comparable
from nodes.template_words import ALONE, literals_of, names_of, stem
from plans.references import as_text
from plans.values import JSON


def candidates(written: TemplateFile, goal: str, language: Language) -> dict[str, list[JSON]]:
    """For each parameter that comes from the goal, the fitting values that its patterns find in it, each once."""
    text = comparable(goal, language)
    found: dict[str, list[JSON]] = {}
    for name, parameter in written.parameters.items():
        if parameter.source == "goal":
            values = [
                from_words(parameter, words[0])
                for pattern in dict.fromkeys(_group_patterns(written, name, language))
                for words in re.finditer(ALONE.format(f"(?:{pattern})"), text, re.IGNORECASE)
            ]
            fitting = [value for value in values if not problems(value, parameter.json_schema)]
            found[name] = [value for place, value in enumerate(fitting) if value not in fitting[:place]]
    return found


def left_over(
    goal: str, values: Mapping[str, JSON], inputs: Mapping[str, Any], known: Collection[str] = ()
) -> list[str]:
    """What the goal names and these values do not use, save names that are words which the template knows; an input
    file's name is used by giving the file."""
    used = {as_text(value).lower() for value in values.values() if value is not None}
    paths = [value for value in inputs.values() if isinstance(value, PurePath)]
    used |= {name.lower() for path in paths for name in (path.name, str(path))}
    names = [name for name in names_of(goal) if stem(name.lower()) not in known]
    return [literal for literal in [*literals_of(goal), *names] if literal.lower() not in used]


def is_given(parameter: Parameter, value: JSON, goal: str, inputs: Mapping[str, Any]) -> bool:
    """Whether a value was not made up: it stands in the goal or among the inputs, is what the goal's words stand for,
    is the default, or one of a closed choice."""
    if (not parameter.required and value == parameter.default) or value in inputs.values():
        return True
    if "enum" in parameter.json_schema:
        return True
    text = comparable(goal, "en")
    if any(word == value and re.search(pattern, text, re.IGNORECASE) for pattern, word in parameter.words.items()):
        return True
    said = comparable(as_text(value), "en")
    return bool(said) and re.search(ALONE.format(re.escape(said)), text, re.IGNORECASE) is not None


def _group_patterns(written: TemplateFile, name: str, language: Language) -> Iterator[str]:
    """What the group of this name may be in each pattern that has it."""
    opening = f"(?P<{name}>"
    for pattern in written.spelled(language):
        if (start := pattern.find(opening)) >= 0:
            yield _up_to_its_end(pattern[start + len(opening) :])


def _up_to_its_end(text: str) -> str:
    """The text up to the bracket that closes what was opened before it."""
    depth, inside, escaped = 1, False, False
    for place, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif inside or character == "[":
            inside = character != "]"
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                return text[:place]
    raise re.error("a group is not closed")
