"""A sweeper is killed wherever it can die; the next one leaves nobody waiting, and nothing happens twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pytest_httpserver import HTTPServer

from checkpoints.crash_points import SWEEPING
from graph.gateway import Agent
from graph.sweeping import SweepReport
from plans.decisions import Approve
from tests.graph.keeping import QUESTION, kit
from tests.graph.receiver import Receiver
from tests.recovery.keeper import Keeper
from tests.running import running

LATER = """
    UPDATE surestep.outbox SET next_at = now();
    UPDATE surestep.resumptions SET next_at = now();
    UPDATE surestep.leases SET expires_at = now() WHERE owner IS NOT NULL;
"""
"""A minute later: what the dead sweeper had taken is anybody's again."""
ALWAYS = ("sweep.claimed", "outbox.sent")
"""Points that every run of the tests dies at; the others are for `make slow`."""
OVERDUE = "UPDATE surestep.approvals SET expires_at = now() - interval '1 s' WHERE thread_id = 'silent'"


@pytest.fixture(scope="module")
def keeper() -> Iterator[Keeper]:
    """The process that forks sweepers."""
    with Keeper() as forking:
        yield forking


def happens(database_url: str, what: str) -> None:
    """Something happens to the database while nobody looks."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(what)


async def left_waiting(agent: Agent) -> None:
    """One run that somebody has decided about, and one that nobody has answered in time."""
    for thread in ("decided", "silent"):
        await agent.run(plan=QUESTION, thread_id=thread)
    await agent.decide("decided", "s1", Approve(), by="ann")
    await agent.engine.database.execute(OVERDUE)


async def intents(agent: Agent) -> int:
    """How often something that cannot be undone was begun."""
    (row,) = await agent.engine.database.fetch("SELECT count(*) AS n FROM surestep.journal WHERE kind = 'intent'")
    return int(row["n"])


@pytest.mark.parametrize(
    "point", [each if each in ALWAYS else pytest.param(each, marks=pytest.mark.slow) for each in SWEEPING]
)
async def test_a_sweep_killed_anywhere_is_taken_up_by_the_next_one(
    keeper: Keeper, database_url: str, tmp_path: Path, httpserver: HTTPServer, point: str
) -> None:
    """Both runs end as they should, the effect happens once, and everything is told; what is told twice has one id."""
    receiver = Receiver(httpserver)
    async with running(database_url, tmp_path, [kit]) as agent:
        await left_waiting(agent)
    died = await asyncio.to_thread(keeper.run, database_url, tmp_path, "sweep", point, **receiver.settings)
    assert died == -signal.SIGKILL
    happens(database_url, LATER)
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "sweep", **receiver.settings) == 0
    async with running(database_url, tmp_path, [kit]) as agent:
        assert (await agent.show("decided")).status == "done"
        silent = await agent.show("silent")
        assert (silent.status, [each.code for each in silent.failures]) == ("failed", ["APPROVAL_EXPIRED"])
        assert await intents(agent) == 1
        assert await agent.sweeper.once() == SweepReport()
    told = {(message["id"], message["type"], message["thread_id"]) for message in receiver.heard}
    assert sorted(each[1:] for each in told) == [("approval.expired", "silent"), ("run.failed", "silent")]
    assert (len(receiver.heard) > len(told)) == (point == "outbox.sent")


async def test_a_sweeper_killed_in_the_middle_of_an_effect_has_people_told_that_it_is_in_doubt(
    keeper: Keeper, database_url: str, tmp_path: Path, httpserver: HTTPServer
) -> None:
    """The next one takes the run up, does not repeat the effect, and tells whom it asks; silence does not settle it."""
    receiver = Receiver(httpserver)
    async with running(database_url, tmp_path, [kit]) as agent:
        await agent.run(plan=QUESTION, thread_id="decided")
        await agent.decide("decided", "s1", Approve(), by="ann")
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "sweep", "effect.returned") == -signal.SIGKILL
    happens(database_url, LATER)
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "sweep", **receiver.settings) == 0
    async with running(database_url, tmp_path, [kit]) as agent:
        shown = await agent.show("decided")
        (asked,) = shown.approvals
        assert (shown.status, asked.kind, asked.expires_at) == ("paused", "unknown_outcome", None)
        assert await intents(agent) == 1
    assert receiver.types() == ["outcome.unknown"]
    assert receiver.heard[0]["code"] == "UNKNOWN_OUTCOME"
