"""Tests of arguments declared as a JSON schema: all problems, references, and schemas that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
from referencing.exceptions import Unresolvable

from plans.errors import ConfigurationError
from plans.values import Path
from tests.tools.calls import tool_of
from tools.json_arguments import SchemaArguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^A"},
        "limit": {"type": "integer", "maximum": 100},
        "state": {"enum": ["open", "shipped"]},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["sku", "count"],
                "additionalProperties": False,
            },
        },
        "pay": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"iban": {"type": "string"}, "n": {"type": "integer"}},
                    "required": ["iban"],
                },
                {"type": "array", "items": {"type": "integer"}},
            ]
        },
    },
    "required": ["order_id"],
}


def problems(args: dict[str, Any], references: list[Path] | None = None, **schema: Any) -> dict[str, str]:
    """The problems by place."""
    tool = tool_of(lambda **given: given, name="t", args_schema={**SCHEMA, **schema})
    return dict(tool.check_args(args, references or []))


def test_all_problems_come_at_once() -> None:
    """Missing, unknown and mistyped arguments, and those inside of values, are told together."""
    found = problems({"limit": "5", "state": "lost", "lines": [{"sku": 1, "colour": "red"}], "ordr_id": "A1"})
    assert found == {
        "order_id": "is missing",
        "ordr_id": "is not an argument of this tool; did you mean 'order_id'?",
        "limit": "should be integer, not a string",
        "state": "should be one of 'open', 'shipped'",
        "lines[0].sku": "should be string, not an integer",
        "lines[0].count": "is missing",
        "lines[0].colour": "'colour' is not allowed there",
    }


def test_a_sentence_never_shows_the_value() -> None:
    """Arguments may be private: what is wrong is said by type and rule."""
    found = problems({"order_id": "5550100200", "pay": "5550100200"})
    assert found.keys() == {"order_id", "pay"}
    assert "5550100200" not in str(found)


@pytest.mark.parametrize("value", [True, "5", 5.5, None])
def test_an_integer_is_nothing_else(value: Any) -> None:
    """A boolean, text or a fraction is no integer."""
    assert problems({"order_id": "A1", "limit": value}).keys() == {"limit"}


@pytest.mark.parametrize(
    ("args", "references"),
    [
        ({"order_id": "${s1.id}"}, [("order_id",)]),
        ({"order_id": "A1", "limit": "${s1.n}"}, [("limit",)]),
        ({"order_id": "A1", "state": "${s1}"}, [("state",)]),
        ({"order_id": "A1", "lines": "${s1}"}, [("lines",)]),
        ({"order_id": "A1", "lines": [{"sku": "a", "count": "${s1.n}"}]}, [("lines", 0, "count")]),
        ({"order_id": "A1", "pay": {"iban": "x", "n": "${s1.n}"}}, [("pay", "n")]),
        ({"order_id": "A1", "pay": ["${s1.n}", 2]}, [("pay", 0)]),
    ],
)
def test_a_reference_explains_the_problem_at_its_place(args: dict[str, Any], references: list[Path]) -> None:
    """What stands at a reference is not known yet; without the reference it would be a problem."""
    assert problems(args, references) == {}
    assert problems(args) != {}


@pytest.mark.parametrize(
    ("args", "references", "place"),
    [
        ({"x": "${s1}"}, [("x",)], "order_id"),
        ({"order_id": "A1", "x": "${s1}"}, [("x",)], "x"),
        ({"order_id": "A1", "lines": [{"count": "${s1}"}]}, [("lines", 0, "count")], "lines[0].sku"),
        ({"order_id": "A1", "lines": {"a": "${s1}"}}, [("lines", "a")], "lines"),
        ({"order_id": "A1", "pay": {"n": "${s1}"}}, [("pay", "n")], "pay"),
        ({"order_id": "A1", "pay": ["${s1}", "b"]}, [("pay", 0)], "pay"),
    ],
)
def test_a_reference_explains_nothing_beside_its_place(
    args: dict[str, Any], references: list[Path], place: str
) -> None:
    """Missing and unknown arguments, and problems beside a reference, are still told."""
    assert place in problems(args, references)


def test_keywords_that_compare_whole_values_wait_for_the_references_in_them() -> None:
    """Two references are not two equal values."""
    schema: dict[str, Any] = {"properties": {"ids": {"type": "array", "uniqueItems": True}}, "required": []}
    twice = {"ids": ["${s1}", "${s1}"]}
    assert problems(twice, **schema).keys() == {"ids"}
    assert problems(twice, [("ids", 0), ("ids", 1)], **schema) == {}


def test_a_schema_that_says_so_takes_others_too() -> None:
    """additionalProperties opens the arguments; silence does not."""
    assert problems({"order_id": "A1", "more": 1}, additionalProperties=True) == {}
    assert problems({"order_id": "A1", "more": 1}).keys() == {"more"}


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", float("nan"), 2**64])
def test_what_cannot_be_stored_is_a_problem(bad: Any) -> None:
    """NUL, lone surrogates, NaN and numbers beyond 64 bits are refused where they stand, with all other problems."""
    assert problems({"limit": 101, "order_id": bad}).keys() == {"order_id", "limit"}


def test_definitions_inside_of_the_schema_are_followed() -> None:
    """$ref into the schema's own $defs works."""
    schema: dict[str, Any] = {
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "required": ["a"],
        "$defs": {"n": {"type": "integer"}},
    }
    assert problems({"a": "x"}, **schema).keys() == {"a"}
    assert problems({"a": 1}, **schema) == {}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array"}, "arguments are an object"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "no JSON schema"),
        ({"type": "object", "properties": []}, "no JSON schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}, "#/\\$defs/missing"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "example.com"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "https://example.com/b"}}}, "example.com"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_load(schema: dict[str, Any], said: str) -> None:
    """A schema that is none, or that points elsewhere (nothing is ever fetched), is a fault of its tool."""
    with pytest.raises(ConfigurationError, match=said):
        tool_of(lambda **given: given, name="t", args_schema=schema)


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_fetched_for_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a schema that points elsewhere is used without having been loaded, nothing is requested."""
    requested: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda request, **_: requested.append(request))
    arguments = SchemaArguments({"properties": {"a": {"$ref": "https://example.com/a.json"}}})
    with pytest.raises(Unresolvable):
        arguments.problems({"a": 1}, [])
    assert requested == []
