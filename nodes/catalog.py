"""What a planning prompt shows of the world: tools by what they take and give, results by shape, never by content."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

from nodes.budget import Detail
from nodes.signatures import signature
from plans.failure import Failure
from plans.references import is_name
from plans.values import JSON
from tools.redaction import redacted
from tools.spec import ToolSpec

MAX_DESCRIPTION = 600
"""Longest description of a tool in a prompt, in characters; a foreign server's may be a novel."""
MAX_SHORT = 160
"""The same in a prompt that has to be short."""
MAX_TYPE = 1_200
"""Longest type of a tool's arguments or of its result."""
MAX_FIELDS = 60
"""An object with more fields than this is a table by another name."""
MAX_INPUT = 500
"""Longest JSON text of an input that is shown as it is; of a longer one only the shape is shown."""

MAX_SUMMARY = 4_000
"""Longest summary of one result, as JSON text; a plan may keep fifty of them."""
MAX_TEXT = 600
"""Longest text of a plan that is shown whole, in characters: a literal argument, a fault."""
MAX_MESSAGE = 400
"""Longest sentence of a failure in a planning prompt, in characters."""

_ANNOTATIONS = frozenset({"title", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"})
_NAMES_TO_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LITERAL = frozenset({"default", "const", "enum", "required", "dependentRequired"})


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """An input that a stranger may have written: no planner sees it, and no template takes it for a parameter."""

    value: JSON


class _Described(Protocol):
    @property
    def description(self) -> str: ...


class Declares(Protocol):
    """A tool as far as its failures need it."""

    @property
    def name(self) -> str: ...  # noqa: D102  # the protocol's fields are the tool's
    @property
    def spec(self) -> ToolSpec: ...  # noqa: D102


class Offered(Protocol):
    """A tool as far as a prompt shows it."""

    @property
    def name(self) -> str: ...  # noqa: D102  # the protocol's fields are the tool's
    @property
    def spec(self) -> _Described: ...  # noqa: D102
    @property
    def effect(self) -> str: ...  # noqa: D102
    @property
    def risk(self) -> str: ...  # noqa: D102
    @property
    def input_schema(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def output_schema(self) -> dict[str, Any] | None: ...  # noqa: D102


def described(tools: Iterable[Offered], detail: Detail = Detail.SCHEMAS) -> list[JSON]:
    """One object per tool, by name, so that the same tools make the same prompt."""
    return [_tool(tool, detail) for tool in sorted(tools, key=lambda tool: tool.name)]


def _tool(tool: Offered, detail: Detail) -> JSON:
    types = detail >= Detail.TYPES
    shown: dict[str, JSON] = {
        "name": tool.name,
        "description": inspect.cleandoc(tool.spec.description)[: MAX_SHORT if types else MAX_DESCRIPTION],
        "effect": tool.effect,
        "risk": tool.risk,
        "arguments": signature(tool.input_schema, MAX_TYPE, described=True) if types else compact(tool.input_schema),
    }
    if tool.output_schema and detail < Detail.ARGUMENT_TYPES:
        whole = detail == Detail.SCHEMAS
        shown["result"] = compact(tool.output_schema) if whole else signature(tool.output_schema, MAX_TYPE)
    return shown


def compact(schema: JSON) -> JSON:
    """A JSON schema without what only decorates it; a property may be called `title` and stays."""
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, JSON] = {}
    for keyword, value in schema.items():
        if keyword in _LITERAL:
            kept[keyword] = value
        elif keyword in _NAMES_TO_SCHEMAS and isinstance(value, Mapping):
            kept[keyword] = {name: compact(item) for name, item in value.items()}
        elif keyword not in _ANNOTATIONS:
            kept[keyword] = [compact(item) for item in value] if isinstance(value, list) else compact(value)
    return kept


def summary(value: JSON) -> JSON:
    """What a value looks like: fields and types, how many elements and how long, and nothing of what it says. Of one
    with many fields in many fields less of the depth is told: the summary's JSON has at most MAX_SUMMARY characters."""
    shapes = (_shape(value, depth) for depth in (3, 2, 1))
    return next((shape for shape in shapes if len(json.dumps(shape)) <= MAX_SUMMARY), _shape(value, 0))


def _shape(value: JSON, depth: int) -> JSON:
    if isinstance(value, Mapping):
        return _fields(value, depth) if depth else f"object of {len(value)} fields"
    if isinstance(value, list):
        return (
            {"list_of": len(value), "first": _shape(value[0], depth - 1)}
            if value and depth
            else f"list of {len(value)}"
        )
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    names = {bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return names[type(value)]


def _fields(value: Mapping[str, JSON], depth: int) -> JSON:
    """An object's fields. Where its keys look like content rather than names, only their number is told."""
    if not has_names(value):
        return f"object of {len(value)} fields"
    return {key: _shape(item, depth - 1) for key, item in value.items()}


def has_names(value: Mapping[str, JSON]) -> bool:
    """Whether an object's keys may be shown: they are few, look like names rather than content, and are no secrets."""
    return len(value) <= MAX_FIELDS and all(is_name(key) and redacted(f"{key} ") == f"{key} " for key in value)


def shortened(shape: JSON, longest: int) -> JSON:
    """A summary of at most so many characters of JSON: without lengths, of less depth, in the end its fields' names,
    and where they are too many their number."""
    for depth in (3, 2, 1):
        if len(json.dumps(cut := _cut(shape, depth))) <= longest:
            return cut
    names: JSON = list(shape) if isinstance(shape, Mapping) else []
    return {"fields": names} if len(json.dumps(names)) <= longest else _cut(shape, 0)


def _cut(shape: JSON, depth: int) -> JSON:
    if isinstance(shape, str):
        return "text" if shape.startswith("text of ") else shape
    if not isinstance(shape, Mapping):
        return shape
    if depth == 0:
        return f"list of {shape['list_of']}" if "list_of" in shape else f"object of {len(shape)} fields"
    return {name: _cut(item, depth - 1) for name, item in shape.items()}


def failure_shown(failure: Failure) -> dict[str, JSON]:
    """What a planning prompt says of a failure, its sentence cut where it is too long."""
    told: dict[str, JSON] = dict(failure.for_model())
    if len(failure.message) > MAX_MESSAGE:
        told["message"] = failure.message[: MAX_MESSAGE - 1] + "…"
    return {name: value for name, value in told.items() if value is not None}


def in_our_words(failure: Failure, tool: Declares | None) -> Failure:
    """A failure of a tool without the words that its sentence has from the tool's own result, unless the tool's output
    is trusted: they would be a stranger's, and the failure is to stand in a planning prompt."""
    message = failure.message
    if tool is not None and tool.spec.output_trust != "trusted":
        for flag in tool.spec.error_when:
            said = flag.message or f"{tool.name} answered that it failed"
            if flag.message_from is not None and message.startswith(f"{said}: "):
                message = said
    return failure.model_copy(update={"message": message})


def text_shown(text: str, longest: int = MAX_TEXT) -> str:
    """A text, cut where it is too long for a prompt."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def texts_cut(value: JSON, longest: int = MAX_TEXT) -> JSON:
    """A value of a plan, its long texts cut."""
    if isinstance(value, str):
        return text_shown(value, longest)
    if isinstance(value, Mapping):
        return {name: texts_cut(item, longest) for name, item in value.items()}
    return [texts_cut(item, longest) for item in value] if isinstance(value, list | tuple) else value


def inputs_shown(inputs: Mapping[str, Any]) -> dict[str, JSON]:
    """The inputs of a run: a file by its name, a small value as it is, a large one by its shape."""
    return {name: _input(value) for name, value in inputs.items()}


def _input(value: Any) -> JSON:
    if isinstance(value, PurePath):
        return {"file": value.name}
    if isinstance(value, Unseen):
        return {"shape": summary(value.value)}
    return value if len(repr(value)) <= MAX_INPUT else {"shape": summary(value)}
