"""Policies and calls for the tests of policies, given and drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from plans.policy import Policy
from plans.policy_rulings import Action
from plans.provenance import Provenance

ROLES = ("support", "finance", "legal")


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    """A policy of these rules; those without a name are called by their place."""
    named = [{"name": f"r{place}", **rule} for place, rule in enumerate(rules, 1)]
    return Policy.model_validate({"rules": named, **more})


def refund(**args: Any) -> Action:
    """A refund that a run asks for."""
    return Action(
        "issue_refund", "irreversible", args, "shop", "high", "support", takes=frozenset({"amount", "to", "note"})
    )


def stranger_s(argument: str, source: str = "s1.email", tool: str | None = "crm_get") -> Provenance:
    """A value that a stranger may have written."""
    return Provenance(argument=argument, source=source, tool=tool, trusted=False)


def _terms() -> st.SearchStrategy[dict[str, Any]]:
    escalation: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.builds(
        lambda after, to: {"escalate_after_s": after, "escalate_to": to},
        st.integers(1, 50),
        st.lists(st.sampled_from(ROLES), min_size=1, unique=True),
    )
    others = st.fixed_dictionaries(
        {},
        optional={
            "approvers": st.lists(st.sampled_from(ROLES), unique=True),
            "needed": st.integers(1, 3),
            "by_another": st.booleans(),
            "expires_s": st.integers(60, 90),
        },
    )
    return st.builds(lambda one, other: {**one, **other}, others, escalation)


def _matched() -> st.SearchStrategy[dict[str, Any]]:
    conditions = st.fixed_dictionaries({}, optional={
        "amount": st.sampled_from([{"at_most": 10}, {"above": 10}, {"one_of": [5]}, {"at_most": 3, "or_absent": True}]),
        "note": st.sampled_from([{"given": True}, {"given": False}, {"matches": "x+"}]),
    })  # fmt: skip
    return st.fixed_dictionaries({}, optional={
        "tools": st.sampled_from(["*", "*refund*", "mail"]),
        "effects": st.sampled_from(["write", "read"]),
        "roles": st.lists(st.sampled_from(ROLES), max_size=2),
        "args": conditions,
        "tainted": st.booleans() | st.just(["to"]),
    })  # fmt: skip


def policies() -> st.SearchStrategy[Policy]:
    """Any policy about refunds."""
    deciding = st.builds(
        lambda match, then, terms, risk: {**match, **risk, "then": then, **(terms if then == "ask" else {})},
        _matched(),
        st.sampled_from(["allow", "ask", "deny"]),
        _terms(),
        st.just({}) | st.builds(lambda risk: {"risk": risk}, st.sampled_from(["low", "high"])),
    )
    floors = st.builds(lambda match, risk: {**match, "risk": risk}, _matched(), st.sampled_from(["medium", "high"]))
    return st.builds(
        lambda rules, more, asking: policy(
            *rules, floors=[{"name": f"f{n}", **each} for n, each in enumerate(more)], asking=asking
        ),
        st.lists(deciding, max_size=4),
        st.lists(floors, max_size=2),
        _terms(),
    )


def values() -> st.SearchStrategy[dict[str, Any]]:
    """Any arguments of a refund, odd ones among them."""
    return st.fixed_dictionaries({}, optional={
        "amount": st.sampled_from([2, 5, 50, "5", "five", None, [5, 50], {}]),
        "to": st.sampled_from(["a", None]),
        "note": st.sampled_from(["x", "y", None, 3]),
    })  # fmt: skip


def sources(args: dict[str, Any], strange: bool) -> tuple[Provenance, ...]:
    """Where the values came from."""
    return tuple(Provenance(argument=name, source="s1", trusted=not strange) for name in args)
