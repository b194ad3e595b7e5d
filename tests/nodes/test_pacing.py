"""Tests of what waits for its tool: it takes none of the run's places, and its time does not run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nodes.pacing import Pacing
from tests.running import plan, running, step
from tests.tools.calls import Time, tool_of
from tools.registry import Toolkit
from tools.tool import Tool

ONCE = {"max_attempts": 1}


def pacing(time: Time, **tools: dict[str, Any]) -> Pacing:
    """The pacing of a run with these tools."""
    made: dict[str, Tool] = {name: tool_of(lambda: 1, name=name, **declared) for name, declared in tools.items()}
    return Pacing(lambda: time.now, made)


def let_go(paced: Pacing, name: str, *units: str) -> list[str]:
    """Those of these that may start; the others are held."""
    free = []
    for unit in units:
        if not paced.holds(unit, name):
            paced.started(unit, name)
            free.append(unit)
    return free


def test_as_many_start_as_the_tool_takes_and_the_next_when_one_has_ended() -> None:
    """With room for two, two of five start; each end lets one go, in the order in which they came."""
    paced = pacing(Time(), t={"concurrency": 2}, free={})
    assert let_go(paced, "t", *"abcde") == ["a", "b"]
    assert let_go(paced, "free", *"vwxyz") == ["v", "w", "x", "y", "z"]
    assert (paced.free(), paced.is_holding, paced.next_at()) == ([], True, None)
    paced.ended("b")
    assert paced.free() == ["c"]
    assert let_go(paced, "t", "c") == ["c"]
    paced.ended("a")
    paced.ended("c")
    assert let_go(paced, "t", *paced.free()) == ["d", "e"]
    assert (paced.free(), paced.is_holding) == ([], False)


def test_a_rate_holds_until_its_time_has_come() -> None:
    """Two in ten seconds: the third may go when the first is ten seconds old, and that instant is known."""
    time = Time(now=100.0)
    paced = pacing(time, t={"rate_limit": {"calls": 2, "per_s": 10}})
    assert let_go(paced, "t", "a") == ["a"]
    time.now += 4
    assert let_go(paced, "t", *"bcd") == ["b"]
    assert (paced.free(), paced.next_at()) == ([], 110.0)
    paced.ended("a")
    time.now = 110.0
    assert let_go(paced, "t", *paced.free()) == ["c"]
    assert paced.next_at() == 114.0


def test_changed_limits_count_from_the_next_start() -> None:
    """What was changed about a tool while running holds for the steps that wait, and a new plan asks anew."""
    paced = pacing(Time(), t={"concurrency": 1})
    assert let_go(paced, "t", *"abcd") == ["a"]
    paced.follow("t", tool_of(lambda: 1, name="t", concurrency=3).spec)
    assert let_go(paced, "t", *paced.free()) == ["b", "c"]
    paced.follow("t", tool_of(lambda: 1, name="t").spec)
    assert paced.free() == ["d"]
    paced.follow("t", tool_of(lambda: 1, name="t", concurrency=1).spec)
    assert paced.holds("e", "t")
    paced.forget()
    for unit in "abc":
        paced.ended(unit)
    assert (paced.free(), paced.is_holding) == ([], False)


@pytest.mark.parametrize("limits", [{"concurrency": 1}, {"rate_limit": {"calls": 1, "per_s": 0.1}}])
async def test_steps_that_wait_for_their_tool_leave_the_runs_places_to_others(
    database_url: str, tmp_path: Path, limits: dict[str, Any]
) -> None:
    """Twelve elements for a tool that takes one at a time, and two places: other steps run beside them from the start,
    and none of the twelve runs out of its 0.3 s while it waits for the others' 1.2 s."""
    kit, order = Toolkit("paced"), list[str]()

    @kit.tool(effect="read", retry=ONCE, **limits)
    async def one(n: int) -> int:
        """Takes one at a time."""
        order.append("one")
        await asyncio.sleep(0.1)
        return n

    @kit.tool(effect="read", retry=ONCE)
    async def other() -> int:
        """Takes any."""
        order.append("other")
        return 1

    each = step("e", "one", args={"n": "${item}"}, for_each="${inputs.list}", timeout_s=0.3)
    others = [step(f"o{n}", "other", *([f"o{n - 1}"] if n else [])) for n in range(4)]
    async with running(database_url, tmp_path, [kit]) as agent:
        given = plan(each, *others)
        result = await agent.run(plan=given, inputs={"list": list(range(12))}, limits={"concurrency": 2})
    assert (result.status, order.count("one")) == ("done", 12)
    assert max(place for place, name in enumerate(order) if name == "other") < 8


async def test_a_question_to_a_person_does_not_wait_for_its_tool(database_url: str, tmp_path: Path) -> None:
    """While a call of the tool is under way, another step of it that needs approval asks at once."""
    kit, asked = Toolkit("paced"), asyncio.Event()

    @kit.tool(effect="irreversible", concurrency=1, timeout_s=10)
    async def act(n: int) -> str:
        """Takes one at a time, until somebody was asked."""
        await asyncio.wait_for(asked.wait(), 8)
        return f"{n}"

    async with running(database_url, tmp_path, [kit]) as agent:
        given = plan(step("a", "act", args={"n": 1}), step("b", "act", args={"n": 2}, require_approval=True))
        run = asyncio.create_task(agent.run(plan=given))
        for _ in range(200):
            if await agent.engine.database.fetch("SELECT approval_id FROM surestep.approvals"):
                asked.set()
            await asyncio.sleep(0.02)
            if run.done():
                break
        result = await run
    assert (result.status, {each.id: each.status for each in result.steps}) == ("paused", {"a": "done", "b": "pending"})
