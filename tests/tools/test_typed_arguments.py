"""Tests of arguments from typed signatures and pydantic models: strict typing, all problems, references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import TypedDict  # pydantic refuses the one of typing before Python 3.12

from plans.values import Path
from tests.tools.calls import tool_of


class Colour(Enum):
    RED = "red"


class Line(BaseModel):
    sku: str
    count: int = Field(ge=1)


class Basket(BaseModel):
    lines: list[Line]
    note: str | None = None


class Card(BaseModel):
    number: str


class Transfer(BaseModel):
    iban: str
    amount: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Record(TypedDict):
    a: int


@dataclass
class Point:
    x: int


def takes(annotation: Any) -> Callable[..., Any]:
    """A function with one argument `x` of this type."""

    def function(x: Any) -> Any:
        return x

    function.__annotations__["x"] = annotation
    return function


STRICT: list[tuple[Any, Any, bool]] = [
    (str, "a", True), (str, 3, False), (str, None, False), (str, True, False),
    (int, 5, True), (int, "5", False), (int, True, False), (int, 5.0, False),
    (float, 5, True), (float, 5.5, True), (float, "5", False), (float, True, False),
    (bool, True, True), (bool, 1, False), (bool, "yes", False), (bool, "true", False),
    (date, "2024-01-01", True), (date, "1 May", False), (date, 1704067200, False),
    (datetime, "2024-01-01T10:00:00Z", True), (datetime, "soon", False),
    (timedelta, "PT5M", True),
    (Decimal, "9.90", True), (Decimal, 9.9, True), (Decimal, 9, True), (Decimal, "much", False), (Decimal, True, False),
    (UUID, "6f8db599-0000-4000-8000-000000000000", True), (UUID, "6f", False),
    (Colour, "red", True), (Colour, "RED", False),
    (Literal["a", "b"], "a", True), (Literal["a", "b"], "c", False),
    (list[int], [1, 2], True), (list[int], [1, "2"], False), (list[int], {"0": 1}, False), (list[int], "12", False),
    (set[int], [1, 2], True), (tuple[int, str], [1, "a"], True), (tuple[int, str], [1], False),
    (dict[str, int], {"a": 1}, True), (dict[str, int], {"a": "1"}, False),
    (Line, {"sku": "a", "count": 1}, True), (Line, {"sku": "a", "count": 0}, False), (Line, {"sku": "a"}, False),
    (Point, {"x": 1}, True), (Point, {"x": "1"}, False), (Record, {"a": 1}, True), (Record, {}, False),
    (int | None, None, True), (int | None, "1", False), (int | str, 1, True), (int | str, 1.5, False),
    (Annotated[int, Field(ge=1, le=100)], 100, True), (Annotated[int, Field(ge=1, le=100)], 101, False),
    (Annotated[str, Field(pattern="^A")], "A1", True), (Annotated[str, Field(pattern="^A")], "B1", False),
    (Any, {"whatever": [1, None]}, True),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "value", "fits"), STRICT, ids=[f"{a}-{v!r}" for a, v, _ in STRICT])
def test_typing_is_that_of_json_and_strict(annotation: Any, value: Any, fits: bool) -> None:
    """A value fits a type only as JSON would write it: nothing is turned into something else."""
    assert (tool_of(takes(annotation)).check_args({"x": value}) == []) is fits


def order(order_id: str, limit: Annotated[int, Field(le=100)] = 10, *, since: date | None = None) -> str:
    return f"{order_id}{limit}{since}"


def test_all_problems_come_at_once() -> None:
    """Wrong types, broken limits, missing and unknown arguments are told together, each with its place."""
    problems = tool_of(order).check_args({"limit": 101, "since": "yesterday", "id": "A1"})
    assert dict(problems).keys() == {"order_id", "limit", "since", "id"}
    assert dict(problems)["order_id"] == "is missing"
    assert dict(problems)["limit"] == "should be less than or equal to 100"
    assert dict(problems)["id"] == "is not an argument of this tool; it takes limit, order_id, since"


def test_a_problem_says_what_kind_came_and_never_the_value() -> None:
    """Arguments may be private: a sentence about one shows its type only."""
    ((place, said),) = tool_of(order).check_args({"order_id": 5_550_100_200})
    assert (place, said) == ("order_id", "should be a valid string, not an integer")


def test_places_inside_of_values_are_named() -> None:
    """A problem deep in a list of objects says where it is."""
    args = {"x": {"lines": [{"sku": "a", "count": 1}, {"count": "2", "colour": "red"}]}}
    problems = dict(tool_of(takes(Basket)).check_args(args))
    assert problems["x.lines[1].sku"] == "is missing"
    assert problems["x.lines[1].count"] == "should be a valid integer, not a string"
    assert problems["x.lines[1].colour"] == "'colour' is not allowed there"


def test_unknown_keys_of_nested_models_are_not_dropped_in_silence() -> None:
    """A key that a nested model would ignore is a problem, unless the model says that it takes any."""
    assert dict(tool_of(takes(Card)).check_args({"x": {"number": "1", "numbr": "2"}})).keys() == {"x.numbr"}
    assert tool_of(takes(Open)).check_args({"x": {"a": 1, "b": 2}}) == []
    assert dict(tool_of(takes(Open)).check_args({"x": {"a": 1}, "y": 2})).keys() == {"y"}


def test_a_union_is_told_by_its_nearest_branch() -> None:
    """Of a union's branches the one that came nearest is told; when none came near, all are."""
    problems = tool_of(takes(Card | Transfer)).check_args({"x": {"iban": "x", "amount": "5"}})
    assert problems == [("x.amount", "should be a valid integer, not a string")]
    ((place, said),) = tool_of(takes(int | list[int])).check_args({"x": "5"})
    assert place == "x"
    assert said == "should be a valid integer, not a string or should be a valid array, not a string"


