"""Tests of the second layer: conditions over arguments, declared as data."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from plans.faults import errors_among
from plans.lint import lint
from plans.plan import PlanDraft, StepDraft
from tests.tools.calls import Scripted, a_call, code_of, tool_of
from tools.outcome import CallFailure, Success
from tools.rules import check_rules
from tools.tool import Tool

RULES = (
    {"condition": "amount <= `100`", "message": "at most 100 at once"},
    {"condition": "ends_with(to, '@example.com')", "message": "only to our own addresses"},
)


def pay(amount: Decimal, to: str, on: date | None = None) -> str:
    return f"{amount} {to} {on}"


def look() -> dict[str, Any]:
    return {}


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
    found = tool.breaches(args)
    assert (found[0].sentence if found else None) == (f"pay: {broken}" if broken else None)
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
    assert tool.breaches(args)


def test_rules_see_the_names_that_a_caller_uses() -> None:
    """Rules over a JSON schema's arguments, and over those that any name may have, work by the given names."""
    rules = [{"condition": "n < `5`", "message": "too many"}]
    by_schema = tool_of(lambda **a: a, name="t", args_schema={"properties": {"n": {"type": "integer"}}}, rules=rules)
    by_keyword = tool_of(lambda **a: a, name="t", rules=rules)
    for tool in (by_schema, by_keyword):
        assert not tool.breaches({"n": 4})
        assert tool.breaches({"n": 5})


def test_lists_and_models_in_arguments_can_be_ruled() -> None:
    """Conditions reach into what an argument holds, and see dates as text."""

    def function(amounts: list[Decimal], on: date) -> None: ...

    rules = [
        {"condition": "length(amounts[?@ > `10`]) == `0`", "message": "each at most 10"},
        {"condition": "starts_with(on, '2026')", "message": "this year only"},
    ]
    tool = tool_of(function, rules=rules)
    assert not tool.breaches({"amounts": ["9.5", 10], "on": "2026-01-01"})
    assert tool.breaches({"amounts": ["9.5", "10.5"], "on": "2026-01-01"})
    assert tool.breaches({"amounts": [], "on": "2025-12-31"})


def step(**args: Any) -> StepDraft:
    """A step that calls the tool `pay`."""
    return StepDraft(id="s2", action="tool", tool="pay", args=args, depends_on=("s1",), reason="r")


def faults_of(rules: list[dict[str, Any]], **args: Any) -> list[tuple[str, str]]:
    """What planning says about a call with these arguments, as (code, place)."""
    tools = {"pay": tool_of(pay, rules=rules), "look": tool_of(look)}
    first = StepDraft(id="s1", action="tool", tool="look", args={}, depends_on=(), reason="r")
    draft = PlanDraft(goal="g", steps=(first, step(**args)))
    return [(each.code, each.path) for each in errors_among(lint(draft, tools))]


DOMAIN = {"check": "email_domain", "arg": "to", "allowed": ["example.com"]}
LITTLE = {"check": "at_most", "arg": "amount", "value": 100}


@pytest.mark.parametrize(
    ("rule", "args", "found"),
    [
        (DOMAIN, {"amount": 1, "to": "a@evil.com"}, [("RULE_VIOLATED", "steps[1].args.to")]),
        (DOMAIN, {"amount": 1, "to": "a@example.com"}, []),
        (DOMAIN, {"amount": "${s1.total}", "to": "a@evil.com"}, [("RULE_VIOLATED", "steps[1].args.to")]),
        (DOMAIN, {"amount": 1, "to": "${s1.to}"}, []),
        (DOMAIN, {"amount": 1, "to": "${s1.name}@evil.com"}, []),
        (DOMAIN, {"amount": "x", "to": "a@example.com"}, [("INVALID_ARGS", "steps[1].args.amount")]),
        (LITTLE, {"amount": "100.01", "to": "a"}, [("RULE_VIOLATED", "steps[1].args.amount")]),
        (LITTLE, {"amount": "100.00", "to": "a"}, []),
        (LITTLE, {"amount": 101, "to": "${s1.to}"}, [("RULE_VIOLATED", "steps[1].args.amount")]),
        (LITTLE, {"amount": "${s1.total}", "to": "a"}, []),
        (RULES[0], {"amount": 101, "to": "a"}, [("RULE_VIOLATED", "steps[1].args")]),
        (RULES[0], {"amount": 101, "to": "${s1.to}"}, [("RULE_VIOLATED", "steps[1].args")]),
        (RULES[0], {"amount": "99", "to": "${s1.to}"}, []),
        (RULES[0], {"amount": "${s1.total}", "to": "a"}, []),
        ({"condition": "@", "message": "m"}, {"amount": 1, "to": "${s1.to}"}, []),
        ({"condition": "on", "message": "m"}, {"amount": 1, "to": "${s1.to}"}, []),
    ],
)
def test_a_plan_is_told_which_rule_its_arguments_break(
    rule: dict[str, Any], args: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    """Literal arguments are judged before anything runs; what a reference fills is judged when it is known, and no
    plan is refused for a value that may still be right."""
    assert faults_of([rule], **args) == found


def test_a_wrong_argument_hides_no_broken_rule_of_the_others() -> None:
    """The linter judges rules by the arguments that are right, and says nothing of rules about those that are not."""
    wrong, broken = ("INVALID_ARGS", "steps[1].args."), ("RULE_VIOLATED", "steps[1].args.")
    rules: list[dict[str, Any]] = [LITTLE, DOMAIN]
    assert faults_of(rules, amount=500, to=3) == [(wrong[0], wrong[1] + "to"), (broken[0], broken[1] + "amount")]
    assert faults_of(rules, amount=500, to="a@example.com", on="x", z=1) == [
        (wrong[0], wrong[1] + "on"),
        (wrong[0], wrong[1] + "z"),
        (broken[0], broken[1] + "amount"),
    ]
    assert faults_of(rules, amount=[], to="a@example.com") == [(wrong[0], wrong[1] + "amount")]
    assert faults_of(rules, to="a@evil.com") == [(wrong[0], wrong[1] + "amount"), (broken[0], broken[1] + "to")]
    assert faults_of(rules, amount=1, to="a@example.com") == []
