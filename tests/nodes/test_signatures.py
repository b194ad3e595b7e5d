"""Schemas as short types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.signatures import signature
from tools.orders.toolkit import orders
from tools.tabular.toolkit import tabular

WORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "enum", "$ref", "required", "string", "object", "#/$defs/a"]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date"}, "date"),
        ({"enum": ["a", "b", 1, None]}, "'a'|'b'|1|none"),
        ({"type": ["integer", "null"]}, "integer|null"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}, "(string|number)[]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{[name]: integer}"),
        ({"type": "object", "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "integer"},
         {"type": "null"}]}}, "required": ["a"]}, "{a: string, b?: integer}"),
        ({"$ref": "#/$defs/X", "$defs": {"X": {"type": "boolean"}}}, "boolean"),
        (True, "any"),
        ({}, "any"),
    ],
)  # fmt: skip
def test_a_schema_is_told_as_a_type(schema: Any, told: str) -> None:
    """Each kind of schema in the fewest words that a model can write a value by."""
    assert signature(schema, 1_000) == told


def test_a_schema_that_holds_itself_ends() -> None:
    """A tree is told to a depth."""
    tree = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"kids": {"type": "array", "items":
            {"$ref": "#/$defs/T"}}}}}}  # fmt: skip
    assert signature(tree, 1_000).startswith("{kids?: {kids?:")


@pytest.mark.parametrize("tool", [*orders.tools.values(), *tabular.tools.values()], ids=lambda tool: tool.name)
def test_every_argument_of_our_tools_is_named_in_its_type(tool: Any) -> None:
    """What has to be given stands without a question mark, and the whole is a fraction of the schema."""
    told = signature(tool.input_schema, 1_200, described=True)
    for name in tool.input_schema["properties"]:
        mark = "" if name in tool.input_schema.get("required", ()) else "?"
        assert f"{name}{mark}: " in told
    assert len(told) * 2 < len(json.dumps(tool.input_schema)) + 100


def test_a_schema_that_holds_itself_many_times_ends_soon() -> None:
    """Sixty fields that each are the whole again, to a depth: what is looked at is bounded."""
    fields = {f"f{number}": {"$ref": "#/$defs/T"} for number in range(60)}
    told = signature({"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": fields}}}, 5_000)
    assert told.startswith("{f0?: object, f1?: object, ")
    assert len(told) <= 5_000


@given(JSON_VALUES, st.integers(1, 60))
def test_whatever_a_stranger_calls_a_schema_is_told_within_the_length(schema: Any, longest: int) -> None:
    """No schema of a foreign server keeps a prompt from being written."""
    assert 0 < len(signature(schema, longest)) <= max(longest, len("any"))
