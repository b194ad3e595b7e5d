"""Tests of the second layer: conditions over arguments, declared as data."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.tools.calls import Scripted, a_call, code_of, tool_of
from tools.outcome import CallFailure, Success
from tools.rules import broken_rule, check_rules
from tools.tool import Tool

RULES = (
    {"condition": "amount <= `100`", "message": "at most 100 at once"},
    {"condition": "ends_with(to, '@example.com')", "message": "only to our own addresses"},
)


def pay(amount: Decimal, to: str, on: date | None = None) -> str:
    return f"{amount} {to} {on}"


@pytest.fixture
def tool() -> Tool:
    """A tool with two rules."""
    return tool_of(pay, effect="idempotent", rules=RULES)


@pytest.mark.parametrize(
    ("args", "broken"),
    [
        ({"amount": 100, "to": "a@example.com"}, None),
        ({"amount": "100.00", "to": "a@example.com"}, None),
        ({"amount": "100.01", "to": "a@example.com"}, "at most 100 at once"),
        ({"amount": 1e9, "to": "a@example.com"}, "at most 100 at once"),
        ({"amount": "9", "to": "a@example.org"}, "only to our own addresses"),
        ({"amount": 101, "to": "a@example.org"}, "at most 100 at once"),
    ],
)
async def test_the_first_broken_rule_refuses_the_call(tool: Tool, args: dict[str, Any], broken: str | None) -> None:
    """RULE_VIOLATED in the words of the rule, and no call; money counts as a number however it is written."""
    rule = broken_rule(tool, args)
    assert (rule.message if rule else None) == broken
    below = Scripted([Success(1)])
    outcome = await check_rules(a_call(tool, args), below)
    assert code_of(outcome) == ("RULE_VIOLATED" if broken else "OK")
    assert len(below.calls) == (broken is None)
    if isinstance(outcome, CallFailure):
        assert outcome.failure.message == f"pay: {broken}"


@pytest.mark.parametrize(
    "args", [{}, {"amount": None, "to": 3}, {"amount": "much", "to": "a@example.com"}, {"to": None}]
)
def test_a_rule_that_cannot_be_evaluated_does_not_let_pass(tool: Tool, args: dict[str, Any]) -> None:
    """Missing or odd arguments break a rule rather than slip by it."""
    assert broken_rule(tool, args) is not None


def test_rules_see_the_names_that_a_caller_uses() -> None:
    """Rules over a JSON schema's arguments, and over those that any name may have, work by the given names."""
    rules = [{"condition": "n < `5`", "message": "too many"}]
    by_schema = tool_of(lambda **a: a, name="t", args_schema={"properties": {"n": {"type": "integer"}}}, rules=rules)
    by_keyword = tool_of(lambda **a: a, name="t", rules=rules)
    for tool in (by_schema, by_keyword):
        assert broken_rule(tool, {"n": 4}) is None
        assert broken_rule(tool, {"n": 5}) is not None


def test_lists_and_models_in_arguments_can_be_ruled() -> None:
    """Conditions reach into what an argument holds, and see dates as text."""

    def function(amounts: list[Decimal], on: date) -> None: ...

    rules = [
        {"condition": "length(amounts[?@ > `10`]) == `0`", "message": "each at most 10"},
        {"condition": "starts_with(on, '2026')", "message": "this year only"},
    ]
    tool = tool_of(function, rules=rules)
    assert broken_rule(tool, {"amounts": ["9.5", 10], "on": "2026-01-01"}) is None
    assert broken_rule(tool, {"amounts": ["9.5", "10.5"], "on": "2026-01-01"}) is not None
    assert broken_rule(tool, {"amounts": [], "on": "2025-12-31"}) is not None
