"""Where a plan's literals come from: which of its arguments stand in the goal or among the inputs, and become holes.

A value is known by where it stands: alone as an argument, or as a word of the goal that the plan repeats. Values of a
closed choice, such as a tool's `enum`, stay as they are: the goal's wording has decided them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nodes.template_words import ALONE, literals_of
from plans.references import as_text
from plans.values import JSON, canonical

SchemaOf = Callable[[str, str], Mapping[str, Any]]
"""By tool and argument: the argument's JSON schema."""
_KEPT = frozenset({"type", "pattern", "minimum", "maximum", "minLength", "maxLength"})
_NAME = re.compile(r"[^a-z_]+")
_FILE = r"[\w./\\-]+"


@dataclass(frozen=True, slots=True)
class Hole:
    """A value that becomes a parameter: its name, where it comes from, what it was, and what may stand in its place."""

    name: str
    source: Literal["goal", "file", "input"]
    value: JSON
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """How a goal says it."""
        return as_text(self.value)

    @property
    def pattern(self) -> str:
        """What may stand in its place in a goal: letters for letters, digits for digits."""
        if self.source == "file":
            return _FILE + re.escape("." + self.text.rpartition(".")[2])
        if not isinstance(self.value, str):
            return r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?" if isinstance(self.value, float) else r"-?[0-9]{1,15}"
        return "".join(map(_shape, re.findall(r"[A-Za-z]+|[0-9]+|.", self.value)))


def holes(
    steps: list[dict[str, Any]], goal: str, inputs: Mapping[str, JSON], files: Mapping[str, str], schema_of: SchemaOf
) -> list[Hole]:
    """The parameters of a plan that was made for this goal. `files` are names of files by input."""
    found = [Hole(_named(name, ()), "file", file, {}) for name, file in files.items() if _refers(steps, name)]
    for name, value in inputs.items():
        if _refers(steps, name) or any(canonical(leaf) == canonical(value) for *_, leaf in _arguments(steps)):
            found.append(Hole(_named(name, _names(found)), "input", value, _kind(value)))
    for tool, argument, leaf in _arguments(steps):
        known = any(canonical(hole.value) == canonical(leaf) for hole in found)
        schema = schema_of(tool, argument) if argument else {}
        if not known and isinstance(leaf, str | int | float) and stands_in(goal, leaf) and not _is_choice(leaf, schema):
            fitting = {key: each for key, each in schema.items() if key in _KEPT} if "type" in schema else _kind(leaf)
            found.append(Hole(_named(argument, _names(found)), "goal", leaf, fitting))
    for literal in literals_of(goal):
        if all(hole.text != literal for hole in found) and stands_in(as_text(steps), literal):
            found.append(Hole(_named("value", _names(found)), "goal", literal, _kind(literal)))
    return found


def stands_in(text: str, value: JSON) -> bool:
    """Whether a value stands in a text, as a word of its own."""
    said = as_text(value)
    return bool(said.strip()) and re.search(ALONE.format(re.escape(said)), text) is not None


def _arguments(steps: list[dict[str, Any]]) -> Iterator[tuple[str, str, JSON]]:
    """Every leaf of the steps' arguments, with the tool and, for those that are arguments themselves, their name."""
    for step in steps:
        for name, value in (step.get("args") or {}).items():
            if isinstance(value, Mapping | list):
                yield from (("", name, leaf) for leaf in _leaves(value))
            else:
                yield step.get("tool") or "", name, value


def _leaves(value: JSON) -> Iterator[JSON]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _refers(steps: list[dict[str, Any]], name: str) -> bool:
    return f"${{inputs.{name}}}" in as_text(steps)


def _is_choice(value: JSON, schema: Mapping[str, Any]) -> bool:
    return isinstance(value, bool) or "enum" in schema or "const" in schema


def _kind(value: JSON) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return {"type": kinds[type(value)]} if type(value) in kinds else {}


def _names(found: list[Hole]) -> set[str]:
    return {hole.name for hole in found}


def _named(wish: str, taken: set[str] | tuple[()]) -> str:
    """A name for a hole: small letters and underscores, none that is taken or means something else."""
    name = _NAME.sub("_", wish.lower()).strip("_") or "value"
    name = f"{name}_value" if name in ("goal", "language") else name
    endings = ("", *(f"_{letter}" for letter in "bcdefghijklmnopqrstuvwxyz"))
    return next(name + ending for ending in endings if name + ending not in taken)


def _shape(part: str) -> str:
    if part.isdigit():
        return f"[0-9]{{1,{max(12, len(part))}}}"
    return f"[A-Za-z]{{1,{max(30, len(part))}}}" if part.isalpha() and part.isascii() else re.escape(part)