@pytest.mark.parametrize(
    ("annotation", "value", "references"),
    [
        (int, "${s1.n}", [("x",)]),
        (Line, "${s1.line}", [("x",)]),
        (Line, {"sku": "a", "count": "${s1.n}"}, [("x", "count")]),
        (list[Line], ["${s1.line}", {"sku": "a", "count": 1}], [("x", 0)]),
        (int | list[int], ["${s1.n}"], [("x", 0)]),
        (Card | Transfer, {"iban": "x", "amount": "${s1.n}"}, [("x", "amount")]),
        (list[Card | Transfer], [{"iban": "x", "amount": "${s1.n}"}], [("x", 0, "amount")]),
        (dict[str, int | list[int]], {"k": ["${s1.n}"]}, [("x", "k", 0)]),
        (Annotated[str, Field(pattern="^A")], "${s1.id}", [("x",)]),
        (Literal["a"], "${s1.id}", [("x",)]),
        (Basket | None, {"lines": [{"sku": "a", "count": "${s1.n}"}]}, [("x", "lines", 0, "count")]),
    ],
)
def test_a_reference_explains_the_problem_at_its_place(annotation: Any, value: Any, references: list[Path]) -> None:
    """What stands at a reference is not known yet; without the reference it would be a problem."""
    tool = tool_of(takes(annotation))
    assert tool.check_args({"x": value}, references) == []
    assert tool.check_args({"x": value}) != []


@pytest.mark.parametrize(
    ("annotation", "value", "references", "place"),
    [
        (Line, {"sku": 3, "count": "${s1.n}"}, [("x", "count")], "x.sku"),
        (Line, {"count": "${s1.n}"}, [("x", "count")], "x.sku"),
        (list[int], ["${s1.n}", "b"], [("x", 0)], "x[1]"),
        (int | list[int], ["${s1.n}", "b"], [("x", 0)], "x[1]"),
        (Card | Transfer, {"iban": 3, "amount": "${s1.n}"}, [("x", "amount")], "x.iban"),
    ],
)
def test_a_reference_explains_nothing_beside_its_place(
    annotation: Any, value: Any, references: list[Path], place: str
) -> None:
    """Problems beside a reference are still told."""
    assert place in dict(tool_of(takes(annotation)).check_args({"x": value}, references))


def test_missing_and_unknown_arguments_are_told_whatever_is_referred_to() -> None:
    """A reference cannot make up for an argument that is not there, or stand in one that the tool does not have."""
    problems = dict(tool_of(order).check_args({"x": "${s1}"}, [("x",)]))
    assert problems.keys() == {"order_id", "x"}


def test_a_reference_of_the_same_name_elsewhere_explains_nothing() -> None:
    """A reference at `b` does not explain a problem at `a.b`."""

    def function(a: Card, number: str) -> None: ...

    problems = tool_of(function).check_args({"a": {"number": 1}, "number": "${s1}"}, [("number",)])
    assert dict(problems).keys() == {"a.number"}


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", float("nan"), float("inf"), 2**64])
def test_what_cannot_be_stored_is_a_problem(bad: Any) -> None:
    """NUL, lone surrogates, NaN and numbers beyond 64 bits are refused where they stand, with all other problems."""
    tool = tool_of(takes(Any))
    assert [place for place, _ in tool.check_args({"x": {"deep": [bad]}})] == ["x.deep[0]"]
    assert dict(tool.check_args({"x": bad, "y": 1})).keys() == {"x", "y"}


