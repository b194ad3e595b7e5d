"""What OpenAI's strict mode refuses of a schema, as its guide says it: an endpoint for tests answers 400 by these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REFUSED = frozenset(
    {"allOf", "not", "if", "then", "else", "oneOf", "patternProperties", "dependentRequired", "dependentSchemas",
     "minLength", "maxLength", "unevaluatedProperties", "default", "propertyNames", "contains", "uniqueItems"}
)  # fmt: skip


def complaints(schema: dict[str, Any]) -> list[str]:
    """Why the schema is refused; empty if it is not."""
    found = [] if schema.get("type") == "object" and "anyOf" not in schema else ["the root must be an object"]
    every = list(_everywhere(schema, schema, "", 0, frozenset()))
    found += [complaint for place, node, depth in every for complaint in _about(place, node, depth)]
    if sum(len(node.get("properties", {})) for _, node, _ in every) > 5_000:
        found.append("more than 5000 properties")
    if sum(len(node.get("enum", ())) for _, node, _ in every) > 1_000:
        found.append("more than 1000 enum values")
    return found


def _everywhere(
    node: Any, root: dict[str, Any], place: str, depth: int, seen: frozenset[str]
) -> Iterator[tuple[str, dict[str, Any], int]]:
    assert isinstance(node, dict), f"{place} is no schema: {node!r}"
    yield place, node, depth
    if (reference := node.get("$ref")) and reference not in seen:
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        yield from _everywhere(target, root, f"{place}→", depth, seen | {reference})
    for name, inner in node.get("properties", {}).items():
        yield from _everywhere(inner, root, f"{place}.{name}", depth + 1, seen)
    for number, inner in enumerate(node.get("anyOf", ())):
        yield from _everywhere(inner, root, f"{place}|{number}", depth, seen)
    if "items" in node:
        yield from _everywhere(node["items"], root, f"{place}[]", depth, seen)


def _about(place: str, node: dict[str, Any], depth: int) -> Iterator[str]:
    if depth > 10:
        yield f"{place}: nested deeper than 10 levels"
    if words := REFUSED & node.keys():
        yield f"{place}: {sorted(words)} not permitted"
    if not node.keys() & {"type", "anyOf", "$ref"}:
        yield f"{place}: schema must have a 'type' key"
    if isinstance(node.get("type"), list):
        yield f"{place}: several types"
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        yield f"{place}: 'additionalProperties' is required to be supplied and to be false"
    if node.get("type") == "object" and sorted(node.get("required", ())) != sorted(node.get("properties", {})):
        yield f"{place}: 'required' must include every key in properties"
    if node.get("type") == "array" and "items" not in node:
        yield f"{place}: array schema missing items"
