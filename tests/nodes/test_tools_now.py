"""Tests of tools that are changed while a run goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from checkpoints.database import Database
from checkpoints.tool_settings import PostgresSettings
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit


async def test_stored_settings_that_make_no_sense_any_more_break_no_run_and_are_told_once(
    database_url: str, database: Database, tmp_path: Path
) -> None:
    """The faulty setting is as declared, the sound one counts, and the stream has one notice for two steps."""
    kit, seen = Toolkit("kit"), list[dict[str, Any]]()

    async def nap(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    kit.add(nap, effect="irreversible", risk="low", timeout_s=8)
    stored = {"retry": {"max_attempts": 3}, "timeout_s": 0.2, "gone": 1}
    await PostgresSettings(database).change("nap", lambda _: stored, "ann")
    steps = [step("a", "nap", args={"seconds": 0.01}), step("b", "nap", args={"seconds": 0.4})]
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(*steps), on_event=lambda event: seen.append(event.model_dump()))
    by_id = {each.id: each for each in result.steps}
    assert by_id["a"].status == "done"
    assert by_id["b"].failure is not None
    assert "did not answer within 0.2 s" in by_id["b"].failure.message
    notices = [event["message"] for event in seen if event["kind"] == "notice"]
    for command in ("surestep tools set nap retry.max_attempts=", "surestep tools set nap gone="):
        assert len([notice for notice in notices if f"({command})" in notice]) == 1, notices


async def test_a_timeout_raised_while_running_is_not_cut_by_the_one_declared(
    database_url: str, database: Database, tmp_path: Path
) -> None:
    """A step has the time that its tool has now, also beyond the 25 s that a step has otherwise."""
    kit, left = Toolkit("kit"), list[float]()

    def look(ctx: ToolContext) -> None:
        left.append(ctx.seconds_left)

    kit.add(look, effect="read", timeout_s=1)
    await PostgresSettings(database).change("look", lambda _: {"timeout_s": 120}, "ann")
    async with running(database_url, tmp_path, [kit]) as agent:
        assert (await agent.run(plan=plan(step("a", "look")))).status == "done"
    assert 100 < left[0] <= 120
