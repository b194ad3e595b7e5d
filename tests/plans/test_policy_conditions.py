"""Conditions of a policy: what holds, what does not, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from plans.policy_conditions import ABSENT, Condition, all_of, truth_at

HOLDS: list[tuple[dict[str, Any], Any, bool | None]] = [
    ({"at_most": 50}, 50, True),
    ({"at_most": 50}, 50.01, False),
    ({"at_most": 50}, "50", True),
    ({"at_most": 50}, "5e1", None),
    ({"at_most": 50}, True, None),
    ({"at_most": 50}, float("nan"), None),
    ({"at_most": 50}, None, None),
    ({"at_least": 1, "below": 3}, 3, False),
    ({"at_least": 1, "below": 3}, 1, True),
    ({"above": "0.1"}, 0.1, False),
    ({"one_of": ["EUR", "USD"]}, "EUR", True),
    ({"one_of": "EUR"}, "eur", False),
    ({"one_of": [1]}, True, False),
    ({"one_of": [1]}, 1.0, True),
    ({"one_of": ["a"]}, {"a": 1}, None),
    ({"email_domain": "Shop.example"}, "ann@shop.example", True),
    ({"email_domain": "shop.example"}, "ann@evil.example", False),
    ({"email_domain": "shop.example"}, "ann@a.shop.example", False),
    ({"email_domain": "shop.example", "subdomains": True}, "ann@a.shop.example", True),
    ({"email_domain": "shop.example"}, "Ann <ann@shop.example>", None),
    ({"email_domain": "shop.example"}, "ann@shop.example, eve@evil.example", None),
    ({"url_host": "api.example"}, "https://api.example/x", True),
    ({"url_host": "api.example"}, "https://evil.example/x", False),
    ({"url_host": "api.example"}, "http://api.example/x", None),
    ({"url_host": "api.example"}, "https://api.example@evil.example/", None),
    ({"inside_path": "/srv/out"}, "/srv/out/a.txt", True),
    ({"inside_path": "/srv/out"}, "/srv/other", False),
    ({"inside_path": "/srv/out"}, "/srv/out/../../etc/passwd", None),
    ({"inside_path": "/srv/out"}, "out/a.txt", None),
    ({"inside_path": "out"}, "other/a.txt", False),
    ({"matches": r"INV-\d+"}, "INV-7", True),
    ({"matches": r"INV-\d+"}, "INV-7; DROP", False),
    ({"matches": "x"}, 3, None),
    ({"given": True}, "x", True),
    ({"given": True}, None, False),
    ({"given": False}, ABSENT, True),
    ({"given": False}, "", False),
    ({"at_most": 5, "or_absent": True}, ABSENT, True),
    ({"at_most": 5, "or_absent": True}, None, True),
    ({"at_most": 5, "or_absent": True}, 6, False),
    ({"at_most": 5}, ABSENT, None),
    ({"one_of": ["a"]}, "[sealed:inputs.iban#0123456789abcdef]", None),
    ({"matches": "hello"}, "hi [sealed:inputs.iban#0123456789abcdef]", None),
    ({"given": True}, "[sealed:inputs.iban#0123456789abcdef]", True),
]


@pytest.mark.parametrize(("said", "value", "expected"), HOLDS)
def test_a_condition_holds_or_does_not_or_cannot_be_told(
    said: dict[str, Any], value: Any, expected: bool | None
) -> None:
    """What can be read in two ways, or is of another type, or is not there, is neither true nor false."""
    assert Condition.model_validate(said).truth(value) is expected


@pytest.mark.parametrize(
    ("args", "path", "expected"),
    [
        ({"order": {"lines": [{"price": 5}, {"price": 9}]}}, "order.lines.price", True),
        ({"order": {"lines": [{"price": 5}, {"price": 11}]}}, "order.lines.price", None),
        ({"order": {"lines": [{"price": 11}, {"price": 12}]}}, "order.lines.price", False),
        ({"order": {"lines": [{"price": 5}, {}]}}, "order.lines.price", None),
        ({"order": {"lines": []}}, "order.lines.price", None),
        ({"order": "5"}, "order.lines.price", None),
        ({"prices": [[1, 2], [3]]}, "prices", True),
    ],
)
def test_every_value_at_a_place_is_judged(args: dict[str, Any], path: str, expected: bool | None) -> None:
    """Lists are gone through at every level; where values differ in it, where one is missing and where there is none
    it cannot be told."""
    assert truth_at(Condition.model_validate({"at_most": 10}), args, path) is expected


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"or_absent": True},
        {"at_most": "much"},
        {"at_most": True},
        {"at_most": [1]},
        {"atmost": 1},
        {"matches": "(a"},
        {"matches": r"(?=a)"},
        {"one_of": []},
        {"email_domain": "not a domain"},
        {"url_host": "https://api.example"},
        {"inside_path": "../x"},
        {"given": "yes"},
        {"given": True, "or_absent": True},
        {"given": False, "at_most": 1},
        {"subdomains": True, "at_most": 1},
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(said: dict[str, Any]) -> None:
    """Nothing is guessed: an unknown word, an unreadable pattern or number, and what contradicts itself are errors."""
    with pytest.raises(ValidationError):
        Condition.model_validate(said)


def test_one_that_does_not_hold_settles_what_cannot_be_told() -> None:
    """False is stronger than unknown, and unknown than true."""
    assert all_of([True, None, False]) is False
    assert all_of([True, None]) is None
    assert all_of([]) is True
