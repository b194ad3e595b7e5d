"""A process is killed at the worst moments of each kind of effect; another goes on, and the world is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from plans.decisions import Approve, Decision, Reject, Respond
from plans.errors import RunBusy
from tests.recovery.kit import kit

ROOT = Path(__file__).parents[2]


class World:
    """The child, the ledger it writes and the table it books in."""

    def __init__(self, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.folder = url, folder
        self.ledger = folder / "ledger.txt"
        self.ledger.touch()
        monkeypatch.setenv("LEDGER", str(self.ledger))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE bookings (account text)")

    def start(self, die_at: str = "") -> subprocess.Popen[str]:
        """The child, on thread "t"."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.recovery.child", self.url, str(self.folder), "t"],
            cwd=ROOT,
            env={**os.environ, "DIE_AT": die_at},
            stdout=subprocess.PIPE,
            text=True,
        )

    def dies(self, die_at: str) -> None:
        """The child runs and dies by SIGKILL at this moment."""
        child = self.start(die_at)
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL

    def ends(self) -> str:
        """The child goes on, and ends by itself; the status it ends with."""
        child = self.start()
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 0
        return out

    def reached(self) -> None:
        """Wait until the child hangs where it was told to."""
        until = time.monotonic() + 30
        while not self.ledger.with_suffix(".reached").exists():
            assert time.monotonic() < until
            time.sleep(0.05)

    def calls(self) -> Counter[str]:
        """How often each tool has had its effect."""
        return Counter(line.split()[0] for line in self.ledger.read_text("utf-8").splitlines())

    def keys(self, tool: str) -> set[str]:
        """The keys under which a tool has had its effect."""
        lines = [line.split() for line in self.ledger.read_text("utf-8").splitlines()]
        return {line[1] for line in lines if line[0] == tool}

    def bookings(self) -> int:
        """How many bookings there are."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT count(*) FROM bookings").fetchone()
        assert row is not None
        return int(row[0])

    def agent(self) -> Any:
        """An agent in this process, on the same database."""
        settings = Settings.load(environment={}, database_url=self.url, folder=self.folder, output=self.folder / "out")
        return open_agent([kit], settings=settings)


@pytest.fixture
def world(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world of its own for each test."""
    return World(database_url, tmp_path, monkeypatch)


def test_without_a_kill_every_effect_happens_once(world: World) -> None:
    """The plan itself is sound: the counts below mean something."""
    assert world.ends() == "done"
    assert world.calls() == {"look": 2, "charge": 1, "ship": 1, "send": 1}
    assert world.bookings() == 1


@pytest.mark.parametrize("moment", ["before:look", "before:charge", "before:book", "after:book", "before:ship"])
def test_what_has_not_happened_happens_once(world: World, moment: str) -> None:
    """Killed before an effect, or inside of a transaction, the next process does it, and nothing twice."""
    world.dies(moment)
    assert world.ends() == "done"
    assert world.calls() == {"look": 2, "charge": 1, "ship": 1, "send": 1}
    assert world.bookings() == 1


def test_an_idempotent_effect_is_sent_again_with_the_same_key(world: World) -> None:
    """Killed after a charge that nobody knows of, it is sent again, and the other side sees one key."""
    world.dies("after:charge")
    assert world.ends() == "done"
    assert world.calls()["charge"] == 2
    assert len(world.keys("charge")) == 1
    assert world.bookings() == 1


def test_an_irreversible_effect_whose_probe_knows_is_not_repeated(world: World) -> None:
    """Killed after a shipment, the probe says that it has left: it is taken as done."""
    world.dies("after:ship")
    assert world.ends() == "done"
    assert world.calls()["ship"] == 1


@pytest.mark.parametrize(
    ("answer", "sent", "status"),
    [(Approve(), 2, "done"), (Respond('{"sent": "yes"}'), 1, "done"), (Reject(message="leave it"), 1, "done")],
    ids=["it has not happened: run it", "it has happened, with this result", "skip it"],
)
async def test_an_unknown_irreversible_effect_asks_a_person_and_does_what_the_answer_says(
    world: World, answer: Decision, sent: int, status: str
) -> None:
    """Nobody guesses: the run pauses with the question, and goes on as a person says."""
    world.dies("after:send")
    assert world.ends() == "paused"
    assert world.calls()["send"] == 1
    agent: Agent
    async with world.agent() as agent:
        [request] = await agent.approvals("t")
        assert (request.kind, request.step_id, request.tool) == ("unknown_outcome", "s5", "send")
        result = await agent.resume("t", decisions={request.approval_id: answer}, by="ann")
    assert result.status == status, result.answer
    assert world.calls()["send"] == sent
    assert world.calls()["charge"] == 1


async def test_a_living_owner_keeps_its_run_and_a_dead_one_loses_it_at_once(world: World) -> None:
    """While the first process lives, a second is told that the run is busy; when it is killed, the next takes over."""
    child = world.start("stop:charge")
    world.reached()
    agent: Agent
    async with world.agent() as agent:
        with pytest.raises(RunBusy):
            await agent.resume("t")
        child.kill()
        child.communicate(timeout=20)
        result = await agent.resume("t")
    assert result.status == "done"
    assert world.calls() == {"look": 2, "charge": 1, "ship": 1, "send": 1}


def test_ctrl_c_stops_in_order_and_the_next_process_goes_on(world: World) -> None:
    """SIGINT ends the drive: the read in flight is dropped, what is finished is kept."""
    child = world.start("stop:look")
    world.reached()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode != 0
    assert world.ends() == "done"
    assert world.calls() == {"look": 2, "charge": 1, "ship": 1, "send": 1}
