"""Tests of mocks: the least value that a declared result allows, always the same, and checked like a real result."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, computed_field

from tests.tools.calls import tool_of
from tools.fallbacks import Fallback
from tools.mocks import NoMock, built, mock_value

BUILT = Fallback(mock=True)


class Colour(Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    """A line of an order, which may have lines of its own."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(ge=3, le=9)
    price: float = Field(gt=0.5)
    under: list[Line] = []
    parent: Line | None = None

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way to write it
    @property
    def total(self) -> float:
        """What it comes to."""
        return self.count * self.price


class Order(BaseModel):
    """An order with a field of every kind."""

    number: str = Field(min_length=6, max_length=8)
    code: str = Field(pattern="^[A-Z]+$")
    colour: Colour
    kind: Literal["new", "old"]
    on: dt.date
    at: dt.datetime
    key: UUID
    cost: Decimal
    lines: list[Line] = Field(min_length=1)
    either: int | str
    owner: str | None
    below: Annotated[int, Field(lt=-4, multiple_of=5)]
    named: dict[str, int]


class Found(BaseModel):
    """What a search may give."""

    rows: list[int] = []
    note: str | None = None


def test_a_mock_of_a_model_is_valid_minimal_and_the_same_each_time() -> None:
    """Every required field is there, bounds, patterns, formats, references and unions hold, and nothing is random. A
    Decimal, whose schema says no more than text, is a numeral, and so are the other texts then."""

    def look() -> Order:
        raise AssertionError("a mock calls nothing")

    tool = tool_of(look, name="look")
    value = mock_value(tool, BUILT)
    assert value == mock_value(tool, BUILT)
    assert value == {
        "number": "000000", "code": "MOCK", "colour": "red", "kind": "new", "on": "1970-01-01",
        "at": "1970-01-01T00:00:00Z", "key": "00000000-0000-4000-8000-000000000000", "cost": "0",
        "lines": [{"count": 3, "price": 1.5, "under": [], "parent": None, "total": 4.5}],
        "either": 0, "owner": "0", "below": -5, "named": {},
    }  # fmt: skip


BOUND = st.integers(-20, 20)
LEAVES = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"enum": ["a", 2]}, {"const": [1]}, True, {}]),
    st.builds(
        lambda kind, low, more, exclusive: {
            "type": kind,
            "exclusiveMinimum" if exclusive else "minimum": low,
            "maximum": low + more,
        },
        st.sampled_from(["integer", "number"]), BOUND, st.integers(1, 9), st.booleans(),
    ),
    st.builds(
        lambda high, step: {"type": "integer", "exclusiveMaximum": high, "multipleOf": step}, BOUND, st.integers(1, 7)
    ),
    st.builds(lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
              st.integers(0, 12), st.integers(0, 5)),
    st.sampled_from(["date", "date-time", "uuid", "email", "ipv4", "ipv6", "uri"]).map(
        lambda name: {"type": "string", "format": name}
    ),
    st.sampled_from(["^[a-z]*$", "^0+$", "^[A-Z][a-z]+$", "k"]).map(lambda text: {"type": "string", "pattern": text}),
    st.just({"$ref": "#/$defs/tree"}),
)  # fmt: skip


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2)),
        fields.map(lambda named: {"type": "object", "properties": named, "required": sorted(named)}),
        fields.map(lambda named: {"allOf": [{"type": "object", "properties": named, "required": sorted(named)}]}),
        st.lists(inner, min_size=1, max_size=3).map(lambda choices: {"anyOf": choices}),
    )


TREE = {
    "type": "object",
    "properties": {"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}, "size": {"type": "integer"}},
    "required": ["left", "size"],
}


@given(st.recursive(LEAVES, _deeper, max_leaves=8))
def test_whatever_the_schema_a_mock_fits_it(schema: Any) -> None:
    """Bounds, lengths, formats, choices, lists, objects and references that hold themselves, in any mixture."""
    document = {**schema, "$defs": {"tree": TREE}} if isinstance(schema, dict) else schema
    value = built(document)
    checker = Draft202012Validator.FORMAT_CHECKER
    assert list(Draft202012Validator(document, format_checker=checker).iter_errors(value)) == []
    assert built(document) == value


@pytest.mark.parametrize("annotation", [list[int], dict[str, int], str, Any])
def test_a_tool_that_is_never_empty_has_no_empty_mock(annotation: Any) -> None:
    """What such a tool may not return, its mock is not either."""
    schema = {} if annotation is Any else TypeAdapter(annotation).json_schema()
    assert built(schema, least=1) not in (None, "", [], {})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "^[^a-zA-Z0-9]{40}$"}, "no text is known"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "without an end"),
        ({"$ref": "#/$defs/b"}, "is not in the schema"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "a: nothing is allowed"),
    ],
)
def test_where_no_mock_can_be_built_the_reason_is_told(schema: Any, why: str) -> None:
    """A guess that does not fit would be worse than none."""
    with pytest.raises(NoMock, match=why):
        built(schema)


def test_a_given_mock_is_checked_like_a_result_of_the_tool() -> None:
    """What the tool could not have returned stands for nothing."""

    def count() -> int:
        raise AssertionError("a mock calls nothing")

    tool = tool_of(count, name="count")
    assert mock_value(tool, Fallback.model_validate({"mock": {"value": 7}})) == 7
    with pytest.raises(NoMock, match="not what it declares"):
        mock_value(tool, Fallback.model_validate({"mock": {"value": "seven"}}))


def test_a_part_that_is_never_empty_holds_something_in_a_mock_too() -> None:
    """A mock that its own tool's output check would refuse is none."""

    def look() -> Found:
        raise AssertionError("a mock calls nothing")

    assert mock_value(tool_of(look, name="look"), BUILT) == {"rows": [], "note": None}
    assert mock_value(tool_of(look, name="look", never_empty="rows"), BUILT) == {"rows": [0], "note": None}
    with pytest.raises(NoMock, match="nothing at 'lines'"):
        mock_value(tool_of(look, name="look", never_empty="lines"), BUILT)
