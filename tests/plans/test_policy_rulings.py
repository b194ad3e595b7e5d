"""What policies come to for a call: the first rule that fits, and the strictest of what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.policy import Policy, Terms
from plans.policy_rulings import STRICTNESS, Action, Ruling, judge, possible, ruling, stricter, surely_denied
from tests.plans.policy_samples import policies, policy, refund, sources, stranger_s, values

SMALL = {"tools": "*refund*", "args": {"amount": {"at_most": 50}}, "then": "allow"}
LARGE = {"tools": "*refund*", "then": "ask", "approvers": ["finance"], "needed": 2}


def at_least_as_strict(one: Ruling, other: Ruling) -> bool:
    """Whether nothing passes by the first that would not pass by the second."""
    if STRICTNESS.index(one.then) != STRICTNESS.index(other.then):
        return STRICTNESS.index(one.then) > STRICTNESS.index(other.then)
    if one.then != "ask" or one.terms is None or other.terms is None:
        return True
    who, whose = set(one.terms.approvers), set(other.terms.approvers)
    later, theirs = set(one.terms.escalate_to), whose | set(other.terms.escalate_to)
    return (
        (one.terms.needed or 1) >= (other.terms.needed or 1)
        and bool(one.terms.by_another) >= bool(other.terms.by_another)
        and (not whose or (bool(who) and who <= whose))
        and (not whose or later <= theirs)
    )


def test_the_first_rule_that_fits_decides() -> None:
    """Order is what counts: a later rule is for what the ones before it leave."""
    rules = policy(SMALL, LARGE)
    assert ruling([rules], refund(amount=50)).then == "allow"
    asked = ruling([rules], refund(amount=50.5))
    assert (asked.then, asked.rule, asked.terms) == ("ask", "r2", Terms(approvers=("finance",), needed=2))
    assert ruling([policy(LARGE, SMALL)], refund(amount=50)).then == "ask"


def test_an_effect_that_no_rule_fits_is_denied_and_a_read_is_not() -> None:
    """Default deny, also of an empty policy; what only reads goes on as without a policy, on the policy's terms."""
    empty = policy(asking={"approvers": ["legal"]})
    denied = ruling([empty], refund(amount=1))
    assert denied.then == "deny"
    assert "no rule of the policy fits" in denied.why
    read = ruling([empty], Action("look", "read"))
    assert (read.then, read.terms) == ("silent", Terms(approvers=("legal",)))


def test_without_a_policy_nothing_is_said() -> None:
    """One person on one machine: risks decide, as ever."""
    assert ruling([], refund(amount=1)) == Ruling("silent", risk="high")


@pytest.mark.parametrize(
    "missing", [{}, {"amount": None}, {"amount": "all of it"}, {"amount": {}}, {"amount": [1, 99]}]
)
def test_what_cannot_be_judged_falls_to_the_stricter_side(missing: dict[str, Any]) -> None:
    """Neither does an allowing rule fit it, nor is a denying one passed over."""
    assert ruling([policy(SMALL, LARGE)], refund(**missing)).then == "ask"
    above = {"tools": "*refund*", "args": {"amount": {"above": 50}}, "then": "deny"}
    denied = ruling([policy(above, {"then": "allow"})], refund(**missing))
    assert (denied.then, denied.rule) == ("deny", "r1")
    assert "amount is missing or cannot be judged" in denied.why


def test_an_argument_that_a_tool_does_not_take_is_none_of_its_rules_business() -> None:
    """A rule about amounts does not catch tools that have none; where any argument may come, it may."""
    large = {"args": {"amount": {"above": 50}}, "then": "deny"}
    rules = policy(large, {"then": "allow"})
    mail = Action("send_mail", "irreversible", {"to": "a"}, takes=frozenset({"to"}))
    assert ruling([rules], mail).then == "allow"
    assert ruling([rules], replace(mail, takes=None)).then == "deny"


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ({"tools": "issue_*"}, True),
        ({"tools": ["mail", "*_refund"]}, True),
        ({"tools": "refund"}, False),
        ({"toolkits": "sh?p"}, True),
        ({"toolkits": "other"}, False),
        ({"effects": "write"}, True),
        ({"effects": ["read", "idempotent"]}, False),
        ({"roles": "support"}, True),
        ({"roles": ["admin"]}, False),
        ({"tenants": ["acme", ""]}, True),
        ({"tenants": "acme"}, False),
        ({"risk": ["high", "medium"]}, True),
        ({"risk": "low"}, False),
        ({"tools": "*refund*", "effects": "read"}, False),
    ],
)
def test_everything_that_a_rule_says_has_to_fit(said: dict[str, Any], fits: bool) -> None:
    """Tool, toolkit, effect, role of the run, and risk."""
    rules = policy({**said, "then": "allow"})
    assert judge(rules.rules[0], rules, refund(amount=1), ("high",)).truth is fits


def test_a_run_without_a_role_has_none_of_a_rule_s_roles() -> None:
    """No role is not every role."""
    rules = policy({"roles": ["support"], "then": "allow"})
    assert ruling([rules], replace(refund(), role=None)).then == "deny"


def test_strangers_text_is_seen_in_the_arguments_that_a_rule_names() -> None:
    """`tainted` is about any argument, about named ones, or about none; unknown origins are neither."""
    told = replace(refund(amount=1, to="a"), sources=(stranger_s("to"), stranger_s("amount[0].x")))
    clean = replace(told, sources=sources({"to": 1, "amount": 1}, strange=False))
    for said, strange in [(True, True), (["to"], True), (["note"], False), (False, False)]:
        rules = policy({"tainted": said, "then": "allow"})
        assert judge(rules.rules[0], rules, told).truth is strange
        assert judge(rules.rules[0], rules, clean).truth is (said is False)
    for unknown in (None, (stranger_s("note"),)):
        rules = policy({"tainted": False, "then": "allow"})
        assert ruling([rules], replace(told, sources=unknown)).then == "deny"


