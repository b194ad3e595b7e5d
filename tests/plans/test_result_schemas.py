"""Paths in JSON schemas: "no" only where the schema rules a path out, and never for a value that it describes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from plans.expressions import compiled, search
from plans.result_schemas import Missing, ResultSchema
from plans.values import JSON, Path

CLOSED: dict[str, JSON] = {"type": "object", "properties": {"a": {"type": "integer"}}}


def rules_out(schema: JSON, path: str) -> bool:
    """Whether the schema says that this path cannot exist."""
    try:
        ResultSchema(schema, schema).at(compiled(path).tree)
    except Missing:
        return True
    return False


@pytest.mark.parametrize(
    ("schema", "path", "expected"),
    [
        (True, "a.b", False),
        ({}, "a[0].b", False),
        ({"type": "object"}, "a", False),
        ({"type": "object"}, "[0]", True),
        ({"type": "array"}, "[0].x", False),
        ({"type": "array"}, "a", True),
        ({"type": "string"}, "a", True),
        (CLOSED, "a", False),
        (CLOSED, "b", True),
        (CLOSED, "a.b", True),
        ({**CLOSED, "additionalProperties": True}, "b", False),
        ({**CLOSED, "additionalProperties": {"type": "string"}}, "b", False),
        ({**CLOSED, "additionalProperties": {"type": "string"}}, "b.c", True),
        ({**CLOSED, "additionalProperties": False}, "b", True),
        ({**CLOSED, "patternProperties": {"^x": {}}}, "b", False),
        ({"anyOf": [CLOSED, {"type": "null"}]}, "a", False),
        ({"anyOf": [CLOSED, {"type": "null"}]}, "b", True),
        ({"oneOf": [CLOSED, {"type": "array", "items": CLOSED}]}, "[0].a", False),
        ({"oneOf": [CLOSED, {"type": "array", "items": CLOSED}]}, "[0].b", True),
        ({"anyOf": []}, "b", False),
        ({"anyOf": "x"}, "b", False),
        ({"type": ["object", "null"], "properties": {"a": {}}}, "b", True),
        ({"allOf": [CLOSED], "properties": {"z": {}}}, "b", False),
        ({"$ref": "#/$defs/x", "$defs": {"x": CLOSED}}, "b", True),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": CLOSED}}, "b", True),
        ({"$ref": "#/nowhere"}, "b", False),
        ({"$ref": "http://example.com"}, "b", False),
        ({"$ref": "#"}, "b", False),
        ({"type": "array", "items": CLOSED}, "[*].b", True),
        ({"type": "array", "items": CLOSED}, "[?a].b", True),
        ({"type": "array", "items": CLOSED}, "[?b].a", False),
        ({"type": "array", "items": CLOSED}, "[] | [0]", False),
        ({"type": "array", "prefixItems": [CLOSED]}, "[0].b", False),
        ({"type": "array", "items": False}, "[0]", True),
        (CLOSED, "b || a", False),
        (CLOSED, "length(b)", False),
        (CLOSED, "{x: b}", False),
        (CLOSED, "*.x", False),
        (CLOSED, "@.b", True),
        (False, "a", True),
        ({"properties": {"a": False}}, "a.b", True),
        ({"properties": []}, "a", False),
    ],
)
def test_a_path_is_ruled_out_only_by_what_the_schema_says(schema: JSON, path: str, expected: bool) -> None:
    """Choices, references into the schema, lists of types and open objects are all understood."""
    assert rules_out(schema, path) is expected


def test_a_schema_that_refers_to_itself_is_followed_to_the_end_of_the_path() -> None:
    """A tree is as deep as whoever asks; a reference in a circle is no endless way."""
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    assert not rules_out(tree, "next" + ".next" * 60)
    assert rules_out(tree, "next.next.prev")
    assert not rules_out({"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}, "x")


keys = st.sampled_from(["a", "b", "c"])
described = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def schema_of(value: JSON) -> dict[str, JSON]:
    """A schema that describes exactly the shape of one value."""
    match value:
        case dict():
            return {"type": "object", "properties": {key: schema_of(item) for key, item in value.items()}}
        case list():
            return (
                {"type": "array", "items": {"anyOf": [schema_of(item) for item in value]}}
                if value
                else {"type": "array"}
            )
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
    return {"type": "string"}


def paths_in(value: JSON, path: Path = ()) -> list[Path]:
    """Every place of a value."""
    inner: list[tuple[Any, Any]] = list(value.items()) if isinstance(value, dict) else []
    inner += list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(deeper for key, item in inner for deeper in paths_in(item, (*path, key)))]


@given(described, st.data())
def test_a_path_that_finds_something_is_never_ruled_out(value: JSON, data: st.DataObject) -> None:
    """Whatever a schema describes can be read: no good plan is refused over its references."""
    schema = schema_of(value)
    assert Draft202012Validator(schema).is_valid(value)
    path = data.draw(st.sampled_from(paths_in(value)))
    text = "@" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    assert not rules_out(schema, text)


@given(described, st.lists(keys | st.integers(0, 3), max_size=4))
def test_a_path_that_is_ruled_out_finds_nothing(value: JSON, path: list[str | int]) -> None:
    """The answer "cannot exist" is true of every value that fits the schema."""
    text = "@" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    if rules_out(schema_of(value), text):
        assert search(text, value) is None
