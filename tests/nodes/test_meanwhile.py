"""What starts while a verdict is being made: reads do, effects wait, and after an end nothing does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from nodes import observe
from tests.nodes.test_scheduler import Stage
from tests.running import plan, running, step


class Judge:
    """Holds the verdict on a failed step back until it is let go; or says it and then goes no further."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, says_it_first: bool = False) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        decide = observe._decide

        async def held(*args: Any) -> Any:
            said = await decide(*args) if says_it_first else None
            self.asked.set()
            await self.may_answer.wait()
            return said or await decide(*args)

        monkeypatch.setattr(observe, "_decide", held)


STEPS = (
    step("bad", "act"),
    step("slow", "act"),
    step("look", "act", "slow"),
    step("look_on", "act", "look"),
    step("letter", "send", "slow"),
)


@asynccontextmanager
async def judged(
    database_url: str, folder: Path, stage: Stage, judge: Judge
) -> AsyncIterator[tuple[Agent, asyncio.Task[RunResult]]]:
    """A run in which a verdict on `bad` is being made, while `slow` is still in flight."""
    stage.hold("slow")
    async with running(database_url, folder, [stage.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(*STEPS), thread_id="t", approve="all"))
        await stage.until_began("slow")
        async with asyncio.timeout(10):
            await judge.asked.wait()
        yield agent, drive


async def test_reads_start_while_a_verdict_is_made_and_effects_wait_for_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that failed holds up nothing that does not depend on it, except what could not be taken back if the
    verdict changed the plan."""
    stage, judge = Stage(), Judge(monkeypatch)
    stage.fail_once.add("bad")
    async with judged(database_url, tmp_path, stage, judge) as (_, drive):
        stage.gates["slow"].set()
        await stage.until_began("look_on")
        await asyncio.sleep(0.02)
        assert "letter" not in stage.began
        judge.may_answer.set()
        assert (await drive).status == "done"
    assert sorted(stage.began) == ["bad", "bad", "letter", "look", "look_on", "slow"]


async def test_a_slot_that_a_failed_step_leaves_is_taken_before_its_verdict(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two may run at once, one of them fails, and the read that waited for room starts, not the letter."""
    stage, judge = Stage(), Judge(monkeypatch)
    stage.fail_once.add("bad")
    stage.hold("slow")
    steps = (step("bad", "act"), step("slow", "act"), step("letter", "send"), step("more", "act"))
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(*steps), limits={"concurrency": 2}, approve="all"))
        await stage.until_began("more")
        assert "letter" not in stage.began
        judge.may_answer.set()
        stage.gates["slow"].set()
        assert (await drive).status == "done"


async def test_nothing_starts_once_the_run_is_to_be_cancelled(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody cancels while a verdict is made: what becomes ready afterwards does not start."""
    stage, judge = Stage(), Judge(monkeypatch)
    stage.fail_once.add("bad")
    async with judged(database_url, tmp_path, stage, judge) as (agent, drive):
        session = next(iter(agent.engine.sessions.values()))
        session.lease.cancel.set()
        stage.gates["slow"].set()
        while "slow" not in stage.ended:  # noqa: ASYNC110 (it has no event of its own)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        judge.may_answer.set()
        assert (await drive).status == "cancelled"
    assert sorted(stage.began) == ["bad", "slow"]


async def test_nothing_starts_after_the_verdict_that_ends_the_run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step fails for good: what is in flight is awaited, and what depends on that is not begun."""
    stage, judge = Stage(), Judge(monkeypatch, says_it_first=True)
    stage.fail_once.add("bad")
    stage.hold("slow")
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        steps = plan(*STEPS, step("never", "act", "bad"))
        drive = asyncio.create_task(agent.run(plan=steps, limits={"max_attempts": 1}, approve="all"))
        await stage.until_began("slow")
        async with asyncio.timeout(10):
            await judge.asked.wait()
        stage.gates["slow"].set()
        while "slow" not in stage.ended:  # noqa: ASYNC110 (it has no event of its own)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        judge.may_answer.set()
        assert (await drive).status == "failed"
    assert sorted(stage.began) == ["bad", "slow"]
