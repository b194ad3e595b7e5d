"""Tests of what is refused of a shadow when tools are loaded, and of where a shadow is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plans.errors import ConfigurationError
from tools.registry import Registry, Toolkit


def present(order: str, deep: bool = False) -> dict[str, str]:
    """The tool of today."""
    return {"order": f"{order}{deep}"}


def candidate(order: str, deep: bool = False, pace: int = 1) -> dict[str, str]:
    """The tool of tomorrow: one argument more, with a default."""
    return {"order": f"{order}{deep}{pace}"}


def narrow(order: str) -> dict[str, str]:
    """Takes less."""
    return {"order": order}


def wide(order: str, deep: bool, reason: str) -> dict[str, str]:
    """Needs more."""
    return {"order": f"{order}{deep}{reason}"}


def other(order: str) -> str:
    """Another tool."""
    return order


def registry(function: Callable[..., Any], now: Any = "read", **declared: Any) -> Registry:
    kit = Toolkit("kit")
    kit.add(present, effect=now)
    kit.add(other, effect="read")
    kit.add(function, name="next", **{"effect": "read", "shadow_of": "present", **declared})
    return Registry.of(kit)


def test_a_shadow_is_no_tool_of_a_run_and_is_found_by_what_it_shadows() -> None:
    """No plan, planner, template or fallback meets it; whoever looks after tools does."""
    found = registry(candidate, shadow_compare="order", shadow_share=0.5)
    assert list(found) == ["present", "other"]
    assert {name: tool.name for name, tool in found.shadows.items()} == {"present": "next"}
    assert list(found.declared) == ["present", "other", "next"]


@pytest.mark.parametrize(
    ("function", "declared", "said"),
    [
        (candidate, {"shadow_of": "presnt"}, "'presnt', which is not registered"),
        (candidate, {"shadow_of": "next"}, "a shadow of itself"),
        (candidate, {"effect": "idempotent"}, "only reads can be compared"),
        (candidate, {"now": "irreversible"}, "only reads can be compared"),
        (candidate, {"now": "transactional"}, "only reads can be compared"),
        (candidate, {"shadow_compare": "a["}, "shadow_compare that cannot be read"),
        (candidate, {"shadow_share": 0}, "shadow_share=0"),
        (candidate, {"shadow_share": 1.5}, "shadow_share=1.5"),
        (candidate, {"fallbacks": ["other"]}, "has fallbacks, which would never be taken"),
        (candidate, {"shadow_of": None, "shadow_share": 0.5}, "but is no shadow"),
        (candidate, {"shadow_of": None, "shadow_compare": "a"}, "but is no shadow"),
        (narrow, {}, "does not take its argument 'deep'"),
        (wide, {}, "needs 'reason', which that tool does not have"),
    ],
)
def test_a_shadow_that_makes_no_sense_is_refused_at_load(
    function: Callable[..., Any], declared: dict[str, Any], said: str
) -> None:
    """An effect is never doubled, and a candidate can take every call of the tool whose place it would take."""
    with pytest.raises(ConfigurationError) as refused:
        registry(function, **declared)
    assert said in str(refused.value)
    assert "tool 'next'" in str(refused.value)


def test_there_is_one_candidate_at_a_time_and_none_of_a_candidate() -> None:
    """Two would be called beside one call, and a chain of them beside each other; nothing falls back to one either."""
    kit = Toolkit("kit")
    kit.add(present, effect="read", fallbacks=["first"])
    kit.add(candidate, name="first", effect="read", shadow_of="present")
    kit.add(candidate, name="second", effect="read", shadow_of="present")
    kit.add(candidate, name="third", effect="read", shadow_of="second")
    with pytest.raises(ConfigurationError) as refused:
        Registry.of(kit)
    told = str(refused.value)
    assert "tool 'present' falls back to 'first', which is a shadow and never called on its own" in told
    assert "tool 'second' is a shadow of 'present', which has one already: 'first'" in told
    assert "tool 'third' is a shadow of 'second', which is a shadow itself" in told
    assert "tool 'first' " not in told
