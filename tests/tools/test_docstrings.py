"""Tests of docstrings: what a planner reads of a tool and of each of its arguments."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.tools.calls import context, tool_of
from tools.docstrings import described

GOOGLE = """Look an order up.

It may be late.

Args:
    order_id: The order's number,
        as on the letter.
    limit (int): How many: at most.

    **more: Whatever else.

Returns:
    The order.
"""
SPHINX = """Look an order up.

It may be late.

:param order_id: The order's number,
    as on the letter.
:param int limit: How many: at most.
:type limit: int
:param more: Whatever else.
:returns: The order.
"""
NUMPY = """Look an order up.

It may be late.

Parameters
----------
order_id : str
    The order's number,
    as on the letter.
limit : int, optional
    How many: at most.
**more
    Whatever else.

Returns
-------
Order
    The order.
"""
NAMES = {"order_id", "limit", "more"}
TEXTS = {
    "order_id": "The order's number, as on the letter.",
    "limit": "How many: at most.",
    "more": "Whatever else.",
}


@pytest.mark.parametrize(
    ("docstring", "rest"),
    [
        (GOOGLE, "Returns:\n    The order."),
        (SPHINX, ":returns: The order."),
        (NUMPY, "Returns\n-------\nOrder\n    The order."),
    ],
)
def test_parameters_are_told_apart_from_what_a_tool_does(docstring: str, rest: str) -> None:
    """Google's, Sphinx's and NumPy's ways: each parameter has its text, and the rest is the description."""
    indented = inspect.cleandoc(docstring).replace("\n", "\n    ")
    assert described(indented, NAMES) == (f"Look an order up.\n\nIt may be late.\n\n{rest}", TEXTS)


@pytest.mark.parametrize(
    "docstring",
    [
        "",
        "One line.",
        "Args: are not a section here.",
        "Do it.\n\nArgs:\n    nothing_of_ours: text",
        "Parameters\n----------\nnothing : int\n    text",
        ":param nothing: text",
        "Arguments:\nfor and against",
    ],
)
def test_prose_stays_prose(docstring: str) -> None:
    """What only looks like a section, or names no parameter of this tool, is not taken away."""
    assert described(docstring, NAMES) == (docstring, {})


class Place(BaseModel):
    """Where something is."""

    shelf: int = Field(description="counted from the door")


class Stock(BaseModel):
    count: int


def stock(sku: str, place: Place, least: Annotated[int, Field(ge=0, description="its own words")] = 0) -> Stock:
    """Look at a shelf.

    Args:
        sku: What to look for.
        place: Where to look.
        least: Not taken, since the field says it itself.
    """
    return Stock(count=place.shelf + least)


async def test_a_typed_function_needs_nothing_else_to_be_a_tool() -> None:
    """Arguments with their types, bounds, defaults and descriptions, models among them, and the result's model, all
    from the function; what a field says itself wins."""
    tool = tool_of(stock)
    schema = tool.input_schema
    properties: dict[str, Any] = schema["properties"]
    assert tool.description == "Look at a shelf."
    assert {name: field["description"] for name, field in properties.items()} == {
        "sku": "What to look for.", "place": "Where to look.", "least": "its own words",
    }  # fmt: skip
    assert (properties["least"]["minimum"], properties["least"]["default"]) == (0, 0)
    assert schema["required"] == ["sku", "place"]
    assert schema["$defs"]["Place"]["properties"]["shelf"]["description"] == "counted from the door"
    assert tool.output_schema is not None
    assert tool.output_schema["properties"] == {"count": {"type": "integer"}}
    assert await tool.invoke({"sku": "a", "place": {"shelf": 3}}, context()) == {"count": 3}
    assert tool.check_args({"sku": "a", "place": {"shelf": "3"}}) == [
        ("place.shelf", "should be a valid integer, not a string")
    ]


def test_a_given_schema_gets_the_docstrings_words_and_is_not_changed_itself() -> None:
    """A JSON schema beside a function is completed, in a copy; a given description of the tool wins."""
    given = {"properties": {"sku": {"type": "string"}, "place": {}, "least": True}}
    tool = tool_of(stock, args_schema=given, description="Mine.")
    assert tool.description == "Mine."
    assert tool.input_schema["properties"]["sku"] == {"type": "string", "description": "What to look for."}
    assert given == {"properties": {"sku": {"type": "string"}, "place": {}, "least": True}}
