"""Takeover: when a run may be taken from its owner, and what the old owner can do afterwards."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from checkpoints import workers
from checkpoints.background import stop
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.leases import Lease, Leases
from checkpoints.runs import Runs
from checkpoints.workers import name_of_worker, present
from plans.errors import DatabaseUnavailable, RunBusy, StaleOwner
from tests.checkpoints.scenes import a_row, add_run, until

LONG_AGO_S = 0.2
"""A lease length that is over since the start of the tests' server."""


async def expire(database: Database) -> None:
    """All leases have run out."""
    await database.execute("UPDATE surestep.leases SET expires_at = clock_timestamp()")


async def lasting(database: Database) -> None:
    """No lease runs out."""
    await database.execute("UPDATE surestep.leases SET expires_at = clock_timestamp() + '1 hour'::interval")


async def vanish(leases: Leases) -> None:
    """The process is gone: its session ends, its tasks with it, and it releases nothing."""
    await stop(leases._renewals)
    await leases._presence.close()
    leases._held.clear()


async def test_a_run_whose_owner_let_the_time_run_out_is_taken_over(database: Database) -> None:
    """The fence rises, the old owner's rows and status are refused, and its next renewal tells it so."""
    record = await add_run(database)
    async with Leases(database) as old, Leases(database) as new, Journal(database) as journal:
        before = await old.acquire("r1", "host:1")
        await journal.append(a_row(1, fence=before.fence))
        await expire(database)
        after = await new.acquire("r1", "host:2")
        assert (after.fence, after.taken_from) == (before.fence + 1, "host:1")
        with pytest.raises(StaleOwner):
            await journal.append(a_row(2, fence=before.fence))
        with pytest.raises(StaleOwner):
            await Runs(database).set_status(record.run_id, before.fence, "done", {})
        await old.renew()
        assert not before.alive(time.monotonic())
        assert after.alive(time.monotonic())
        await journal.append(a_row(1, fence=after.fence))
        assert [row.identity for row in await journal.read("r1")] == [("r1", 1, 1), ("r1", 2, 1)]


async def test_a_run_whose_owner_s_session_is_gone_is_taken_over_at_once(database: Database) -> None:
    """A killed worker makes nobody wait for its lease to run out."""
    await add_run(database)
    old = await Leases(database, length_s=LONG_AGO_S).__aenter__()
    async with Leases(database, length_s=LONG_AGO_S) as new:
        before = await old.acquire("r1", "host:1")
        await stop(old._renewals)
        await lasting(database)
        with pytest.raises(RunBusy):
            await new.acquire("r1", "host:2")
        await vanish(old)

        async def taken() -> Lease | None:
            try:
                return await new.acquire("r1", "host:2")
            except RunBusy:
                return None  # the server takes a moment to notice the end of a session

        await until(taken)
        found = await database.fetch("SELECT owner, fence FROM surestep.leases")
        assert found == [{"owner": "host:2", "fence": before.fence + 1}]


async def test_after_a_start_of_the_server_a_missing_session_proves_nothing(database: Database) -> None:
    """For one lease length after a restart living owners have lost their sessions too, and keep their runs."""
    await add_run(database)
    old = await Leases(database, length_s=86_400).__aenter__()
    async with Leases(database, length_s=86_400) as new:
        await old.acquire("r1", "host:1")
        await vanish(old)
        await database.execute(
            "UPDATE surestep.leases SET backend_start = pg_postmaster_start_time() - interval '1 minute'"
        )
        await asyncio.sleep(0.1)
        with pytest.raises(RunBusy, match="driven by host:1"):
            await new.acquire("r1", "host:2")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not tell who is dead")
async def test_after_a_start_of_the_server_the_run_of_a_worker_known_to_be_dead_is_taken_over(
    database: Database,
) -> None:
    """Its session proves nothing then, but the kernel knows that its process has ended; while it lives, it is waited
    for."""
    await add_run(database)
    with present(name_of_worker()) as name:
        old = await Leases(database, length_s=86_400, worker=name).__aenter__()
        async with Leases(database, length_s=86_400, worker=name_of_worker()) as new:
            await old.acquire("r1", "host:1")
            await vanish(old)
            await database.execute(
                "UPDATE surestep.leases SET backend_start = pg_postmaster_start_time() - interval '1 minute'"
            )
            await asyncio.sleep(0.1)
            with pytest.raises(RunBusy, match="driven by host:1"):
                await new.acquire("r1", "host:2")
            workers._present.discard(name)  # as if its process had ended
            assert (await new.acquire("r1", "host:2")).taken_from == "host:1"


async def test_a_lease_whose_answer_was_lost_can_be_taken_again_by_the_same_process(database: Database) -> None:
    """A process that never heard that it had become owner is not locked out by itself."""
    await add_run(database)
    async with Leases(database) as leases:
        unheard = await leases.acquire("r1", "host:1")
        leases._held.clear()
        again = await leases.acquire("r1", "host:1")
        assert again.fence == unheard.fence + 1


async def test_a_lease_let_go_while_the_database_is_away_is_not_kept_alive(database: Database) -> None:
    """A run whose release was not heard belongs to nobody soon, and to the same process at once if it wants it."""
    await add_run(database)
    async with Leases(database) as leases:
        lease = await leases.acquire("r1", "host:1")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Database, "fetch", unreachable_database)
            with pytest.raises(DatabaseUnavailable):
                await leases.release(lease)
        assert not lease.alive(time.monotonic())
        before = await database.fetch("SELECT expires_at FROM surestep.leases")
        await leases.renew()
        assert await database.fetch("SELECT expires_at FROM surestep.leases") == before
        assert (await leases.acquire("r1", "host:1")).fence == lease.fence + 1


async def unreachable_database(*_: object) -> list[dict[str, Any]]:
    """What every query of a dead database ends in."""
    raise DatabaseUnavailable("gone")


async def test_an_owner_that_slept_past_its_lease_goes_on_if_nobody_came(database: Database) -> None:
    """A late renewal of a run that nobody took makes the owner alive again, with the same fence."""
    await add_run(database)
    now = [time.monotonic()]
    async with Leases(database, monotonic=lambda: now[0]) as leases:
        lease = await leases.acquire("r1", "host:1")
        await expire(database)
        now[0] += 60
        assert not lease.alive(now[0])
        await leases.renew()
        assert lease.alive(now[0])
        assert (await database.fetch("SELECT fence FROM surestep.leases"))[0]["fence"] == lease.fence


async def test_all_connections_cut_at_once_cost_no_owner_its_run(database: Database) -> None:
    """After the database drops everybody, as in a restart, owners, journal and renewals go on by themselves."""
    await add_run(database)
    async with Leases(database) as leases, Journal(database) as journal:
        lease = await leases.acquire("r1", "host:1")
        await journal.append(a_row(1))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        await database.execute(f"{cut} AND pid <> pg_backend_pid()")
        await journal.append(a_row(2))
        await leases.renew()
        assert lease.alive(time.monotonic())
        assert [row.n for row in await journal.read("r1")] == [1, 2]
