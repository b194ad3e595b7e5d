"""Examples for planners: a toolkit's plans are checked like any other before a model learns from them."""

from __future__ import annotations

from typing import Any

import pytest

from plans.errors import ConfigurationError
from tools.orders import orders
from tools.registry import Registry, Toolkit
from tools.tabular import tabular


def shop(goal: str, plan: dict[str, Any]) -> Toolkit:
    """A toolkit with one tool and this example."""
    kit = Toolkit("shop")

    @kit.tool(effect="read")
    def price(item: str) -> int:
        """Look a price up."""
        return len(item)

    kit.example(goal, plan)
    return kit


def test_an_example_says_its_goal_and_its_tools() -> None:
    """What a prompt shows is a whole plan; when it may be shown depends on the tools that it calls."""
    kit = shop("how much is a ball?", {"steps": [{"id": "s1", "tool": "price", "args": {"item": "ball"}}]})
    Registry.of(kit)
    [example] = kit.examples
    assert example.plan["goal"] == example.goal == "how much is a ball?"
    assert example.tools == {"price"}


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        ({"steps": [{"id": "s1", "tool": "prize", "args": {}}]}, "UNKNOWN_TOOL"),
        ({"steps": [{"id": "s1", "tool": "price", "args": {"item": 3}}]}, "INVALID_ARGS"),
        ({"steps": []}, "PLAN_EMPTY"),
        ({}, "SCHEMA_INVALID"),
        ({"steps": [{"id": "s1", "tool": "price", "args": {"item": b"ball"}}]}, "no JSON"),
        ({"steps": [{"id": "s1", "tool": "price", "args": {"item": "a"}}], "answer": "${s2}"}, "UNKNOWN_REFERENCE"),
    ],
)
def test_a_wrong_example_is_a_fault_of_the_toolkit(plan: dict[str, Any], wrong: str) -> None:
    """A model would learn the mistake; the toolkit is refused and its author told which example it is."""
    with pytest.raises(ConfigurationError, match=rf"example 'ball\?' of toolkit 'shop'.*{wrong}"):
        Registry.of(shop("ball?", plan))


def test_the_built_in_toolkits_have_examples_that_are_right() -> None:
    """Orders and tables: two of one and one of the other, each a plan without faults."""
    Registry.of(orders, tabular)
    assert (len(orders.examples), len(tabular.examples)) == (2, 1)