def test_a_trusted_source_is_no_stranger() -> None:
    """What the policy trusts for an argument does not taint it, there and nowhere else."""
    trusted = [{"name": "own address", "from_tool": "crm_*", "field": "email", "args": ["to"]}]
    rules = policy({"tainted": False, "then": "allow"}, trusted=trusted)
    assert ruling([rules], replace(refund(to="a"), sources=(stranger_s("to"),))).then == "allow"
    assert ruling([rules], replace(refund(note="a"), sources=(stranger_s("note"),))).then == "deny"


def test_floors_raise_the_risk_that_rules_and_people_see() -> None:
    """The highest of all floors that fit, never less than tool and plan say; where it cannot be told, the higher."""
    floors = [
        {"name": "money", "args": {"note": {"matches": ".*money.*"}}, "risk": "high"},
        {"name": "any", "risk": "medium"},
    ]
    rules = policy({"risk": "high", "then": "ask"}, {"then": "allow"}, floors=floors)
    reply = replace(refund(note="hello"), risk="low")
    assert (ruling([rules], reply).then, ruling([rules], reply).risk) == ("allow", "medium")
    about_money = replace(reply, args={"note": "your money"})
    assert (ruling([rules], about_money).then, ruling([rules], about_money).risk) == ("ask", "high")
    assert ruling([rules], replace(reply, args={})).then == "ask"
    assert ruling([rules], replace(reply, risk="high")).risk == "high"


def test_a_rule_takes_the_terms_it_does_not_say_from_the_policy() -> None:
    """Field by field; an empty list of approvers is said, and means anybody."""
    asking: dict[str, Any] = {
        "approvers": ["lead"],
        "needed": 2,
        "expires_s": 600,
        "escalate_after_s": 300,
        "escalate_to": ["boss"],
    }
    rules = policy({"then": "ask", "approvers": ["finance"]}, asking=asking)
    assert ruling([rules], refund()).terms == Terms(**{**asking, "approvers": ["finance"]})
    anybody = policy({"then": "ask", "approvers": [], "needed": 1, "expires_s": 200}, asking=asking)
    assert ruling([anybody], refund()).terms == Terms(approvers=(), needed=1, expires_s=200)


def test_two_policies_are_both_kept() -> None:
    """The stricter of what they say, and of two that ask the people and times that satisfy both."""
    first = policy({"then": "ask", "approvers": ["a", "b"], "expires_s": 100})
    second = policy({"then": "ask", "approvers": ["b", "c"], "needed": 2, "expires_s": 50})
    both = ruling([first, second], refund())
    assert both.terms == Terms(approvers=("b",), needed=2, expires_s=50)
    assert ruling([first, policy({"then": "allow"})], refund()).then == "ask"
    assert ruling([policy({"then": "allow"}), policy()], refund()).then == "deny"
    nobody = ruling([first, policy({"then": "ask", "approvers": ["z"]})], refund())
    assert nobody.then == "deny"
    assert "nobody may decide by both" in nobody.why


def test_what_is_surely_denied_is_known_before_the_arguments_are() -> None:
    """A plan can be refused for it; what only may be denied waits for its arguments."""
    later = replace(refund(), unknown=frozenset({"amount"}))
    never = policy({"tools": "mail", "then": "allow"})
    assert surely_denied([never], later) is not None
    assert surely_denied([policy(SMALL)], later) is None
    assert surely_denied([policy(SMALL)], refund(amount=51)) is not None
    assert surely_denied([], later) is None
    assert surely_denied([policy({"then": "allow"}), never], later) is not None


@given(policies(), values(), st.booleans())
def test_not_knowing_is_never_milder_than_knowing(rules: Policy, args: dict[str, Any], strange: bool) -> None:
    """Whatever an unknown argument turns out to be, the ruling without it was at least as strict."""
    known = replace(refund(**args), sources=sources(args, strange))
    unknown = replace(known, args={}, unknown=frozenset(args))
    assert at_least_as_strict(ruling([rules], unknown), ruling([rules], known))
    assert at_least_as_strict(ruling([rules], replace(known, sources=None)), ruling([rules], known))
    if surely_denied([rules], unknown) is not None:
        assert ruling([rules], known).then == "deny"


@given(st.lists(policies(), min_size=1, max_size=3), policies(), values())
def test_another_policy_can_only_make_it_stricter(first: list[Policy], second: Policy, args: dict[str, Any]) -> None:
    """A file that changes while a run goes on takes nothing back of what the run was begun under."""
    action = refund(**args)
    before, after = ruling(first, action), ruling([*first, second], action)
    assert at_least_as_strict(after, before)
    assert at_least_as_strict(after, ruling([second], action))
    assert at_least_as_strict(ruling([*first, first[0]], action), before)
    assert at_least_as_strict(before, ruling([*first, first[0]], action))


@given(policies(), values())
def test_the_stricter_of_rulings_depends_on_no_order(rules: Policy, args: dict[str, Any]) -> None:
    """Whichever comes first, the same passes."""
    found = list(possible(rules, refund(**args)))
    for one in found:
        for other in found:
            forth, back = stricter(one, other), stricter(other, one)
            assert at_least_as_strict(forth, back)
            assert at_least_as_strict(back, forth)
            assert at_least_as_strict(forth, one)
