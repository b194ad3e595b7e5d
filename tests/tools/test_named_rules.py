"""Tests of the named checks: what passes, and what hostile values try to slip by."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from plans.errors import ConfigurationError
from tests.tools.calls import Scripted, a_call, code_of, tool_of
from tools.named_rules import CHECKS, AtMost, EmailDomain, Rule
from tools.outcome import CallFailure, Success
from tools.rules import check_rules
from tools.spec import ToolSpec
from tools.tool import Tool

ANY_ARGUMENT = {"type": "object", "properties": {"a": {}, "currency": {}}}


def ruled(**rule: Any) -> Tool:
    """A tool whose argument `a`, of any type, has one rule."""
    return tool_of(lambda **args: args, name="t", args_schema=ANY_ARGUMENT, rules=[{"arg": "a", **rule}])


def passes(tool: Tool, **args: Any) -> bool:
    """Whether the arguments break no rule."""
    return not tool.breaches(args)


OWN = {"check": "email_domain", "allowed": ["example.com", "Example.ORG"]}


@pytest.mark.parametrize(
    "address",
    ["a@example.com", "A.b+c@EXAMPLE.com", "o'brien@example.org", ["a@example.com", "b@example.org"], [],
     [["a@example.com"]]],
)  # fmt: skip
def test_addresses_at_an_allowed_domain_pass(address: Any) -> None:
    """One address, or a list of them, whatever the case of the letters."""
    assert passes(ruled(**OWN), a=address)


@pytest.mark.parametrize(
    "address",
    [
        "a@example.com.evil.com", "a@evil.com", "a@evilexample.com", "a@sub.example.com", "a@example.com.",
        "a@example.com@evil.com", "a@evil.com@example.com", "x@evil.com, y@example.com", "x@evil.com;y@example.com",
        "x@evil.com y@example.com", "x@evil.com\ny@example.com", "a@example.com\n", " a@example.com", "a@example.com ",
        "Ann <a@example.com>", "<a@example.com>", '"x@evil.com"@example.com', "a@exаmple.com", "a@example。com",
        "ａ@example.com", "a@[127.0.0.1]", "@example.com", "a@", "example.com", "", "x%evil.com@example.com",
        "evil.com!x@example.com", "a@example.com?bcc=x@evil.com", "mailto:a@example.com", "a@example.com\0",
        "-oX@example.com",
        "a" * 65 + "@example.com", "a@example.com#evil.com", "a(@evil.com)@example.com", "a@xn--exmple-4nf.com",
        ["a@example.com", "x@evil.com"], [["a@example.com", ["x@evil.com"]]], ["a@example.com", None], [1],
        None, 3, True, {"email": "a@example.com"}, {"a@example.com": "x"},
    ],
)  # fmt: skip
def test_no_other_address_slips_by(address: Any) -> None:
    """Look-alike domains, several addresses in one text, display names, routes, odd types: none passes."""
    assert not passes(ruled(**OWN), a=address)


def test_subdomains_pass_only_where_the_rule_says_so() -> None:
    """With subdomains, what ends in .example.com passes, and what only ends in example.com does not."""
    tool = ruled(**OWN, subdomains=True)
    assert passes(tool, a="a@mail.example.com")
    assert not passes(tool, a="a@evilexample.com")
    assert not passes(tool, a="a@example.com.evil.com")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ("at_most", [1000, 999.9, -5, "1000", "1000.0", Decimal(1000), [1, 2]],
         [1000.01, 1001, "1001", "1e9", "1e2", "NaN", float("nan"), float("inf"), "inf", "٣", "1,000", "0x10", " 5",
          "5\n", "", True, None, [1, 1001], [1, None], {"n": 1}, Decimal("NaN"), 10**300, "9" * 60, "1_000"]),
        ("at_least", [1000, 10**300, "1000"], [999, -1e9, "999.9", "-inf", float("nan"), None, True]),
    ],
)  # fmt: skip
def test_only_real_numbers_within_a_bound_pass(check: str, good: list[Any], bad: list[Any]) -> None:
    """What could be read as another number, or as none, is not within any bound."""
    tool = ruled(check=check, value=1000)
    assert [value for value in good if not passes(tool, a=value)] == []
    assert [value for value in bad if passes(tool, a=value)] == []
    assert passes(ruled(check=check, value=0.1), a=0.1)


@pytest.mark.parametrize(
    ("args", "ok"),
    [
        ({"a": 500, "currency": "EUR"}, True),
        ({"a": "80000", "currency": "JPY"}, True),
        ({"a": 0, "currency": "EUR"}, True),
        ({"a": 500.01, "currency": "EUR"}, False),
        ({"a": 501, "currency": "EUR"}, False),
        ({"a": -1, "currency": "EUR"}, False),
        ({"a": 5, "currency": "eur"}, False),
        ({"a": 5, "currency": "USD"}, False),
        ({"a": 5, "currency": None}, False),
        ({"a": 5}, False),
        ({"currency": "EUR"}, False),
        ({"a": "1e2", "currency": "EUR"}, False),
        ({"a": 5, "currency": ["EUR"]}, True),
        ({"a": [5, 600], "currency": "EUR"}, False),
        ({"a": [5, 600], "currency": ["EUR", "JPY"]}, True),
        ({"a": [600, 5], "currency": ["EUR", "JPY"]}, False),
        ({"a": [5, 5], "currency": ["EUR", "JPY", "EUR"]}, False),
    ],
)
def test_an_amount_is_judged_in_its_currency(args: dict[str, Any], ok: bool) -> None:
    """500 is little in one currency and too much in another; a currency without a limit is refused."""
    assert passes(ruled(check="amount", at_most={"EUR": 500, "JPY": 80_000}), **args) == ok


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"check": "length_at_most", "value": 3}, ["abc", "", [1, 2, 3], "äöü"], ["abcd", [1, 2, 3, 4], 5, None, {}]),
        ({"check": "one_of", "values": ["a", 1, True]}, ["a", 1, 1.0, True, ["a", 1]],
         ["A", "1", False, 0, 2, None, ["a", "b"], {}, "a "]),
        ({"check": "one_of", "values": [1]}, [1], [True, "1", 1.5]),
        ({"check": "matches", "pattern": "[A-Z]\\d{4}"}, ["A1234", ["B0000"]],
         ["A12345", "xA1234", "A1234\n", "A123٣", "", None, 5, ["A1234", "x"]]),
        ({"check": "matches", "pattern": "a|b"}, ["a", "b"], ["ab", "xb", "ax"]),
        ({"check": "matches", "pattern": "\\w+", "ascii": False}, ["名前"], ["a b"]),
        ({"check": "matches", "pattern": "(a*)*b"}, ["aab"], ["a" * 100_000]),
        ({"check": "inside_path", "folder": "/srv/out"}, ["/srv/out/a", "/srv/out/b/c", "/srv/out//a", "/srv/out/./a"],
         ["/srv/out", "/srv/outside", "/srv/out/../x", "/srv", "out/a", "a", "", "/srv/out/a\0", "/srv/out/..\\x",
          "~/a", "/srv/out/\n", None, 3, ["/srv/out/a", "/etc/passwd"]]),
        ({"check": "inside_path", "folder": "."}, ["a", "a/b.txt", "./a"], ["../a", "/a", ".", "a/../../b", "C:\\a"]),
        ({"check": "url_host", "allowed": ["example.com", "api.example.org:8443"]},
         ["https://example.com", "https://EXAMPLE.com/a?b=http://evil.com#x", "https://example.com:443/",
          "https://api.example.org:8443/x", "https://example.com/@evil.com"],
         ["http://example.com", "https://evil.com", "https://example.com.evil.com", "https://example.com@evil.com",
          "https://user@example.com", "https://example.com:8443", "https://sub.example.com", "https://example.com.",
          "https://evil.com\\@example.com", "https://evil.com#@example.com", "https://evil.com/example.com",
          "//example.com", "example.com", "https:example.com", "https:///example.com", "javascript://example.com/%0a",
          "https://exаmple.com", "https://example.com\t", " https://example.com", "https://example.com\n.evil.com",
          "https://api.example.org", "https://[::1]/", "https://example%2ecom", "https://example.com:0443x", "",
          "https://example.com:", None, 3, ["https://example.com", "https://evil.com"], "file:///etc/passwd"]),
        ({"check": "url_host", "allowed": ["example.com"], "subdomains": True, "schemes": ["http", "https"]},
         ["http://a.b.example.com", "http://example.com:80"], ["http://evilexample.com", "ftp://example.com"]),
    ],
)  # fmt: skip
def test_each_check_lets_pass_what_it_should_and_nothing_else(
    rule: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    """One row per check, with what people try to slip by it."""
    tool = ruled(**rule)
    assert [value for value in good if not passes(tool, a=value)] == []
    assert [value for value in bad if passes(tool, a=value)] == []


@pytest.mark.parametrize(
    "rule",
    [
        OWN, {"check": "at_most", "value": 1}, {"check": "at_least", "value": 1},
        {"check": "length_at_most", "value": 1}, {"check": "one_of", "values": ["a"]},
        {"check": "matches", "pattern": ".*"}, {"check": "inside_path", "folder": "."},
        {"check": "url_host", "allowed": ["example.com"]}, {"check": "amount", "at_most": {"EUR": 1}},
    ],
)  # fmt: skip
def test_a_missing_argument_breaks_a_rule_unless_it_is_optional(rule: dict[str, Any]) -> None:
    """Neither nothing nor null is a way around a rule; where that is allowed, the rule says so."""
    assert not passes(ruled(**rule), currency="EUR")
    assert not passes(ruled(**rule), a=None, currency="EUR")
    assert passes(ruled(**rule, optional=True), currency="EUR")
    assert passes(ruled(**rule, optional=True), a=None, currency="EUR")


def test_a_rule_reaches_into_objects_and_lists_of_them() -> None:
    """`a.lines.n` is the n of every line; one that lacks it breaks the rule."""
    tool = ruled(arg="a.lines.n", check="at_most", value=5)
    assert passes(tool, a={"lines": [{"n": 1}, {"n": 5}]})
    assert not passes(tool, a={"lines": [{"n": 1}, {"n": 6}]})
    assert not passes(tool, a={"lines": [{"n": 1}, {}]})
    assert not passes(tool, a={})


async def test_a_refusal_names_the_rule_and_shows_no_value() -> None:
    """The sentence has tool, argument, what would be right and the rule's name; not what was given."""
    rules: list[Rule] = [
        EmailDomain(arg="a", allowed=("example.com",)),
        EmailDomain(name="own people", arg="a", allowed=("example.com",), message="write to colleagues only"),
    ]
    tool = tool_of(lambda a: a, name="send", rules=rules)
    assert [each.sentence for each in tool.breaches({"a": "secret@evil.com"})] == [
        "send: a must be one plain address at example.com (rule 'email_domain of a')",
        "send: write to colleagues only (rule 'own people')",
    ]
    below = Scripted([Success(1)])
    outcome = await check_rules(a_call(tool, {"a": "secret@evil.com"}), below)
    assert (code_of(outcome), below.calls) == ("RULE_VIOLATED", [])
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.message.endswith("(rule 'email_domain of a')")


