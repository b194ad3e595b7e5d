"""Tests of what a tool is handed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tools.context import Parameters, ToolContext


class Recorded:
    """A connection that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fetch(self, sql: str, params: Parameters = ()) -> list[dict[str, Any]]:
        self.asked.append(sql)
        return [{"n": len(params)}]

    async def execute(self, sql: str, params: Parameters = ()) -> int:
        self.asked.append(sql)
        return len(params)


async def test_a_bare_context_runs_a_tool_in_a_test(tmp_path: Path) -> None:
    """A tool can be called in a user's own test with nothing but a folder, and a connection if it needs one."""
    connection = Recorded()
    ctx = ToolContext.bare(tmp_path, connection=connection)
    assert ctx.files.writable("a.txt") == tmp_path / "a.txt"
    assert await ctx.connection.fetch("SELECT 1", (1, 2)) == [{"n": 2}]
    assert await ctx.external("shop").execute("UPDATE t") == 0
    assert connection.asked == ["SELECT 1", "UPDATE t"]


async def test_a_bare_context_without_connection_says_so(tmp_path: Path) -> None:
    """A forgotten connection is named, with the statement that wanted it."""
    ctx = ToolContext.bare(tmp_path)
    with pytest.raises(LookupError, match="SELECT 1"):
        await ctx.connection.fetch("SELECT 1")
    with pytest.raises(LookupError, match="DELETE"):
        await ctx.external("shop").execute("DELETE")


def test_seconds_left_count_down_to_zero(tmp_path: Path) -> None:
    """What is left of a deadline is never negative."""
    assert 59 < ToolContext.bare(tmp_path).seconds_left <= 60
    late = ToolContext.bare(tmp_path, seconds=-5)
    assert late.deadline < time.monotonic()
    assert late.seconds_left == 0
