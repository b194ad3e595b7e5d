"""Tests of what can be changed about a tool while running."""

from __future__ import annotations

from typing import Any

import pytest

from plans.errors import ConfigurationError
from tests.tools.calls import tool_of
from tools.local import LocalSettings
from tools.settings import as_changed
from tools.tool import Tool


@pytest.fixture
def tool() -> Tool:
    """A tool with a breaker of its own."""
    return tool_of(lambda: 1, name="t", breaker={"window": 20, "cooldown_s": 5}, timeout_s=3)


async def test_without_changes_the_tool_is_itself(tool: Tool) -> None:
    """Nothing stored, nothing copied."""
    assert await as_changed(tool, LocalSettings()) is tool


async def test_changes_count_and_the_rest_stays(tool: Tool) -> None:
    """A changed group keeps what was declared and not changed; the declared tool is untouched."""
    stored = LocalSettings({"t": {"enabled": False, "timeout_s": 1, "breaker": {"cooldown_s": 9}}})
    changed = await as_changed(tool, stored)
    assert (changed.enabled, changed.spec.timeout_s) == (False, 1)
    assert (changed.spec.breaker.window, changed.spec.breaker.cooldown_s) == (20, 9)
    assert (tool.enabled, tool.spec.timeout_s, tool.spec.breaker.cooldown_s) == (True, 3, 5)


async def test_a_group_that_was_not_declared_can_be_set_and_taken_away(tool: Tool) -> None:
    """A rate limit can be put on a tool that had none, and concurrency taken off."""
    stored = LocalSettings({"t": {"rate_limit": {"calls": 3}, "concurrency": None}})
    changed = await as_changed(tool, stored)
    assert changed.spec.rate_limit is not None
    assert (changed.spec.rate_limit.calls, changed.spec.concurrency) == (3, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timeout_s": 0}, "timeout_s: Input should be greater than 0"),
        ({"timeout_s": "soon"}, "timeout_s"),
        ({"breaker": {"window": 0}}, "breaker.window"),
        ({"effect": "read"}, "hold 'effect'"),
        ({"roles": []}, "hold 'roles'"),
        ({"risk": "low"}, "hold 'risk'"),
        ({"timeout": 3}, "hold 'timeout'"),
    ],
)
async def test_senseless_changes_are_told_with_tool_and_setting(tool: Tool, changes: dict[str, Any], said: str) -> None:
    """What makes no sense, or would change what a tool does or who may use it, is refused by name."""
    with pytest.raises(ConfigurationError, match="tool 't'") as refused:
        await as_changed(tool, LocalSettings({"t": changes}))
    assert said in str(refused.value)
