"""Tests of drives that are not ours: however the compiled graph's run ends, nothing of it goes on, and another can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphRecursionError

from graph.gateway import Agent
from nodes.attendance import watch
from tests.running import plan, running, step
from tools.registry import Toolkit

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SHORT: Any = {**CONFIG, "recursion_limit": 4}


class Desk:
    """A read that never ends, one that fails so that a decision is needed meanwhile, and an effect."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.kit = Toolkit("desk")
        self.kit.tool(effect="read")(self._hang())
        self.kit.tool(effect="read")(self._look())
        self.kit.tool(effect="irreversible")(self._send())

    def _hang(self) -> Any:
        async def hang() -> str:
            """Never ends, the first time."""
            self.calls.append("hang")
            if self.calls.count("hang") == 1:
                await asyncio.sleep(3_600)
            return "at last"

        return hang

    def _look(self) -> Any:
        async def look(what: str = "") -> str:
            """There is nothing, and that is a failure."""
            self.calls.append("look")
            return what

        return look

    def _send(self) -> Any:
        async def send(text: str) -> str:
            """Send it."""
            self.calls.append(f"send {text}")
            return text

        return send


PLAN = plan(
    step("h", "hang"),
    step("l", "look", success_when="length(@) > `0`"),
    step("s", "send", "h", "l", args={"text": "hi"}, on_dependency_failure="degrade"),
)
"""Its execute ends with the read still in flight: the failed look needs a verdict."""


class Broken(Exception):
    """What a saver raises here."""


def hold_checkpoints(agent: Agent, when: Callable[[], bool], then: Callable[[], Any]) -> None:
    """From that moment on, whatever the graph wants to checkpoint meets this instead."""
    saver: Any = agent.graph.checkpointer
    put = saver.aput

    async def aput(*given: Any) -> Any:
        if when():
            await then()
        return await put(*given)

    saver.aput = aput


async def goes_on_at_once(database_url: str, tmp_path: Path, desk: Desk) -> None:
    """Another worker brings the run to its end, and the effect happens once."""
    async with asyncio.timeout(10), running(database_url, tmp_path, [desk.kit]) as other:
        result = await other.resume("t")
    assert (result.status, desk.calls.count("send hi")) == ("done", 1)


async def test_a_drive_that_is_cancelled_between_two_nodes_lets_go(database_url: str, tmp_path: Path) -> None:
    """A checkpoint hangs while a read is in flight, and the caller gives up: the read is dropped, the run is free."""
    desk = Desk()
    hangs = asyncio.Event()

    async def hang() -> None:
        hangs.set()
        await asyncio.sleep(3_600)

    async with running(database_url, tmp_path, [desk.kit]) as agent:
        hold_checkpoints(agent, lambda: "look" in desk.calls, hang)
        drive = asyncio.create_task(agent.graph.ainvoke({"plan": PLAN}, CONFIG, durability="sync"))
        await asyncio.wait_for(hangs.wait(), 10)
        assert len(agent.engine.sessions) == 1
        drive.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drive
        assert (agent.engine.sessions, agent.engine.closing) == ({}, {})
        await goes_on_at_once(database_url, tmp_path, desk)


async def test_a_drive_that_a_saver_breaks_lets_go(database_url: str, tmp_path: Path) -> None:
    """The error that the caller gets is the saver's, and by then nothing of the run is open."""
    desk = Desk()

    async def fail() -> None:
        raise Broken

    async with running(database_url, tmp_path, [desk.kit]) as agent:
        hold_checkpoints(agent, lambda: "look" in desk.calls, fail)
        with pytest.raises(Broken):
            await agent.graph.ainvoke({"plan": PLAN}, CONFIG, durability="sync")
        assert (agent.engine.sessions, agent.engine.closing) == ({}, {})
        await goes_on_at_once(database_url, tmp_path, desk)


async def test_a_drive_that_reaches_the_recursion_limit_lets_go(database_url: str, tmp_path: Path) -> None:
    """LangGraph ends it after some nodes; what those have begun does not go on behind the caller's back."""
    desk = Desk()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        with pytest.raises(GraphRecursionError):
            await agent.graph.ainvoke({"plan": PLAN}, SHORT)
        assert sorted(desk.calls) == ["hang", "look"]
        assert (agent.engine.sessions, agent.engine.closing) == ({}, {})
        await goes_on_at_once(database_url, tmp_path, desk)


async def test_a_drive_that_waits_for_a_person_has_let_go(database_url: str, tmp_path: Path) -> None:
    """An interrupt is an end: another process can take the answer."""
    desk = Desk()
    guarded = plan(step("s", "send", args={"text": "hi"}, require_approval=True))
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        waiting = await agent.graph.ainvoke({"plan": guarded}, CONFIG)
        assert waiting["__interrupt__"]
        assert agent.engine.sessions == {}
        async with running(database_url, tmp_path, [desk.kit]) as other:
            result = await other.resume("t", approve="all")
    assert (result.status, desk.calls) == ("done", ["send hi"])


async def test_a_drive_that_nobody_goes_on_with_is_ended_by_the_watchdog(database_url: str, tmp_path: Path) -> None:
    """Its consumer reads no further, between two nodes: after a while its reads are dropped and the run is free."""
    desk = Desk()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        watchdog = asyncio.create_task(watch(agent.engine, 0.3))
        stream: Any = agent.graph.astream({"plan": PLAN}, CONFIG, stream_mode="updates")
        async for update in stream:
            if "execute" in update:
                break
        async with asyncio.timeout(10):
            while agent.engine.sessions or agent.engine.closing:  # noqa: ASYNC110 (nobody is told of it)
                await asyncio.sleep(0.02)
        await goes_on_at_once(database_url, tmp_path, desk)
        watchdog.cancel()
        await stream.aclose()


async def test_the_watchdog_leaves_a_run_alone_that_is_in_a_node(database_url: str, tmp_path: Path) -> None:
    """However long a step takes, its drive has not stalled; neither has one that our gateway sees to."""
    slow = Toolkit("slow")

    @slow.tool(effect="read")
    async def nap() -> str:
        """Some time."""
        await asyncio.sleep(0.5)
        return "rested"

    async with running(database_url, tmp_path, [slow]) as agent:
        watchdog = asyncio.create_task(watch(agent.engine, 0.1))
        ended = await agent.graph.ainvoke({"plan": plan(step("n", "nap"))}, CONFIG)
        leases = await agent.engine.database.fetch("SELECT fence FROM surestep.leases")
        watchdog.cancel()
    assert (ended["status"], [row["fence"] for row in leases]) == ("done", [1])
