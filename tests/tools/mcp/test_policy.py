"""Effect and risk of a foreign tool: our word, and the server's claims only where they make it stricter."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tools.mcp.config import Server
from tools.mcp.definition import Definition
from tools.mcp.names import names_for
from tools.mcp.policy import declared
from tools.spec import EFFECTS, RISKS, Effect, Risk

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
CLAIMS = [
    {hint: value for hint, value in zip(HINTS, values, strict=True) if value is not None}
    for values in product((True, False, None), repeat=3)
]


def judged(hints: dict[str, bool], said: dict[str, Any] | None = None, **server: Any) -> tuple[str, str]:
    """Effect and risk of a tool with these hints, where this is said about it."""
    configured = Server(command=("x",), tools={"t": said or {}}, **server)
    spec, _ = declared(configured, Definition("t", "", {"type": "object"}, None, hints))
    return spec["effect"], spec["risk"]


@pytest.mark.parametrize("hints", CLAIMS)
def test_no_claim_loosens_the_default(hints: dict[str, bool]) -> None:
    """Without a word of ours: irreversible and high, whatever is claimed."""
    assert judged(hints) == ("irreversible", "high")
    assert judged(hints, ignore_annotations=True) == ("irreversible", "high")


@pytest.mark.parametrize("hints", CLAIMS)
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("risk", RISKS)
def test_a_claim_makes_configuration_only_stricter(hints: dict[str, bool], effect: Effect, risk: Risk) -> None:
    """Whatever is configured and claimed, neither effect nor risk is less than configured."""
    found_effect, found_risk = judged(hints, {"effect": effect, "risk": risk})
    assert EFFECTS.index(found_effect) >= EFFECTS.index(effect)
    assert RISKS.index(found_risk) >= RISKS.index(risk)
    assert judged(hints, {"effect": effect, "risk": risk}, ignore_annotations=True) == (effect, risk)


@pytest.mark.parametrize(
    ("hints", "said", "expected"),
    [
        ({"readOnlyHint": False}, {"effect": "read"}, ("irreversible", "high")),
        ({"readOnlyHint": True}, {"effect": "read"}, ("read", "low")),
        ({"destructiveHint": True}, {"effect": "idempotent", "risk": "low"}, ("idempotent", "high")),
        ({"destructiveHint": True, "readOnlyHint": True}, {"effect": "read"}, ("read", "low")),
        ({"idempotentHint": False}, {"effect": "idempotent", "risk": "medium"}, ("idempotent", "medium")),
        ({}, {"effect": "idempotent"}, ("idempotent", "high")),
        ({}, {"risk": "low"}, ("irreversible", "low")),
    ],
)
def test_a_server_is_believed_against_itself(
    hints: dict[str, bool], said: dict[str, Any], expected: tuple[str, str]
) -> None:
    """One that says that a tool writes, or destroys; a risk that was not said stays high save for a read."""
    assert judged(hints, said) == expected


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({"readOnlyHint": True}, ("read", "low")),
        ({"destructiveHint": False}, ("irreversible", "medium")),
        ({"idempotentHint": True, "destructiveHint": False}, ("idempotent", "medium")),
        ({"idempotentHint": True}, ("idempotent", "high")),
        ({}, ("irreversible", "high")),
    ],
)
def test_trusted_annotations_stand_where_we_have_said_nothing(
    hints: dict[str, bool], expected: tuple[str, str]
) -> None:
    """And our own word about a tool comes first all the same."""
    assert judged(hints, trust_annotations=True) == expected
    assert judged(hints, {"effect": "irreversible", "risk": "high"}, trust_annotations=True) == ("irreversible", "high")


def test_an_overruled_configuration_is_told() -> None:
    """Nobody wonders why a read asks for approval; what only a read may have is dropped with it."""
    said = {"effect": "read", "cache_ttl_s": 5, "retry": {"max_attempts": 3}}
    server = Server(command=("x",), tools={"t": said})
    spec, remarks = declared(server, Definition("t", "", {"type": "object"}, None, {"readOnlyHint": False}))
    assert remarks == ["is said to write by its server, and counts as irreversible whatever is configured"]
    assert not {"cache_ttl_s", "retry"} & spec.keys()


@pytest.mark.parametrize("order", [1, -1])
def test_names_depend_on_no_order(order: int) -> None:
    """A name that needs no change is kept by whom it belongs to; others that would be the same are told apart."""
    listed = ["a.b", "a/b", "a_b", "c.d"][::order]
    names = names_for(listed, "", {"c.d": "chosen"})
    assert (names["a_b"], names["c.d"]) == ("a_b", "chosen")
    assert len({*names.values()}) == 4
    assert names["a.b"].startswith("a_b_")
    assert names_for(["c.d", "x"], "p-", {}) == {"c.d": "p-c_d", "x": "p-x"}
