"""Tests of what becomes of a tool's result: JSON that can be stored, checked against what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from plans.errors import ConfigurationError
from tests.tools.calls import context, tool_of
from tools.output import BadOutput


class Colour(Enum):
    RED = "red"


class Order(BaseModel):
    order_id: str = Field(serialization_alias="orderId")
    total: Decimal
    at: datetime | None = None
    note: str = "none"


@dataclass
class Point:
    x: int
    colour: Colour = Colour.RED


class Connected:
    """Something that is no JSON."""


AT = datetime(2024, 1, 1, tzinfo=UTC)


def undeclared(value: Any) -> Callable[[], Any]:
    """A tool that says nothing about its result."""
    return lambda: value


def declared(returns: Any, value: Any) -> Callable[[], Any]:
    """A tool that says what it returns."""

    def function() -> Any:
        return value

    function.__annotations__["return"] = returns
    return function


async def result_of(function: Callable[[], Any], **spec: Any) -> Any:
    """What a call of it gives."""
    return await tool_of(function, name="t", **spec).invoke({}, context())


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        ({"a": [1, 2.5, True, "x"]}, {"a": [1, 2.5, True, "x"]}),
        (Order(order_id="A1", total=Decimal("9.90"), at=AT), {
            "orderId": "A1", "total": "9.90", "at": "2024-01-01T00:00:00Z", "note": "none",
        }),
        ([Point(1)], [{"x": 1, "colour": "red"}]),
        (Decimal("9.90"), "9.90"),
        (date(2024, 1, 1), "2024-01-01"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        ({1}, [1]),
        ((1, "a"), [1, "a"]),
        ({1: "a"}, {"1": "a"}),
        (Path("/tmp/x"), "/tmp/x"),
    ],
)  # fmt: skip
async def test_plain_python_becomes_json(value: Any, stored: Any) -> None:
    """Models, dataclasses, money, times, ids, enums and sets are stored as JSON without a word from the author."""
    assert await result_of(undeclared(value)) == stored


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"abc", "bytes"),
        (object(), "object"),
        ({"a": object()}, "dict"),
        ({"a": {"b": float("nan")}}, r"a\.b"),
        (["ok", "a\0b"], r"\[1\]"),
        ("\ud800", "cannot"),
        (2**64, "64 bits"),
    ],
)
async def test_what_json_cannot_hold_is_refused_in_words(value: Any, said: str) -> None:
    """A result that could not be stored is OUTPUT_INVALID, and the sentence says where or what it is."""
    with pytest.raises(BadOutput, match=said) as refused:
        await result_of(undeclared(value))
    assert refused.value.code == "OUTPUT_INVALID"


async def test_a_value_that_holds_itself_is_refused() -> None:
    """A circle does not hang or crash."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(BadOutput):
        await result_of(undeclared(circle))


async def test_a_very_deep_value_is_refused() -> None:
    """A value nested a hundred thousand times is a failure of the tool, not of the run."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadOutput):
        await result_of(undeclared(deep))


@pytest.mark.parametrize(
    ("returns", "value", "stored"),
    [
        (Order, Order(order_id="A1", total=Decimal(3)), {"orderId": "A1", "total": "3", "at": None, "note": "none"}),
        (Order, {"order_id": "A1", "total": "3"}, {"orderId": "A1", "total": "3", "at": None, "note": "none"}),
        (list[Point], [Point(1), {"x": 2}], [{"x": 1, "colour": "red"}, {"x": 2, "colour": "red"}]),
        (list[int], [1, 2], [1, 2]),
        (int | None, None, None),
        (None, None, None),
        (date, "2024-01-01", "2024-01-01"),
        (Point, Point(2), {"x": 2, "colour": "red"}),
        (dict[str, Any], {"a": Decimal(1)}, {"a": "1"}),
        (Any, {"a": 1}, {"a": 1}),
    ],
)
async def test_a_declared_result_may_be_the_type_or_its_json(returns: Any, value: Any, stored: Any) -> None:
    """A model or the dict of it, with defaults filled in, as the output schema shows it."""
    assert await result_of(declared(returns, value)) == stored


@pytest.mark.parametrize(
    ("returns", "value", "said"),
    [
        (int, "5", "valid integer"),
        (str, 5, "valid string"),
        (bool, "yes", "valid boolean"),
        (Order, {"order_id": "A1"}, "total"),
        (list[int], [1, "secret-value"], r"\[1\]"),
        (None, 3, "null"),
    ],
)
async def test_another_result_than_declared_is_a_failure(returns: Any, value: Any, said: str) -> None:
    """Nothing is turned into what it should be; the sentence says what should be there, never the value."""
    with pytest.raises(BadOutput, match=said) as refused:
        await result_of(declared(returns, value))
    assert refused.value.code == "OUTPUT_INVALID"
    assert "secret-value" not in refused.value.message


@pytest.mark.parametrize("empty", [None, "", [], {}])
async def test_an_empty_result_is_a_failure_only_where_declared(empty: Any) -> None:
    """never_empty turns nothing into OUTPUT_EMPTY; zero and false are something."""
    assert await result_of(undeclared(empty)) == empty
    with pytest.raises(BadOutput) as refused:
        await result_of(undeclared(empty), never_empty=True)
    assert refused.value.code == "OUTPUT_EMPTY"
    assert await result_of(undeclared(0), never_empty=True) == 0
    assert await result_of(undeclared(False), never_empty=True) is False


def test_the_output_schema_shows_what_is_stored() -> None:
    """The schema of a declared result is that of its JSON; nothing declared, no schema."""
    schema = tool_of(declared(Order, None), name="t").output_schema
    assert schema is not None
    assert schema["properties"]["orderId"] == {"type": "string"}
    assert tool_of(undeclared(1), name="t").output_schema is None
    assert tool_of(declared(Any, 1), name="t").output_schema is None


def test_a_result_type_that_json_cannot_hold_is_a_fault_at_load() -> None:
    """A tool that declares to return a connection can never give a result, so it is not registered."""
    with pytest.raises(ConfigurationError, match="JSON cannot hold"):
        tool_of(declared(Callable[[], int], None), name="t")
    with pytest.raises(ConfigurationError, match="JSON cannot hold"):
        tool_of(declared(Connected, None), name="t")
