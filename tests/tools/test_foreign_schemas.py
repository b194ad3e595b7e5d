"""Tests of schemas whose authors wish us ill: every one is judged or refused, in words and in little time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tools.foreign_schemas import MAX_STEPS, Endless, errors, validator
from tools.json_arguments import SchemaArguments
from tools.json_result import SchemaResult
from tools.output import BadOutput
from tools.schema_faults import fault

DOUBLING: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
TREE = {"type": "object", "properties": {"below": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]}}}


def in_a_schema(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {}, **more}


@pytest.mark.parametrize(
    "schema",
    [
        in_a_schema(**{"$schema": ["x"]}),
        in_a_schema(**{"$schema": {}}),
        in_a_schema(**{"$schema": 5}),
        in_a_schema(**{"$id": 5}),
        in_a_schema(**{"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}}),
        in_a_schema(properties={"a": {"$ref": "http://[bad"}}),
        in_a_schema(properties={"a": {"$ref": "#/required/" + "9" * 5_000}}, required=["a"]),
        in_a_schema(properties={"a": {"$ref": "#/required"}}, required=["a"]),
        in_a_schema(properties={"a": {"$ref": "#somewhere"}}),
        in_a_schema(properties={"a": {"pattern": "["}}),
        in_a_schema(patternProperties={"(": {}}),
        in_a_schema(patternProperties={"x": {}}, unevaluatedProperties=False),
        in_a_schema(**{"$ref": "#"}),
        in_a_schema(properties={"a": {"$ref": "#/properties/a"}}),
        in_a_schema(properties={"a": {"not": {"$ref": "#/properties/a"}}}),
        in_a_schema(properties={"a": {"if": {"allOf": [{"$ref": "#/properties/a"}]}}}),
        in_a_schema(
            properties={"a": {"$ref": "#/$defs/x"}},
            **{"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"anyOf": [{"$ref": "#/$defs/x"}]}}},
        ),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_judged_is_refused_in_words(schema: dict[str, Any]) -> None:
    """As arguments and as a result alike, whatever its author has written where; nothing but a sentence comes out."""
    for why in (SchemaArguments(schema).fault(), SchemaResult(schema).fault()):
        assert why is not None
        assert len(why) < 400


@pytest.mark.parametrize("said", ["http://[bad", "https://example.com/mine", "http://json-schema.org/draft-03/schema#"])
def test_what_a_schema_calls_itself_breaks_nothing(said: str) -> None:
    """`$schema` and `$id` that nobody knows leave it a schema of the newest draft."""
    schema = in_a_schema(**{"$schema": said, "$id": said, "properties": {"a": {"type": "string"}}})
    assert SchemaArguments(schema).fault() is None
    assert [path for path, _ in SchemaArguments(schema).problems({"a": 1}, ())] == [("a",)]


def test_an_early_draft_is_read_as_it_was_meant() -> None:
    """`exclusiveMinimum: true` is draft 4's, and draft 7's `items` may be a list."""
    early = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    assert fault(early) is None
    assert len(list(errors(validator(early), 1))) == 1
    later = {"$schema": "http://json-schema.org/draft-07/schema", "items": [{"type": "string"}]}
    assert fault(later) is None
    assert len(list(errors(validator(later), [1]))) == 1


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}),
        ({"properties": {"a": {"pattern": r"^(?=a)(a+)+\1$"}}}, {"a": "a" * 60 + "!"}),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": n} if n % 2 else n for n in range(20_000)]}),
        ({"required": [f"n{n}" for n in range(5_000)]}, {"a": "x" * 500_000}),
    ],
)
def test_no_pattern_and_no_rule_keeps_the_loop_busy(schema: dict[str, Any], value: Any) -> None:
    """Patterns take linear time, so do comparisons of elements, and errors are told up to a hundred."""
    began = time.process_time()
    assert len(list(errors(validator(schema), value))) <= 100
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**DOUBLING, "d40": {}}}, {"a": 1}),
        ({"$ref": "#/$defs/d0", "unevaluatedProperties": False, "$defs": {**DOUBLING, "d40": {}}}, {"a": 1}),
    ],
)
def test_a_schema_that_doubles_at_each_step_is_given_up(
    schema: dict[str, Any], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty references, each followed twice, are a million million steps; they end at the bound."""
    monkeypatch.setattr("tools.foreign_schemas.MAX_STEPS", MAX_STEPS // 50)
    with pytest.raises(Endless, match="too long"):
        list(errors(validator(schema), value))
    with pytest.raises(BadOutput, match="cannot be judged"):
        SchemaResult(schema).stored(value)
    assert "too long" in str(SchemaArguments(schema).problems(value, ()))


def test_a_tree_is_judged_as_deep_as_honest_ones_are() -> None:
    """A schema that refers to itself below is no circle; a value nested beyond reason is refused and breaks nothing."""
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}}
    assert fault(schema) is None
    deep: dict[str, Any] = {"below": None}
    for _ in range(40):
        deep = {"below": deep}
    assert list(errors(validator(schema), deep)) == []
    for _ in range(400):
        deep = {"below": deep}
    with pytest.raises(Endless, match="too deeply"):
        list(errors(validator(schema), deep))


