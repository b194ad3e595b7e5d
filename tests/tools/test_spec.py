"""Tests of what a tool declares: the defaults, and the risk that its name brings along."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tools.fallbacks import Fallback
from tools.spec import EFFECTS, BreakerPolicy, Effect, Retry, ToolSpec, floor_of


def test_defaults_are_those_of_the_design() -> None:
    """A read gets 8 s, two retries after 0.5 and 1 s, and a breaker of 10 calls, 5 at least, 60 % and 60 s."""
    spec = ToolSpec(name="get_order", effect="read")
    assert spec.timeout_s == 8
    assert (spec.retry.max_attempts, spec.retry.initial_interval, spec.retry.backoff_factor) == (3, 0.5, 2)
    assert spec.breaker == BreakerPolicy(window=10, min_calls=5, failure_rate=0.4, in_a_row=3, cooldown_s=60)
    assert (spec.risk, spec.version, spec.cache_ttl_s, spec.roles) == ("low", "1", None, ())


def test_a_tool_that_declares_no_effect_counts_as_irreversible() -> None:
    """Nothing is assumed about a tool that says nothing: it is never repeated."""
    spec = ToolSpec(name="send")
    assert spec.effect == "irreversible"
    assert spec.retry.max_attempts == 1


@pytest.mark.parametrize(
    ("effect", "attempts"), [("read", 3), ("idempotent", 3), ("transactional", 1), ("irreversible", 1)]
)
def test_only_what_cannot_be_doubled_is_retried_by_default(effect: Effect, attempts: int) -> None:
    """Reads and idempotent effects are retried; the others are not."""
    assert ToolSpec(name="t", effect=effect).retry.max_attempts == attempts


@pytest.mark.parametrize(
    "name",
    ["refund", "issue_refund", "issueRefund", "cancel-order", "DELETE_all", "HTTPDelete", "payInvoice", "pay", "v2Pay",
     "send_payment", "order_cancellation"],
)  # fmt: skip
def test_a_risky_word_in_a_name_is_high_risk(name: str) -> None:
    """A name that says refund, cancel, delete or pay as a word of its own starts high unless the tool only reads."""
    assert {floor_of(name, effect) for effect in EFFECTS if effect != "read"} == {"high"}
    assert floor_of(name, "read") == "low"
    assert ToolSpec(name=name, effect="idempotent").risk == "high"


@pytest.mark.parametrize("name", ["update_payload", "display", "prepaid", "repay", "undeleted", "PAYLOAD", "get_order"])
def test_a_word_that_only_contains_a_risky_one_is_not(name: str) -> None:
    """Only whole words count."""
    assert floor_of(name, "irreversible") == "low"


def test_a_declared_risk_wins_upwards_only() -> None:
    """A tool can declare more risk than its name, never less, unless it only reads."""
    assert ToolSpec(name="delete_order", effect="idempotent", risk="low").risk == "high"
    assert ToolSpec(name="delete_order", effect="read", risk="medium").risk == "medium"
    assert ToolSpec(name="send_reply", effect="irreversible", risk="high").risk == "high"
    assert ToolSpec(name="delete_order", effect="idempotent").changed({"risk": "low"}).risk == "high"


@pytest.mark.parametrize(
    "declared",
    [
        {"timeout_s": 0}, {"timeout_s": -1}, {"timeout_s": float("inf")}, {"timeout_s": float("nan")},
        {"effect": "writes"}, {"risk": "huge"}, {"cache_ttl_s": 0}, {"concurrency": 0}, {"name": "get order"},
        {"name": ""}, {"name": "a" * 65}, {"name": "查询"}, {"name": "x\n"}, {"timeout": 3},
        {"rate_limit": {"calls": 0}},
        {"retry": {"max_attempts": 0}}, {"breaker": {"failure_rate": 1.0}}, {"isolation": "vm"},
    ],
)  # fmt: skip
def test_senseless_settings_are_refused(declared: dict[str, object]) -> None:
    """No spec exists with a setting that makes no sense."""
    with pytest.raises(ValidationError):
        ToolSpec(**{"name": "t", **declared})  # type: ignore[arg-type]


def test_a_fallback_can_be_named_by_its_tool_alone() -> None:
    """fallbacks=("other",) is the same as Fallback(tool="other")."""
    spec = ToolSpec.model_validate(
        {"name": "t", "effect": "read", "fallbacks": ["cached", Fallback(tool="x", args={})]}
    )
    assert spec.fallbacks == (Fallback(tool="cached"), Fallback(tool="x", args={}))


def test_a_changed_spec_is_checked_again() -> None:
    """A change keeps what it does not name and is refused where it makes no sense."""
    spec = ToolSpec(name="t", effect="read", retry=Retry(max_attempts=5))
    assert spec.changed({"timeout_s": 3}).retry.max_attempts == 5
    with pytest.raises(ValidationError):
        spec.changed({"timeout_s": 0})