def test_values_arrive_as_their_types() -> None:
    """A function gets a date, a Decimal and a model where it asks for them, and its own defaults."""
    seen: list[Any] = []

    def function(day: date, total: Decimal, basket: Basket, limit: int = 7, of: int = Field(5, alias="from")) -> None:
        seen.extend([day, total, basket.lines[0].count, limit, of])

    tool = tool_of(function)
    args = {"day": "2024-01-01", "total": "9.90", "basket": {"lines": [{"sku": "a", "count": 2}]}}
    function(**tool.arguments.typed(args))
    assert seen == [date(2024, 1, 1), Decimal("9.90"), 2, 7, 5]
    assert tool.arguments.typed({**args, "from": 9})["of"] == 9


def test_any_parameter_name_will_do() -> None:
    """Names that a pydantic model could not have as fields are ordinary argument names."""

    def function(_x: int, schema: int, copy: int, model_config: int, json: int = 3) -> dict[str, int]:
        return {"sum": _x + schema + copy + model_config + json}

    tool = tool_of(function)
    assert list(tool.input_schema["properties"]) == ["_x", "schema", "copy", "model_config", "json"]
    assert function(**tool.arguments.typed({"_x": 1, "schema": 1, "copy": 1, "model_config": 1})) == {"sum": 7}


def test_the_schema_is_what_a_model_needs_to_see() -> None:
    """Names, types, limits, defaults and descriptions are in the schema; made-up titles and the context are not."""

    def function(
        order_id: Annotated[str, Field(description="like A1234")], limit: Annotated[int, Field(le=9)] = 3
    ) -> None: ...

    assert tool_of(function).input_schema == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "like A1234"},
            "limit": {"type": "integer", "maximum": 9, "default": 3},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }


def test_keyword_arguments_take_whatever_fits_their_type() -> None:
    """**kwargs: any name may be given; an annotated one is checked."""

    def typed(a: int, **more: int) -> dict[str, int]:
        return {"a": a, **more}

    tool = tool_of(typed)
    assert tool.check_args({"a": 1, "b": 2, "c": 3}) == []
    assert dict(tool.check_args({"a": 1, "b": "2"})).keys() == {"b"}
    assert typed(**tool.arguments.typed({"a": 1, "b": 2})) == {"a": 1, "b": 2}
    assert tool_of(lambda **more: more, name="t").check_args({"b": {"deep": None}}) == []


class Pair(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Pair:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self


def test_a_model_can_be_the_declaration() -> None:
    """args_schema as a pydantic model: its fields are the arguments, its own checks count, unknown keys are refused."""

    def function(**fields: Any) -> int:
        return int(fields["high"] - fields["low"])

    tool = tool_of(function, args_schema=Pair)
    assert tool.check_args({"low": 1, "high": 2}) == []
    assert tool.check_args({"low": 3, "high": 2}) == [("", "low must not be above high")]
    assert dict(tool.check_args({"low": "3", "hgh": 2})).keys() == {"low", "high", "hgh"}
    assert function(**tool.arguments.typed({"low": 1, "high": 5})) == 4
    with pytest.raises(ValidationError):
        tool.arguments.typed({"low": "1", "high": 5})


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcx", max_size=2), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
ANNOTATIONS = [
    int, str, bool, float, Decimal, date, int | None, list[int], dict[str, int], Line, Basket, Card | Transfer,
    int | list[int | str], Point, Record, tuple[int, str], Any, datetime | date, set[str],
]  # fmt: skip


@given(annotation=st.sampled_from(ANNOTATIONS), value=JSON_VALUES)
def test_arguments_without_problems_can_be_called_with(annotation: Any, value: Any) -> None:
    """check_args and the call agree: no problems means typed values, problems mean that there are none."""
    tool = tool_of(takes(annotation))
    if tool.check_args({"x": value}):
        with pytest.raises(ValidationError):
            tool.arguments.typed({"x": value})
    else:
        assert "x" in tool.arguments.typed({"x": value})


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_reference_to_the_whole_argument_leaves_nothing_to_say(annotation: Any) -> None:
    """Whatever the type, a reference may stand for all of it."""
    assert tool_of(takes(annotation)).check_args({"x": "${s1}"}, [("x",)]) == []


@given(value=JSON_VALUES)
def test_a_reference_anywhere_only_takes_problems_away(value: Any) -> None:
    """Marking places as references never makes a new problem."""
    tool = tool_of(takes(Basket))
    before = {place for place, _ in tool.check_args({"x": value})}
    for reference in (("x", "lines"), ("x", "lines", 0), ("x", "note")):
        assert {place for place, _ in tool.check_args({"x": value}, [reference])} <= before


def test_times_keep_their_zone() -> None:
    """A datetime argument keeps the offset that was given."""
    at = tool_of(takes(datetime)).arguments.typed({"x": "2024-01-01T10:00:00+02:00"})["x"]
    assert at == datetime(2024, 1, 1, 8, tzinfo=UTC)