def test_money_of_a_typed_tool_counts_however_it_is_written() -> None:
    """A Decimal argument is a number to a rule, as text too; a default counts as given."""

    def pay(total: Decimal, lines: list[Line], limit: int = 2_000) -> None: ...

    rules = [AtMost(arg="total", value=Decimal(100)), AtMost(arg="lines.amount", value=Decimal(50))]
    tool = tool_of(pay, rules=rules, effect="idempotent")
    assert passes(tool, total="100.00", lines=[{"amount": "50"}])
    assert not passes(tool, total="1e3", lines=[])
    assert not passes(tool, total=100, lines=[{"amount": "50"}, {"amount": 50.01}])
    capped = tool_of(pay, rules=[AtMost(arg="limit", value=Decimal(1_000))], effect="idempotent")
    assert not passes(capped, total=1, lines=[])


def test_every_check_can_be_given_as_data() -> None:
    """What a settings file can say is what code can say: each check has one name, and is found by it."""
    rules: list[dict[str, Any]] = [
        {"condition": "a", "message": "m"},
        {"check": "amount", "arg": "a", "at_most": {"EUR": 1}},
        {"check": "email_domain", "arg": "a", "allowed": ["example.com"]},
        {"check": "url_host", "arg": "a", "allowed": ["example.com"]},
        {"check": "one_of", "arg": "a", "values": ["x"]},
        {"check": "matches", "arg": "a", "pattern": "x"},
        {"check": "inside_path", "arg": "a", "folder": "x"},
        *({"check": check, "arg": "a", "value": 1} for check in ("at_most", "at_least", "length_at_most")),
    ]
    spec = ToolSpec.model_validate({"name": "t", "rules": rules})
    assert {rule.check for rule in spec.rules} == set(CHECKS)
    assert ToolSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert ToolSpec.model_validate(spec.model_dump()) == spec


