"""The tables in memory answer as PostgreSQL does: seeded sequences of operations, every verdict the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from checkpoints.approvals import Approvals
from checkpoints.artifacts import Artifact, ArtifactStore
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.leases import Lease, Leases
from checkpoints.queries import QUERIES
from checkpoints.rows import Row
from checkpoints.runs import RunRecord, Runs
from plans.decisions import ApprovalRequest, Approve, Reject
from plans.errors import SurestepError
from plans.principals import Principal
from tests.simulation.doors import MemoryArtifacts, MemoryDatabase, MemoryJournal, MemoryLeases, Wire
from tests.simulation.server import STATEMENTS, Server
from tests.simulation.timeline import Timeline, chance, simulated

OPERATIONS = 60
SEEDS = 12


@dataclass
class Stores:
    """One set of stores, on the real server or on the one in memory."""

    runs: Runs
    approvals: Approvals
    artifacts: ArtifactStore
    journals: tuple[Journal, Journal]
    leases: tuple[Leases, Leases]


async def opened(stack: AsyncExitStack, stores: Stores) -> Stores:
    """The stores with their writers running."""
    for each in (*stores.journals, *stores.leases):
        await stack.enter_async_context(each)
    return stores


def on_the_real_server(database: Database, folder: str) -> Stores:
    """As an engine has them; two of what a process has one of."""
    return Stores(
        Runs(database),
        Approvals(database),
        ArtifactStore(database, folder),
        (Journal(database), Journal(database)),
        (Leases(database), Leases(database)),
    )


def in_memory(wire: Wire) -> Stores:
    """The same on the server in memory."""
    database = MemoryDatabase(wire)
    clock = wire.server.timeline
    return Stores(
        Runs(database),
        Approvals(database),
        MemoryArtifacts(wire),
        (MemoryJournal(wire), MemoryJournal(wire)),
        (MemoryLeases(wire, lambda: clock.now), MemoryLeases(wire, lambda: clock.now)),
    )


class Sequence:
    """A seeded sequence of operations by two workers on two runs, and what was answered to each."""

    def __init__(self, stores: Stores, draw: Random) -> None:
        self.stores = stores
        self.draw = draw
        self.held: dict[tuple[int, str], Lease] = {}
        self.told: list[Any] = []
        self.fences = {"r1": 0, "r2": 0}

    async def play(self) -> list[Any]:
        """Everything that was told, in order."""
        steps: list[Callable[[int, str], Awaitable[Any]]] = [
            self.create, self.acquire, self.release, self.append, self.append, self.append, self.read, self.find,
            self.ask, self.decide, self.list, self.withdraw, self.status, self.cancel, self.keep, self.in_transaction,
        ]  # fmt: skip
        await self.note("create", self.create(0, "r1"))
        for _ in range(OPERATIONS):
            act = self.draw.choice(steps)
            worker, run_id = self.draw.randrange(2), self.draw.choice(("r1", "r1", "r1", "r2"))
            await self.note(act.__name__, act(worker, run_id))
        return self.told

    async def note(self, name: str, work: Awaitable[Any]) -> None:
        """Remember what an operation gave, or how it was refused."""
        try:
            self.told.append((name, await work))
        except (SurestepError, RuntimeError) as refusal:
            self.told.append((name, type(refusal).__name__))

    async def create(self, _: int, run_id: str) -> Any:
        """A request, sent once more or with another goal."""
        goal = self.draw.choice(("a", "a", "a", "b"))
        thread = "t" if run_id == "r1" else self.draw.choice(("t", "u"))
        record = RunRecord(run_id=run_id, thread_id=thread, request_id=run_id, goal=goal, input={"x": 1})
        return (await self.stores.runs.create(record)).model_dump(exclude={"created_at", "ended_at"})

    async def acquire(self, worker: int, run_id: str) -> Any:
        """Become the owner."""
        lease = await self.stores.leases[worker].acquire(run_id, f"w{worker}")
        self.held[worker, run_id], self.fences[run_id] = lease, lease.fence
        return lease.fence, lease.taken_from, lease.cancel.is_set()

    async def release(self, worker: int, run_id: str) -> Any:
        """Let go, or not while something is decided."""
        if (lease := self.held.get((worker, run_id))) is None:
            return None
        waits_for = self.draw.choice(([], [f"{run_id} a1"], [f"{run_id} a1", f"{run_id} a2"]))
        return await self.stores.leases[worker].release(lease, unless_decided=waits_for)

    async def append(self, worker: int, run_id: str) -> Any:
        """A row: new, sent again, with a number that is taken, or by somebody who is not owner."""
        fence = max(0, self.fences[run_id] - self.draw.choice((0, 0, 0, 1)))
        row = Row(run_id, fence, self.draw.randint(1, 6), "note", "s1", 1, {"value": self.draw.randint(0, 1)})
        if self.draw.random() < 0.5:
            body = b"small"
            row = replace(row, artifact=(Artifact.of(body, "text/plain"), body))
        try:
            await self.stores.journals[worker].append(row)
        finally:
            self.stores.journals[worker].forget(run_id)
        return row.identity

    async def in_transaction(self, worker: int, run_id: str) -> Any:
        """The statement that goes into a tool's transaction."""
        row = Row(run_id, self.fences[run_id], self.draw.randint(1, 8), "note", "s1", 1, {"value": 0})
        statement = self.stores.journals[worker].statement_for(row)
        return await self.stores.journals[worker]._database.fetch(*statement)

    async def read(self, worker: int, run_id: str) -> Any:
        """The whole journal."""
        rows = await self.stores.journals[worker].read(run_id)
        return [(row.identity, row.kind, row.step_id, row.attempt, row.body) for row in rows]

    async def find(self, worker: int, run_id: str) -> Any:
        """One row."""
        row = await self.stores.journals[worker].find(run_id, self.fences[run_id], self.draw.randint(1, 6))
        return row and row.identity

    async def ask(self, _: int, run_id: str) -> Any:
        """A question, new or asked before."""
        name = f"{run_id} a{self.draw.randint(1, 3)}"
        request = ApprovalRequest(
            approval_id=name,
            run_id=run_id,
            thread_id="t",
            step_id="s1",
            tool="send",
            args={},
            args_sha256="h",
            risk="high",
            reason="why",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        if await self.stores.runs.get(run_id) is not None:
            await self.stores.approvals.record([request])
        return name

    async def decide(self, _: int, run_id: str) -> Any:
        """A decision: the first counts, if it is about what was shown."""
        name = f"{run_id} a{self.draw.randint(1, 3)}"
        said = self.draw.choice((Approve(), Reject(message="no")))
        seen = self.draw.choice((None, "h", "h", "other"))
        by = Principal(name="ann")
        return (await self.stores.approvals.decide(name, said, by, args_sha256=seen)).request.approval_id

    async def list(self, _: int, run_id: str) -> Any:
        """What is asked, on the run and on the thread."""
        every = await self.stores.approvals.of_run(run_id)
        pending = await self.stores.approvals.pending(self.draw.choice((None, "t", "u")))
        shown = [(each.request.approval_id, each.status, each.decision, each.decided_by) for each in every]
        return sorted(shown, key=str), sorted(request.approval_id for request in pending)

    async def withdraw(self, _: int, run_id: str) -> Any:
        """Questions that no longer arise."""
        return sorted(await self.stores.approvals.withdraw([f"{run_id} a1", f"{run_id} a3"]))

    async def status(self, _: int, run_id: str) -> Any:
        """How the run stands, written by an owner or by somebody else."""
        fence = max(0, self.fences[run_id] - self.draw.choice((0, 0, 1)))
        await self.stores.runs.set_status(run_id, fence, self.draw.choice(("paused", "done")), {"x": 1})
        found = await self.stores.runs.latest("t")
        return found and (found.run_id, found.status, found.summary, found.ended_at is None)

    async def cancel(self, worker: int, run_id: str) -> Any:
        """A wish to cancel; who drives it is told."""
        if self.draw.random() < 0.7:
            return None
        return await self.stores.leases[worker].request_cancel(run_id)

    async def keep(self, _: int, run_id: str) -> Any:
        """A result, small or large, and what is read back."""
        body = self.draw.choice((b"small", b"x" * 20_000))
        if await self.stores.runs.get(run_id) is None:
            return None
        kept = await self.stores.artifacts.put(run_id, body, "text/plain")
        return kept.output_ref, len(await self.stores.artifacts.get(run_id, kept.output_ref))


async def _in_memory(seed: int, timeline: Timeline) -> list[Any]:
    async with AsyncExitStack() as stack:
        stores = await opened(stack, in_memory(Wire(Server(timeline), chance(seed, "wire"), latency_s=0.001)))
        return await Sequence(stores, chance(seed)).play()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_both_give_the_same_answers(database: Database, tmp_path: Any, seed: int) -> None:
    """Accepted, stale, sent again, clash, busy, released, decided, refused: word for word alike."""
    async with AsyncExitStack() as stack:
        stores = await opened(stack, on_the_real_server(database, str(tmp_path)))
        real = await Sequence(stores, chance(seed)).play()
    timeline = Timeline()
    simulated_answers = await asyncio.to_thread(lambda: simulated(_in_memory(seed, timeline), timeline))
    assert simulated_answers == real


def test_the_sequences_meet_every_verdict() -> None:
    """Among them are rows that are accepted, refused and clash, leases that are busy, and decisions that come late."""
    lines = [(seed, Timeline()) for seed in range(SEEDS)]
    told = [answer for seed, line in lines for answer in simulated(_in_memory(seed, line), line)]
    wanted: list[tuple[str, Any]] = [
        ("append", "StaleOwner"),
        ("append", "RuntimeError"),
        ("acquire", "RunBusy"),
        ("acquire", "UnknownThread"),
        ("release", True),
        ("release", False),
        ("decide", "ConflictingDecision"),
        ("decide", "StaleDecision"),
        ("decide", "UnknownApproval"),
        ("create", "UsageError"),
        ("status", "StaleOwner"),
        ("in_transaction", []),
    ]
    assert [each for each in wanted if each not in told] == []


def test_what_is_described_here_exists_there() -> None:
    """A statement that is renamed or dropped is noticed; a new one is told by name as soon as a story sends it."""
    Server(Timeline()).answer(QUERIES["lease_state"], {"run_id": "r1"})
    assert STATEMENTS.keys() <= QUERIES.keys()
    with pytest.raises(LookupError, match="applied_migrations"):
        Server(Timeline()).answer(QUERIES["applied_migrations"], None)
