"""Tests of declared fallbacks: four kinds, exactly one each, and every one that could not help is refused at load."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from plans.errors import ConfigurationError
from plans.failure import CODES
from tools.fallbacks import NOT_TO_END_WITH, Fallback, labelled, longest_kept_s
from tools.registry import Registry, Toolkit
from tools.spec import ToolSpec

FOUR: list[Any] = [{"cached": 3600}, {"tool": "other", "args": {"b": "a"}}, {"mock": {"value": None}}]


def test_the_four_kinds_are_read_as_they_are_written() -> None:
    """A name alone is another tool; each entry says its kind, and a spec that is written out reads back the same."""
    spec = ToolSpec.model_validate({"name": "t", "effect": "read", "fallbacks": ["x", *FOUR, {"code": "NOT_FOUND"}]})
    assert [fallback.kind for fallback in spec.fallbacks] == ["tool", "cached", "tool", "mock", "code"]
    assert spec.model_dump()["fallbacks"] == ({"tool": "x"}, *FOUR, {"code": "NOT_FOUND"})
    assert spec.changed({"timeout_s": 3}).fallbacks == spec.fallbacks
    assert longest_kept_s(spec.fallbacks) == 3600


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "names nothing"),
        ({"cached": 3, "tool": "x"}, "names cached and tool"),
        ({"cached": 3, "args": {}}, "only another tool takes arguments"),
        ({"cached": 0}, "greater than 0"),
        ({"cached": True}, "valid number"),
        ({"cached": "3"}, "valid number"),
        ({"cached": float("inf")}, "cached"),
        ({"mock": False}, "mock"),
        ({"mock": {"valu": 3}}, "valu"),
        ({"code": "NOTFOUND"}, "a step can end with NOT_FOUND"),
        ({"code": "UNKNOWN_OUTCOME"}, "a step can end with"),
        ({"other": 3}, "other"),
    ],
)
def test_what_is_none_of_the_four_is_refused(declared: dict[str, Any], said: str) -> None:
    """No entry means two things, and none means nothing."""
    with pytest.raises(ValidationError, match=said):
        Fallback.model_validate(declared)


@pytest.mark.parametrize("code", sorted(CODES.keys() - NOT_TO_END_WITH))
def test_a_step_can_end_with_any_code_of_the_table(code: str) -> None:
    """Every code but the two that say something else than a failure of the step."""
    assert Fallback(code=code).kind == "code"


def test_each_fallback_has_a_name_of_its_own() -> None:
    """Another tool is called by its name, as in rows of older versions; what stands there twice is told apart."""
    spec = ToolSpec.model_validate(
        {
            "name": "t",
            "effect": "read",
            "fallbacks": ["x", {"cached": 9}, {"tool": "x", "args": {}}, {"code": "TIMEOUT"}],
        }
    )
    assert list(labelled(spec.fallbacks)) == ["x", "cached result", "x #2", "code TIMEOUT"]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"fallbacks": [{"mock": True}]}, "does not declare what it returns"),
        ({"effect": "idempotent", "fallbacks": [{"mock": {"value": 1}}]}, "an effect that was only made up"),
        ({"effect": "idempotent", "fallbacks": [{"cached": 9}]}, "only results of reads are kept"),
        ({"cache_ttl_s": 60, "fallbacks": [{"cached": 60}]}, "make cached longer"),
        ({"fallbacks": [{"mock": {"value": 1}}, "other"]}, "behind its mock, which is never reached"),
        ({"fallbacks": [{"code": "TIMEOUT"}, {"cached": 9}]}, "behind its code, which is never reached"),
        ({"fallbacks": [{"cached": 9}, {"cached": 99}]}, "twice"),
        ({"fallbacks": ["nowhere"]}, "'nowhere', which is not registered"),
    ],
)
def test_a_fallback_that_could_not_help_is_refused_at_load(declared: dict[str, Any], said: str) -> None:
    """Whoever declares it learns of it before a plan relies on it."""
    toolkit = Toolkit("k")
    toolkit.add(lambda a: a, name="other", effect="read")
    toolkit.add(lambda a: a, **{"name": "t", "effect": "read", **declared})
    with pytest.raises(ConfigurationError, match=said):
        Registry.of(toolkit)


def test_a_mock_that_no_result_of_the_tool_could_be_is_refused_at_load() -> None:
    """The value that is written down is one that the tool could have returned."""

    def count() -> int:
        return 3

    toolkit = Toolkit("k")
    toolkit.add(count, effect="read", fallbacks=[{"mock": {"value": "three"}}])
    with pytest.raises(ConfigurationError, match="a mock that cannot be made"):
        Registry.of(toolkit)
