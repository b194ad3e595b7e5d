"""Two owners of one run, in any order of events: what the new one has read is all that the old one ever wrote."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints.database import Database, open_database
from checkpoints.journal import Journal
from checkpoints.leases import Lease, Leases
from checkpoints.rows import Identity, Row
from plans.errors import StaleOwner
from tests.checkpoints.scenes import a_row, add_run

_runs = itertools.count(1)


@dataclass
class Worker:
    """A process that drives the run whenever it has taken it, and otherwise goes on as if it still had it."""

    journal: Journal
    leases: Leases
    lease: Lease | None = None
    n: int = 0
    sent: list[asyncio.Future[None]] = field(default_factory=list)

    async def write(self, run_id: str, count: int) -> None:
        """Submit rows under the fence this worker knows, lost or not."""
        for _ in range(count if self.lease else 0):
            assert self.lease is not None
            self.n += 1
            row = a_row(self.n, run_id, fence=self.lease.fence)
            try:
                self.sent.append(await self.journal.submit(row))
            except StaleOwner:
                return

    async def take(self, run_id: str) -> tuple[int, list[Row]]:
        """Become owner (of a lease that has run out), then read what was written before."""
        self.leases._held.clear()
        self.n = 0
        self.lease = await self.leases.acquire(run_id, "worker")
        return self.lease.fence, await self.journal.read(run_id)


@pytest.fixture
def slow_database_url(database_url: str) -> str:
    """A database in which a batch takes a while between its check of the fence and its commit."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION take_a_while() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE TRIGGER slow AFTER INSERT ON surestep.journal FOR EACH STATEMENT EXECUTE FUNCTION take_a_while()"
        )
    return database_url


Event = tuple[int, str, int]
events: st.SearchStrategy[list[Event]] = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["write", "write", "take", "wait"]), st.integers(1, 5)),
    min_size=4,
    max_size=14,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events)
def test_no_row_with_an_old_fence_follows_a_takeover(
    slow_database_url: str, tmp_path: Path, script: list[Event]
) -> None:
    """Whatever two owners do, and when, each takeover's reading of the journal holds all rows below its fence, and
    every row that was reported accepted is there."""
    asyncio.run(play(slow_database_url, tmp_path, script))


async def play(database_url: str, folder: Path, script: Sequence[Event]) -> None:
    """Run a script of events against one run, and check what came of it."""
    run_id = f"r{next(_runs)}"
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(database_url, folder))
        await add_run(database, run_id)
        workers = [
            Worker(
                await stack.enter_async_context(Journal(database)), await stack.enter_async_context(Leases(database))
            )
            for _ in range(2)
        ]
        readings = await act(database, workers, run_id, script)
        results = [await asyncio.gather(*worker.sent, return_exceptions=True) for worker in workers]
        final = {row.identity for row in await workers[0].journal.read(run_id)}
    for fence, read in readings:
        assert {one for one in final if one[1] < fence} == {row.identity for row in read}
    accepted = sum(result is None for result in itertools.chain(*results))
    assert accepted == len(final)
    assert no_holes(final)


async def act(
    database: Database, workers: Sequence[Worker], run_id: str, script: Sequence[Event]
) -> list[tuple[int, list[Row]]]:
    """Play the events; writers are not waited for, so that takeovers meet their batches on the way."""
    readings = []
    for who, what, amount in script:
        if what == "write":
            await workers[who].write(run_id, amount)
        elif what == "take":
            await database.execute(
                "UPDATE surestep.leases SET expires_at = clock_timestamp() WHERE run_id = %s", (run_id,)
            )
            readings.append(await workers[who].take(run_id))
        else:
            await asyncio.sleep(amount / 2000)
    return readings


def no_holes(final: set[Identity]) -> bool:
    """Whether each fence's rows are a beginning of what its owner wrote: numbers without a gap."""
    by_fence = itertools.groupby(sorted(final), key=lambda identity: identity[1])
    numbers = [[identity[2] for identity in group] for _, group in by_fence]
    return all(found == list(range(1, len(found) + 1)) for found in numbers)
