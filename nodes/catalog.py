"""What a planning prompt shows of the world: tools by contract, results by shape, never what a result says."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Protocol

from plans.values import JSON

MAX_DESCRIPTION = 600
"""Longest description of a tool in a prompt, in characters; a foreign server's may be a novel."""
MAX_FIELDS = 60
"""An object with more fields than this is a table by another name."""
MAX_INPUT = 500
"""Longest JSON text of an input that is shown as it is; of a longer one only the shape is shown."""

MAX_SUMMARY = 4_000
"""Longest summary of one result, as JSON text; a plan may keep fifty of them."""

_FIELD = re.compile(r"@?[\w.-]{1,40}")
_ANNOTATIONS = frozenset({"title", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"})
_NAMES_TO_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LITERAL = frozenset({"default", "const", "enum", "required", "dependentRequired"})


class _Described(Protocol):
    @property
    def description(self) -> str: ...


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


def described(tools: Iterable[Offered]) -> list[JSON]:
    """One object per tool, by name, so that the same tools make the same prompt."""
    return [_tool(tool) for tool in sorted(tools, key=lambda tool: tool.name)]


def _tool(tool: Offered) -> JSON:
    shown: dict[str, JSON] = {
        "name": tool.name,
        "description": inspect.cleandoc(tool.spec.description)[:MAX_DESCRIPTION],
        "effect": tool.effect,
        "risk": tool.risk,
        "arguments": compact(tool.input_schema),
    }
    if tool.output_schema:
        shown["result"] = compact(tool.output_schema)
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
    if len(value) > MAX_FIELDS or not all(_FIELD.fullmatch(key) for key in value):
        return f"object of {len(value)} fields"
    return {key: _shape(item, depth - 1) for key, item in value.items()}


def inputs_shown(inputs: Mapping[str, Any]) -> dict[str, JSON]:
    """The inputs of a run: a file by its name, a small value as it is, a large one by its shape."""
    return {name: _input(value) for name, value in inputs.items()}


def _input(value: Any) -> JSON:
    if isinstance(value, PurePath):
        return {"file": value.name}
    return value if len(repr(value)) <= MAX_INPUT else {"shape": summary(value)}
