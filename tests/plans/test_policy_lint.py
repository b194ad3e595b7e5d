"""What is odd about a policy, against the tools there are, and what their calls may come to."""

from __future__ import annotations

from typing import Any

import pytest

from plans.policy_lint import Outcome, outcomes, remarks
from plans.policy_rulings import Action, explained
from tests.plans.policy_samples import policy, refund


def any_call(name: str, effect: Any, *takes: str, toolkit: str = "shop") -> Action:
    """A call of which only the tool is known."""
    return Action(name, effect, {}, toolkit, takes=frozenset(takes), unknown=frozenset(takes))


TOOLS = [
    any_call("get_refund", "read", "id"),
    any_call("issue_refund", "idempotent", "amount", "to"),
    any_call("send", "irreversible", "to", "text", toolkit="mail"),
]
WRITES: dict[str, Any] = {"effects": "write"}


def test_what_a_tool_may_come_to_is_told_from_the_mildest() -> None:
    """In every role that the policy speaks of, and of every risk that a plan may give a step."""
    rules = policy(
        {"tools": "issue_*", "args": {"amount": {"at_most": 5}}, "roles": "clerk", "then": "allow"},
        {"tools": "issue_*", "risk": "high", "then": "ask"},
    )
    assert outcomes(rules, TOOLS[1]) == [Outcome("allow", "r1"), Outcome("ask", "r2"), Outcome("deny", None)]
    assert outcomes(rules, TOOLS[0]) == [Outcome("silent", None)]


@pytest.mark.parametrize(
    ("rules", "about", "words"),
    [
        ([{"tools": "issue_refnd", "then": "allow"}], "r1", "fits no tool"),
        ([{"toolkits": "crm", "then": "allow"}], "r1", "fits no tool"),
        ([{"tools": "issue_*", "args": {"amont": {"at_most": 5}}, "then": "allow"}], "r1", "did you mean amount?"),
        ([{"tools": "send", "tainted": ["recipient"], "then": "ask"}], "r1", "speaks of recipient"),
        ([{"tools": "*refund", "then": "ask"}], "r1", "asks about tools that only read too: get_refund"),
        ([{"tools": "*refund", "then": "deny"}], "r1", "denies tools that only read too: get_refund"),
        ([{**WRITES, "then": "ask"}, {"tools": "send", **WRITES, "then": "deny"}], "r2", "never reached: 'r1'"),
        ([{"tools": "send", "then": "allow"}], "", "no rule is about issue_refund"),
    ],
)
def test_what_is_odd_about_rules_is_told(rules: list[dict[str, Any]], about: str, words: str) -> None:
    """Names that fit nothing, arguments that nothing takes, rules behind others, and tools that no rule is about."""
    found = [each for each in remarks(policy(*rules), TOOLS) if each.about == about]
    assert len(found) == 1
    assert words in found[0].message


def test_what_is_odd_about_floors_and_trust_is_told() -> None:
    """They name tools and arguments too."""
    found = policy(
        {**WRITES, "then": "ask"},
        floors=[
            {"name": "f", "tools": "reply", "risk": "high"},
            {"name": "g", "tools": "send", "args": {"txt": {"given": True}}, "risk": "high"},
        ],
        trusted=[
            {"name": "a", "from_tool": "crm_*"},
            {"name": "b", "from_tool": "get_*"},
            {"name": "c", "from_input": "x", "tools": "mail"},
        ],
    )
    told = {each.about: each.message for each in remarks(found, TOOLS, read_only_trusted=["get_refund"])}
    assert set(told) == {"f", "g", "a", "b", "c"}
    assert "trusted already" in told["b"]


def test_there_is_nothing_odd_about_a_policy_for_these_tools() -> None:
    """Rules in their order, each with something left to decide."""
    rules = policy(
        {"tools": "issue_*", "args": {"amount": {"at_most": 5}}, "then": "allow"},
        {"toolkits": "mail", "roles": ["clerk"], "then": "ask"},
        {**WRITES, "tainted": True, "then": "deny"},
        {**WRITES, "then": "ask"},
        trusted=[{"name": "a", "from_tool": "get_*", "tools": "send"}],
    )
    assert remarks(rules, TOOLS) == []


def test_a_call_is_explained_rule_by_rule() -> None:
    """Floors first, then rules up to the one that settles it, each with what does not fit."""
    rules = policy(
        {"tools": "mail", "then": "allow"},
        {"args": {"amount": {"at_most": 5}}, "then": "allow"},
        {"then": "ask"},
        {"then": "deny"},
        floors=[{"name": "f", "args": {"note": {"matches": "x"}}, "risk": "high"}],
    )
    found = explained(rules, refund(note="y"))
    assert [(kind, name, judged.truth) for kind, name, judged in found] == [
        ("floor", "f", False), ("rule", "r1", False), ("rule", "r2", None), ("rule", "r3", True),
    ]  # fmt: skip
    assert [judged.because for _, _, judged in found] == [
        ("note is not as it says",), ("its tools are mail",), ("amount is missing or cannot be judged",), (),
    ]  # fmt: skip