class Line(BaseModel):
    amount: Decimal


class Box(BaseModel):
    size: int
    label: str | None = None


def function(text: str, number: int, maybe: Decimal | None, boxes: list[Box], anything: Any) -> None: ...


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"check": "at_most", "arg": "numbr", "value": 1}, "over 'numbr'; did you mean 'number'?"),
        ({"check": "at_most", "arg": "text", "value": 1}, "judges integer or number, but text is string"),
        ({"check": "email_domain", "arg": "number", "allowed": ["a.b"]}, "judges string, but number is integer"),
        ({"check": "length_at_most", "arg": "number", "value": 1}, "judges array or string, but number is integer"),
        ({"check": "one_of", "arg": "number", "values": ["1"]}, "judges string, but number is integer"),
        ({"check": "at_most", "arg": "boxes.label", "value": 1}, "but boxes.label is string"),
        ({"check": "at_most", "arg": "boxes.siz", "value": 1}, "over 'boxes.siz'; did you mean 'size'?"),
        ({"check": "amount", "arg": "maybe", "at_most": {"EUR": 1}}, "over 'currency'"),
        ({"check": "at_mots", "arg": "number", "value": 1}, "a check that no rule has; there are condition"),
        ({"check": "at_most", "arg": "number"}, "has rules[0] without 'value'"),
        ({"check": "at_most", "arg": "number", "value": 1, "valeu": 2}, "'rules[0].valeu'; did you mean 'value'?"),
        ({"check": "at_most", "arg": "number", "value": "NaN"}, "finite"),
        ({"check": "email_domain", "arg": "text", "allowed": ["@example.com"]}, "'@example.com' is no domain"),
        ({"check": "email_domain", "arg": "text", "allowed": []}, "allowed"),
        ({"check": "url_host", "arg": "text", "allowed": ["https://a.b"]}, "'https://a.b' is no host"),
        ({"check": "matches", "arg": "text", "pattern": "a["}, "no regular expression"),
        ({"check": "matches", "arg": "text", "pattern": "(?=a)b"}, "look-around"),
        ({"check": "matches", "arg": "text", "pattern": "a)|(b"}, "no regular expression"),
        ({"check": "inside_path", "arg": "text", "folder": "../x"}, "no plain folder"),
        ({"condition": "number <", "message": "m"}, "a rule that cannot be read (rules.0)"),
        ({"condition": "nubmer < `3`", "message": "m", "name": "small"}, "a rule (small) over 'nubmer'"),
        ({"condition": "number < `3`"}, "message"),
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused_at_load(rule: dict[str, Any], said: str) -> None:
    """An unknown argument, a type that the check cannot judge, what cannot be read: a rule that guards nothing is worse
    than none."""
    with pytest.raises(ConfigurationError, match="tool 'function'") as refused:
        tool_of(function, rules=[rule], effect="idempotent")
    assert said in str(refused.value)


def test_rules_that_do_make_sense_are_taken() -> None:
    """Lists are looked into, null and Any are no reason to refuse."""
    rules = [
        {"check": "at_most", "arg": "maybe", "value": 1, "optional": True},
        {"check": "at_most", "arg": "boxes.size", "value": 1},
        {"check": "length_at_most", "arg": "boxes", "value": 1},
        {"check": "email_domain", "arg": "anything", "allowed": ["a.b"]},
        {"check": "at_most", "arg": "anything.deep.down", "value": 1},
        {"check": "one_of", "arg": "number", "values": [1, 2.0]},
    ]
    assert len(tool_of(function, rules=rules, effect="idempotent").spec.rules) == 6


def test_two_rules_of_one_name_are_refused() -> None:
    """A refusal must say which rule it was."""
    rules = [{"check": "at_most", "arg": "number", "value": n} for n in (1, 2)]
    with pytest.raises(ConfigurationError, match="2 rules called 'at_most of number'"):
        tool_of(function, rules=rules, effect="idempotent")
