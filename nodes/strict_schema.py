"""The dialect of JSON schema that OpenAI's strict mode takes: every object closed, every property required.

Source: OpenAI's guide to structured outputs, "Supported schemas" (as of 2025).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plans.values import JSON

MAX_PROPERTIES = 5_000
MAX_DEPTH = 10
MAX_ENUM_VALUES = 1_000
MAX_NAMES = 120_000
"""Characters of all property names, definition names, enum and const values together."""

_KNOWN = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref"}
)
_FREE = frozenset({"description", "title", "$defs", "pattern", "minimum", "maximum", "minItems", "maxItems"})


def is_strict(schema: Mapping[str, JSON]) -> bool:
    """Whether strict mode would take this schema as it stands."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    nodes = list(_nodes(schema, 0))
    names = sum(len(str(name)) for node, _ in nodes for name in _names(node))
    return (
        all(_closed(node) and depth <= MAX_DEPTH for node, depth in nodes)
        and sum(len(node.get("properties", ())) for node, _ in nodes) <= MAX_PROPERTIES
        and sum(len(node.get("enum", ())) for node, _ in nodes) <= MAX_ENUM_VALUES
        and names <= MAX_NAMES
    )


def _nodes(schema: Any, depth: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Every schema in a schema, with how many objects and lists stand around what it describes."""
    if not isinstance(schema, Mapping):
        yield {"?": schema}, depth  # `true` is a schema, and not one of the dialect
        return
    yield schema, depth
    for inner in schema.get("$defs", {}).values():
        yield from _nodes(inner, 0)
    for inner in schema.get("anyOf", ()):
        yield from _nodes(inner, depth)
    for inner in schema.get("properties", {}).values():
        yield from _nodes(inner, depth + 1)
    if "items" in schema:
        yield from _nodes(schema["items"], depth + 1)


def _closed(node: Mapping[str, Any]) -> bool:
    if node.keys() - _KNOWN - _FREE or not node.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False
    if node.get("type") == "array":
        return "items" in node
    if node.get("type") != "object":
        return "properties" not in node
    properties = node.get("properties", {})
    return node.get("additionalProperties") is False and set(node.get("required", ())) == set(properties)


def _names(node: Mapping[str, Any]) -> Iterator[Any]:
    yield from node.get("properties", {})
    yield from node.get("$defs", {})
    yield from node.get("enum", ())
    if "const" in node:
        yield node["const"]
