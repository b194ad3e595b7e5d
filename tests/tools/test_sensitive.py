"""Which arguments no stranger may fill: those that a tool names, else those that are called so."""

from __future__ import annotations

from typing import Any

import pytest

from plans.values import JSON, Path
from tools.sensitive import is_sensitive, may_be_sensitive
from tools.spec import ToolSpec


def spec(effect: Any = "idempotent", **more: Any) -> ToolSpec:
    """A tool with this effect."""
    return ToolSpec(name="act", effect=effect, **more)


@pytest.mark.parametrize(
    "name",
    [
        "to", "recipient", "cc", "email", "user_email", "emailAddress", "url", "callback_url", "webhookUrl",
        "amount", "total_amount", "account_id", "iban", "path", "file_path", "filename", "command", "to_user",
        "destination", "password", "participants", "currency",
    ],
)  # fmt: skip
def test_what_is_called_so_decides_whom_an_effect_reaches(name: str) -> None:
    """In snake or camel case, in the singular or the plural, alone or as a word of the name."""
    assert is_sensitive(spec(), (name,))


@pytest.mark.parametrize(
    "name",
    ["text", "body", "subject", "title", "note", "valid_to", "file_format", "language", "limit", "pathology"],
)
def test_what_is_only_read_is_not(name: str) -> None:
    """Words that mean something else within a name, and parts of words, are none of them."""
    assert not is_sensitive(spec(), (name,))


@pytest.mark.parametrize(
    ("path", "value", "sensitive"),
    [
        (("payment", "iban"), None, True),
        (("items", 0, "url"), None, True),
        (("payment",), {"iban": "DE1"}, True),
        (("payments",), [{"to": {"name": "x"}}], True),
        (("payment",), {"note": "x"}, False),
        (("payment", 3), "iban", False),
    ],
)
def test_a_field_of_an_argument_counts_as_its_argument_does(path: Path, value: JSON, sensitive: bool) -> None:
    """Whether the plan says the field, or the value that is put there brings it along."""
    assert is_sensitive(spec(), path, value) is sensitive


def test_a_tool_s_own_word_counts_and_nothing_beside_it() -> None:
    """Also that there are none; what lies below a named argument is meant with it."""
    own = spec(sensitive_args=("body",))
    assert is_sensitive(own, ("body", "x"))
    assert not is_sensitive(own, ("recipient",))
    assert not is_sensitive(spec(sensitive_args=()), ("recipient",), {"iban": "x"})


def test_of_a_read_only_where_it_connects_to_counts() -> None:
    """Whoever is asked learns what was asked; a read within the house tells nobody. Its own word counts here too."""
    read = spec("read")
    assert [is_sensitive(read, (name,)) for name in ("url", "host", "path", "email")] == [True, True, False, False]
    assert is_sensitive(spec("read", sensitive_args=("params",)), ("params",))


@pytest.mark.parametrize(
    ("tool", "args", "may"),
    [
        (spec("read"), {"order_id": 1}, False),
        (spec("read"), {"url": 1}, True),
        (spec(), {"payment": {}}, True),
        (spec(sensitive_args=("to",)), {"text": 1}, False),
        (spec(sensitive_args=("to",)), {"to": 1}, True),
        (spec(sensitive_args=()), {"to": 1}, False),
    ],
)
def test_a_call_without_any_is_passed_over(tool: ToolSpec, args: dict[str, JSON], may: bool) -> None:
    """So that a read costs next to nothing."""
    assert may_be_sensitive(tool, args) is may
