"""Tests of repairs whose process is killed between a verdict and what it leads to, or around a person's answer."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints import crash_points
from graph.gateway import Agent
from nodes.fold import RunFold
from plans.decisions import Reject, Respond
from plans.failure import ToolFailure
from tests.nodes.model_server import ScriptedModel, completion
from tests.running import plan, running, step
from tools.registry import Toolkit

SAME = plan(step("s1", "price", args={"item": "ball"}), answer="${s1.cents}")
NEW = plan(step("n1", "price", args={"item": "cup"}), answer="${n1.cents}")
BAD = plan(step("s1", "prize"))
GOAL = "what does a ball cost?"


def market(book: Path) -> Toolkit:
    """A tool that knows no ball; every call is a line of the book."""
    kit = Toolkit("market")

    @kit.tool(effect="read", retry={"max_attempts": 1})
    async def price(item: str) -> dict[str, int]:
        """What it costs."""
        with book.open("a") as lines:
            lines.write(f"{item}\n")
        if item == "ball":
            raise ToolFailure("NOT_FOUND", "there is no ball")
        return {"cents": 7}

    return kit


def _queued(verdict: str) -> Callable[[RunFold], bool]:
    return lambda fold: any(queued.verdict == verdict for queued in fold.queue)


MOMENTS: dict[str, Callable[[RunFold], bool]] = {
    "local decided": _queued("local_replan"),
    "local came to nothing": _queued("global_replan"),
    "planned anew": lambda fold: fold.plan is not None and fold.plan.revision == 2,
    "asked": lambda fold: fold.question is not None,
    "told": lambda fold: bool(fold.instructions),
    "refused": _queued("finish"),
}


def drive(url: str, folder: Path, base_url: str, moment: str, goal: str | None) -> None:
    """What the child does: it runs or goes on, and kills itself when a node has written that this has come to pass."""

    async def run() -> None:
        model: Any = SimpleNamespace(base_url=base_url)
        async with running(url, folder, [market(folder / "book")], model=model) as agent:
            crash_points.hook = lambda point: _die_at(agent, moment) if point == "node.flushed" else None
            if goal is not None:
                await agent.run(goal, thread_id="t", plan=None if goal == GOAL else SAME)
            else:
                await agent.resume("t")

    asyncio.run(run())


def _die_at(agent: Agent, moment: str) -> None:
    if any(MOMENTS[moment](session.fold) for session in agent.engine.sessions.values()):
        os.kill(os.getpid(), signal.SIGKILL)


async def killed(url: str, folder: Path, endpoint: ScriptedModel, moment: str, goal: str | None) -> None:
    """A child has driven the run until that moment, and is dead."""
    child: Any = multiprocessing.get_context("spawn").Process(
        target=drive, args=(url, folder, endpoint.base_url, moment, goal)
    )
    child.start()
    await asyncio.to_thread(child.join)
    assert child.exitcode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["local decided", "local came to nothing", "planned anew"])
async def test_killed_in_a_repair_the_next_process_counts_on(
    moment: str, database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """No question is put twice, the failed local replan stays counted, and the replaced failure triggers nothing."""
    endpoint.answers(*[completion(json.dumps(SAME))] * 3, completion(json.dumps(NEW)))
    await killed(database_url, tmp_path, endpoint, moment, "a test")
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint) as agent:
        result = await agent.resume("t")
        rows = await agent.engine.journal.read(result.run_id)
    assert (result.status, result.answer) == ("done", "7")
    assert (result.usage.local_replans, result.usage.global_replans, len(endpoint.questions)) == (1, 1, 4)
    assert (tmp_path / "book").read_text() == "ball\ncup\n"
    assert [row.body["verdict"]["verdict"] for row in rows if row.kind == "verdict"] == [
        "local_replan", "global_replan",
    ]  # fmt: skip


async def test_killed_after_it_has_asked_the_same_question_waits(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """Of a run without a plan no checkpoint may be left: the question is in the journal, and nobody plans again. Killed
    once more after the answer, the run goes on with the answer."""
    endpoint.answers(completion(json.dumps(BAD)))
    await killed(database_url, tmp_path, endpoint, "asked", GOAL)
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint) as agent:
        waiting = await agent.resume("t")
        assert (waiting.status, len(waiting.approvals), len(endpoint.questions)) == ("paused", 1, 3)
        await agent.decide("t", "@plan", Respond("ask for a cup"), by="ann")
    await killed(database_url, tmp_path, endpoint, "told", None)
    endpoint.answers(completion(json.dumps(NEW)))
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint) as agent:
        result = await agent.resume("t")
        assert await agent.approvals("t") == []
    assert (result.status, result.answer, len(endpoint.questions)) == ("done", "7", 4)
    assert (tmp_path / "book").read_text() == "cup\n"


@pytest.mark.slow
async def test_killed_after_a_person_s_no_the_run_ends_with_it(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """The decision and the end it leads to are one row: whoever goes on refuses for the same reason."""
    endpoint.answers(completion(json.dumps(BAD)))
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint) as agent:
        assert (await agent.run(GOAL, thread_id="t")).status == "paused"
        await agent.decide("t", "@plan", Reject(message="let it be"), by="ann")
    await killed(database_url, tmp_path, endpoint, "refused", None)
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint) as agent:
        result = await agent.resume("t")
    assert (result.status, result.exit_code, len(endpoint.questions)) == ("failed", 1, 3)
    assert "let it be" in (result.answer or "")
