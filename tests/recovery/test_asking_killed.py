"""Tests of plans that are looked at, users that are asked and runs that are told something, killed at each moment."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from checkpoints import crash_points
from checkpoints.crash_points import SAYING
from graph.gateway import Agent
from graph.result import RunResult
from nodes.fold import RunFold
from plans.decisions import Approve, Respond
from tests.nodes.model_server import ScriptedModel
from tests.running import plan, running, step
from tools.registry import Toolkit

ASKS = step("s1", "ask_user", args={"question": "Which item?"})
PRICE = step("s2", "price", args={"item": "${s1.answer}"})
PLAN = plan(ASKS, PRICE, answer="${s2.cents}")
SHOWN = plan(step("s2", "price", args={"item": "ball"}), answer="${s2.cents}")


def market(book: Path) -> Toolkit:
    """A tool each of whose calls is a line of the book."""
    kit = Toolkit("market")

    @kit.tool(effect="idempotent")
    async def price(item: str) -> dict[str, int]:
        """Book its price."""
        with book.open("a") as lines:
            lines.write(f"{item}\n")
        return {"cents": len(item)}

    return kit


def _waits(kind: str) -> Callable[[RunFold], bool]:
    return lambda fold: any(request.kind == kind for request in fold.asked.values())


MOMENTS: dict[str, Callable[[RunFold], bool]] = {
    "shown": _waits("review"),
    "looked at": lambda fold: fold.reviewed,
    "asked": _waits("clarification"),
    "answered": lambda fold: fold.status("s1") == "done",
    "planned with it": lambda fold: fold.rounds == 1,
    "told": lambda fold: bool(fold.instructions),
}


class Child(NamedTuple):
    """What a child does, and where it dies: at a moment of the run, or at a commit point."""

    url: str
    folder: Path
    base_url: str
    at: str
    goal: str | None = None
    plan: dict[str, Any] | None = None
    review: Any = "none"


def at_work(url: str, folder: Path, model: ScriptedModel) -> AbstractAsyncContextManager[Agent]:
    """An agent that asks no model whether its plans still hold."""
    return running(url, folder, [market(folder / "book")], model=model, verifier_model="off")


def drive(child: Child) -> None:
    """It begins, tells, or goes on with, the run on thread t."""

    async def run() -> None:
        model: Any = SimpleNamespace(base_url=child.base_url)
        async with at_work(child.url, child.folder, model) as agent:
            crash_points.hook = lambda point: _die(agent, point, child.at)
            if child.goal is None:
                await agent.resume("t")
            else:
                await agent.run(child.goal, thread_id="t", plan=child.plan, review=child.review, request_id=child.goal)

    asyncio.run(run())


def _die(agent: Agent, point: str, at: str) -> None:
    come = at in MOMENTS and any(MOMENTS[at](each.fold) for each in agent.engine.sessions.values())
    if point == at or (point == "node.flushed" and come):
        os.kill(os.getpid(), signal.SIGKILL)


async def killed(child: Child) -> None:
    """The child has come to that moment, and is dead."""
    process: Any = multiprocessing.get_context("spawn").Process(target=drive, args=(child,))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL


async def answered(agent: Agent, *decisions: Any) -> RunResult:
    """The run after each of these answers, given one after the other; a run that was answered before needs none."""
    result = await agent.resume("t")
    for decision in decisions:
        if result.status == "paused":
            result = await agent.resume("t", decisions={result.approvals[0].approval_id: decision})
    return result


@pytest.mark.parametrize(
    "at", ["plan.queued", *(pytest.param(each, marks=pytest.mark.slow) for each in ("shown", "looked at"))]
)
async def test_killed_around_a_review_nothing_runs_before_the_yes(
    at: str, database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """Whoever goes on shows the same plan, or finds that it was approved; what it does happens once."""
    book = tmp_path / "book"
    child = Child(database_url, tmp_path, endpoint.base_url, at, "look", SHOWN, "first")
    if at == "looked at":
        async with at_work(database_url, tmp_path, endpoint) as agent:
            waiting = await agent.run("look", plan=SHOWN, thread_id="t", review="first")
            await agent.decide("t", "@plan", Approve())
        assert waiting.status == "paused"
        child = child._replace(goal=None)
    await killed(child)
    assert not book.exists()
    async with at_work(database_url, tmp_path, endpoint) as agent:
        if at != "looked at":
            shown = await agent.resume("t")
            assert [request.kind for request in shown.approvals] == ["review"]
            assert not book.exists()
        done = await answered(agent, Approve())
    assert (done.status, done.answer, book.read_text()) == ("done", "4", "ball\n")


@pytest.mark.parametrize(
    "at", ["answered", *(pytest.param(each, marks=pytest.mark.slow) for each in ("asked", "planned with it"))]
)
async def test_killed_around_a_question_to_the_user_the_answer_counts_once(
    at: str, database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """The question waits as it was; an answer that was given is not asked for again, and no model is asked twice."""
    book, questions = tmp_path / "book", [plan(ASKS), plan(PRICE, answer="${s2.cents}")]
    child = Child(database_url, tmp_path, endpoint.base_url, at, "ask")
    endpoint.answers(*map(json.dumps, questions))
    if at != "asked":
        async with at_work(database_url, tmp_path, endpoint) as agent:
            assert (await agent.run("ask", thread_id="t", request_id="ask")).status == "paused"
            await agent.decide("t", "s1", Respond("cup"))
        child = child._replace(goal=None)
    await killed(child)
    async with at_work(database_url, tmp_path, endpoint) as agent:
        done = await answered(agent, Respond("cup"))
    assert (done.status, done.answer, book.read_text(), len(endpoint.questions)) == ("done", "3", "cup\n", 2)


@pytest.mark.slow
@pytest.mark.parametrize("at", [*SAYING, "told"])
async def test_killed_while_a_run_is_told_something_it_is_told_once(
    at: str, database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """What was stored is taken by whoever goes on; what was not can be said again, under the same id."""
    book, said = tmp_path / "book", "a cup"
    endpoint.answers(json.dumps(plan(step("n1", "price", args={"item": "cup"}), answer="${n1.cents}")))
    async with at_work(database_url, tmp_path, endpoint) as agent:
        assert (await agent.run("look", plan=SHOWN, thread_id="t", review="first")).status == "paused"
    await killed(Child(database_url, tmp_path, endpoint.base_url, at, said))
    async with at_work(database_url, tmp_path, endpoint) as agent:
        again = await agent.run(said, thread_id="t", request_id=said)
        assert (again.status, len(endpoint.questions)) == ("paused", 1)
        done = await answered(agent, Approve())
    assert (done.status, done.answer, book.read_text()) == ("done", "3", "cup\n")
