"""What a policy may say, what is refused of it, and which sources it trusts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from plans.errors import VersionTooNew
from plans.policy import Policy, fits, read_policy, trusted_by_all
from tests.plans.policy_samples import policies, policy, stranger_s


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"rules": [{"name": "a", "then": "allow", "tool": "x"}]}, "tool"),
        ({"rules": [{"name": "a"}]}, "then"),
        ({"rules": [{"then": "allow"}]}, "name"),
        ({"rules": [{"name": "a", "then": "maybe"}]}, "allow"),
        ({"rules": [{"name": "a", "then": "allow", "effects": "wipe"}]}, "effects"),
        ({"rules": [{"name": "a", "then": "allow", "effects": [{}]}]}, "effects"),
        ({"rules": [{"name": "a", "then": "allow", "tools": "get[ab]"}]}, "tools"),
        ({"rules": [{"name": "a", "then": "allow", "args": {"a[0]": {"at_most": 1}}}]}, "a[0]"),
        ({"rules": [{"name": "a", "then": "allow", "needed": 2}]}, "rules that ask"),
        ({"rules": [{"name": "a", "then": "ask", "needed": 0}]}, "needed"),
        ({"rules": [{"name": "a", "then": "ask", "needed": "2"}]}, "needed"),
        ({"rules": [{"name": "a", "then": "ask", "escalate_to": ["b"]}]}, "belong together"),
        ({"rules": [{"name": "a", "then": "ask", "escalate_after_s": 5}]}, "belong together"),
        (
            {"rules": [{"name": "a", "then": "ask", "expires_s": 5, "escalate_after_s": 5, "escalate_to": "b"}]},
            "not before",
        ),
        ({"rules": [{"name": "a", "then": "allow"}, {"name": "a", "then": "deny"}]}, "two rules are called 'a'"),
        ({"rule": []}, "rule"),
        ({"version": 2}, "version"),
        ({"asking": {"who": "x"}}, "who"),
        ({"floors": [{"name": "a", "risk": "extreme"}]}, "risk"),
        ({"floors": [{"name": "a", "risk": "high", "then": "allow"}]}, "then"),
        ({"trusted": [{"name": "a"}]}, "one source"),
        ({"trusted": [{"name": "a", "from_tool": "x", "from_input": "y"}]}, "one source"),
        ({"trusted": [{"name": "a", "from_tool": "x", "field": "a[*]"}]}, "field"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(said: dict[str, Any], words: str) -> None:
    """Nothing unknown is passed over, and nothing is guessed."""
    with pytest.raises(ValidationError) as refused:
        Policy.model_validate(said)
    assert words in str(refused.value)


@given(policies())
def test_a_stored_policy_is_the_same_policy(rules: Policy) -> None:
    """The journal's copy decides as the file did, and has the same name."""
    again = read_policy(json.loads(json.dumps(rules.stored())))
    assert again == rules
    assert again.sha256 == rules.sha256
    assert [each.terms for each in again.rules] == [each.terms for each in rules.rules]


def test_a_stored_policy_of_a_newer_version_is_refused() -> None:
    """A rule that this version does not know is not passed over."""
    with pytest.raises(VersionTooNew, match="nothing was changed"):
        read_policy({"version": 1, "rules": [{"name": "a", "then": "allow", "weekdays": ["mon"]}]})


def test_what_a_policy_says_has_one_name() -> None:
    """Another word is another name."""
    one, other = policy({"then": "allow"}), policy({"then": "deny"})
    assert one.sha256 == policy({"then": "allow"}).sha256
    assert one.sha256 != other.sha256


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("*", "", True),
        ("get_*", "get_order", True),
        ("get_*", "forget_order", False),
        ("*_order", "get_orders", False),
        ("*a*b", "xaybzb", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("GET_*", "get_order", False),
        ("a**b", "ab", True),
        ("a-b_c", "a-b_c", True),
    ],
)
def test_a_glob_describes_the_whole_of_a_name(glob: str, name: str, expected: bool) -> None:
    """Stars stand for anything, question marks for one character, all else for itself."""
    assert fits(name, [glob]) is expected


def test_a_glob_of_many_stars_takes_no_time() -> None:
    """No name that a stranger's server gives a tool can make matching slow."""
    assert not fits("a" * 64, ["*a" * 31 + "b"])


TRUST: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"from_tool": "crm_*"}, {}, True),
    ({"from_tool": "crm_*", "field": "email"}, {}, True),
    ({"from_tool": "crm_*", "field": "name"}, {}, False),
    ({"from_tool": "mail"}, {}, False),
    ({"from_tool": "crm_*", "args": "to"}, {}, True),
    ({"from_tool": "crm_*", "args": ["note"]}, {}, False),
    ({"from_tool": "crm_*", "tools": "send_*"}, {}, True),
    ({"from_tool": "crm_*", "tools": "pay"}, {}, False),
    ({"from_tool": "*", "field": "customer"}, {"source": "s1.customer.email"}, True),
    ({"from_tool": "*", "field": "customer.email"}, {"source": "s1.customer"}, False),
    ({"from_tool": "*", "field": "rows.email"}, {"source": "s1.rows[3].email"}, True),
    ({"from_tool": "*", "field": "email"}, {"source": "s1.notes | email"}, False),
    ({"from_tool": "*", "field": "email"}, {"source": "s1.email || s1.note"}, False),
    ({"from_tool": "*", "field": "email"}, {"source": "s1"}, False),
    ({"from_tool": "*"}, {"tool": None}, False),
    ({"from_input": "orders"}, {"source": "inputs.orders[0].to", "tool": None}, True),
    ({"from_input": "orders", "field": "to"}, {"source": "inputs.orders[0].to", "tool": None}, True),
    ({"from_input": "orders", "field": "note"}, {"source": "inputs.orders[0].to", "tool": None}, False),
    ({"from_input": "orders"}, {"source": "inputs.orders2", "tool": None}, False),
    ({"from_input": "orders"}, {"source": "inputs.orders", "tool": "crm_get"}, False),
]


@pytest.mark.parametrize(("said", "value", "expected"), TRUST)
def test_a_source_is_trusted_for_a_field_and_an_argument(
    said: dict[str, Any], value: dict[str, Any], expected: bool
) -> None:
    """By the tool or input it came from, the plain path in it, and where it goes; what was made of it by a model, or
    is found by more than a path, is not the source's any more."""
    rules = policy(trusted=[{"name": "t", **said}])
    where = stranger_s("to[0]").model_copy(update=value)
    assert (rules.trusts(where, "send_mail") == "t") is expected


def test_a_source_is_trusted_if_all_policies_of_a_run_trust_it() -> None:
    """A policy that came later takes trust away, and gives none."""
    trusting, other = policy(trusted=[{"name": "t", "from_tool": "*"}]), policy()
    assert trusted_by_all([trusting, trusting], stranger_s("to"), "mail") == "t"
    assert trusted_by_all([trusting, other], stranger_s("to"), "mail") is None
    assert trusted_by_all([], stranger_s("to"), "mail") is None
