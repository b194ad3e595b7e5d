"""Tests of a fallback whose process is killed between the verdict and the alternative's call."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from checkpoints import crash_points
from graph.gateway import Agent
from plans.failure import ToolFailure
from tests.running import plan, running, step
from tools.registry import Toolkit

LOOKUP = plan(step("s1", "price", args={"item": "ball"}), answer="${s1.cents}")


def market(book: Path) -> Toolkit:
    """A tool that finds nothing and its alternative; every call is a line of the book."""
    kit = Toolkit("market")

    def noted(line: str) -> None:
        with book.open("a") as lines:
            lines.write(f"{line}\n")

    @kit.tool(effect="read", retry={"max_attempts": 1}, fallbacks=["old_price"])
    async def price(item: str) -> dict[str, int]:
        """What it costs."""
        noted(f"price {item}")
        raise ToolFailure("NOT_FOUND", "there is no ball")

    @kit.tool(effect="read")
    async def old_price(item: str) -> dict[str, int]:
        """What it cost."""
        noted(f"old_price {item}")
        return {"cents": 7}

    return kit


def drive(url: str, folder: Path, moment: str) -> None:
    """What the child does: it runs the plan, and kills itself where the fallback is decided, or about to be called."""

    async def run() -> None:
        async with running(url, folder, [market(folder / "book")]) as agent:
            crash_points.hook = lambda point: _die_at(agent, moment) if point == "node.flushed" else None
            await agent.run(plan=LOOKUP, thread_id="t")

    asyncio.run(run())


def _die_at(agent: Agent, moment: str) -> None:
    for session in agent.engine.sessions.values():
        run = session.fold.run("s1")
        is_decided = any(verdict.verdict == "fallback" for verdict in session.fold.queue)
        is_applied = run.tried == ("old_price",) and run.status == "pending"
        if is_applied if moment == "applied" else is_decided:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["decided", "applied"])
async def test_killed_before_the_alternative_is_called_it_is_called_once(
    database_url: str, tmp_path: Path, moment: str
) -> None:
    """The verdict is in the journal, so nobody decides again: the next process calls the alternative exactly once, and
    the tool that failed not once more."""
    child: Any = multiprocessing.get_context("spawn").Process(target=drive, args=(database_url, tmp_path, moment))
    child.start()
    await asyncio.to_thread(child.join)
    assert child.exitcode == -signal.SIGKILL
    assert (tmp_path / "book").read_text() == "price ball\n"
    async with running(database_url, tmp_path, [market(tmp_path / "book")]) as agent:
        before = [row.kind for row in await agent.engine.journal.read((await agent.show("t")).run_id)]
        result = await agent.resume("t")
        rows = await agent.engine.journal.read(result.run_id)
    assert before.count("fallback") == (moment == "applied")
    assert (result.status, (result.answer or "").splitlines()[0]) == ("done", "7")
    assert (tmp_path / "book").read_text() == "price ball\nold_price ball\n"
    assert [row.kind for row in rows if row.kind in ("verdict", "fallback")] == ["verdict", "fallback"]
