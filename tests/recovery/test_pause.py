"""A worker is stopped (SIGSTOP) between its intent and its call, for longer than its lease, and continued."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from graph.gateway import Agent
from graph.result import RunResult
from graph.settings import Settings
from nodes.doubt import MARGIN_S
from nodes.events import Event
from plans.errors import RunBusy
from tests.recovery.pausing import LEASE_S, TIMEOUT_S, kit

ROOT = Path(__file__).parents[2]


class World:
    """The worker that is stopped, the ledger of what has happened, and whoever takes over."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.ledger = folder / "ledger.txt"
        self.ledger.touch()

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[subprocess.Popen[str]]:
        """The worker, stopped where its intents are accepted and nothing has been called."""
        words = [sys.executable, "-m", "tests.recovery.pausing", self.url, str(self.folder)]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:  # noqa: ASYNC220
            try:
                _, status = await asyncio.wait_for(asyncio.to_thread(os.waitpid, child.pid, os.WUNTRACED), 30)
                assert os.WIFSTOPPED(status)
                yield child
            finally:
                child.kill()

    @asynccontextmanager
    async def successor(self) -> AsyncIterator[Agent]:
        """Another worker, in this process."""
        settings = Settings.load(
            environment={},
            database_url=self.url,
            folder=self.folder,
            output=self.folder / "out",
            lease_s=LEASE_S,
        )
        async with open_agent([kit(self.ledger)], settings=settings) as agent:
            yield agent

    def happened(self) -> list[str]:
        """What was called, in order."""
        return [line.split()[0] for line in self.ledger.read_text("utf-8").splitlines()]


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    """A world of its own for each test."""
    return World(database_url, tmp_path)


async def taken_over(agent: Agent, events: list[Event]) -> RunResult:
    """The run, gone on with as soon as its owner's lease is over."""
    while True:
        try:
            return await agent.resume("t", on_event=events.append)
        except RunBusy:
            await asyncio.sleep(0.1)


async def rows(agent: Agent, step_id: str) -> list[dict[str, Any]]:
    """The step's rows in the journal, in order."""
    return await agent.engine.database.fetch(
        "SELECT kind, fence, body, extract(epoch FROM at)::float8 AS at FROM surestep.journal"
        " WHERE step_id = %s ORDER BY fence, n",
        (step_id,),
    )


async def test_a_paused_worker_begins_nothing_and_nobody_settles_before_its_time_is_over(world: World) -> None:
    """Neither sent again nor asked about before the instant that the intent names; a person is told why. Continued, the
    old worker calls nothing and its rows are refused: each effect has happened once."""
    events: list[Event] = []
    async with world.stopped() as old, world.successor() as agent:
        result = await taken_over(agent, events)
        assert result.status == "done"
        assert sorted(world.happened()) == ["charge", "ship"]
        old.send_signal(signal.SIGCONT)
        said, _ = await asyncio.to_thread(old.communicate, timeout=30)
        assert said == "StaleOwner"
        assert sorted(world.happened()) == ["charge", "ship"]
        charged, shipped = await rows(agent, "charge"), await rows(agent, "ship")
    assert [row["kind"] for row in charged] == ["intent", "intent", "outcome"]
    assert [row["kind"] for row in shipped] == ["intent", "settlement", "intent", "outcome"]
    for first, second, *more in (charged, shipped):
        intent = first["body"]
        assert intent["settled_after"] == pytest.approx(intent["start_by"] + TIMEOUT_S + MARGIN_S, abs=0.01)
        assert intent["start_by"] - first["at"] <= LEASE_S
        assert second["at"] >= intent["settled_after"]
        assert {row["fence"] for row in more} == {second["fence"]} != {first["fence"]}
    notices = {event.step_id: event.message or "" for event in events if event.kind == "notice"}
    assert set(notices) == {"charge", "ship"}
    assert "may still be at it" in notices["ship"]


async def test_a_worker_that_was_stopped_for_less_than_its_lease_goes_on(world: World) -> None:
    """Continued in time it calls; the run is its own still."""
    async with world.stopped() as old:
        old.send_signal(signal.SIGCONT)
        said, _ = await asyncio.to_thread(old.communicate, timeout=30)
    assert (said, sorted(world.happened())) == ("done", ["charge", "ship"])