def test_definitions_are_judged_once_however_many_tools_share_them() -> None:
    """A large document says the same of every operation; a draft's judgement is no other draft's, and faults stay."""
    shared = {f"s{n}": {"properties": {f"p{m}": {"type": "string"} for m in range(20)}} for n in range(40)}
    schemas = [{"title": f"t{n}", "$ref": "#/$defs/s0", "$defs": shared} for n in range(40)]
    began = time.process_time()
    assert [fault(schema) for schema in schemas] == [None] * 40
    assert time.process_time() - began < 4
    early = {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": True, "minimum": 1}
    for _ in range(2):
        assert fault(early) is None
        assert "no JSON schema" in str(fault({**early, "$schema": "https://json-schema.org/draft/2020-12/schema"}))
        assert "at $.$defs.b.type" in str(fault({"$defs": {"a": {}, "b": {"type": 5}}}))


def test_patterns_of_other_languages_are_no_reason_to_leave_a_tool_out() -> None:
    """What ECMAScript and Rust know and Python does not is judged; what only Python knows asks for nothing."""
    schema = in_a_schema(
        properties={"a": {"pattern": r"^\p{L}+$"}, "b": {"pattern": "(?<n>x)"}, "c": {"pattern": "(?=y)"}}
    )
    assert SchemaArguments(schema).fault() is None
    assert [path for path, _ in SchemaArguments(schema).problems({"a": "é", "b": "x", "c": "z"}, ())] == []
    assert [path for path, _ in SchemaArguments(schema).problems({"a": "1", "b": "y"}, ())] == [("a",), ("b",)]


def test_properties_by_pattern_are_judged() -> None:
    """Each by its pattern, and the others by what is said of others."""
    schema = {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    assert list(errors(validator(schema), {"x1": 1, "y": "a"})) == []
    assert len(list(errors(validator(schema), {"x1": "a", "y": 1}))) == 2
    closed = {"patternProperties": {"^x": {}}, "additionalProperties": False}
    assert len(list(errors(validator(closed), {"x1": 1, "y": "a"}))) == 1


@pytest.mark.parametrize(
    ("step", "value", "right"),
    [
        (0.01, 19.99, True),
        (0.1, 0.3, True),
        (0.01, 1.1, True),
        (0.01, 19.995, False),
        (0.1, 0.35, False),
        (2, 3.0, False),
        (2, 4.0, True),
        (3, 10**400, False),
        (1e-300, 1e308, True),
        (5, True, True),
        (5, "7", True),
        (0.5, float("inf"), True),
    ],
)
def test_multiples_are_told_by_the_digits_that_were_written(step: float, value: Any, right: bool) -> None:
    """Amounts of money are multiples of a cent, whatever binary numbers make of them; what is no number is none."""
    assert (not list(errors(validator({"multipleOf": step}), value))) is right
