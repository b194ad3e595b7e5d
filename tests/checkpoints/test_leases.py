"""Leases: one owner per run, renewed while it lives, told when it is to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from datetime import datetime

import pytest

from checkpoints.approvals import Approvals
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.leases import Lease, Leases
from plans.decisions import Approve
from plans.errors import RunBusy, UnknownThread
from plans.principals import Principal
from tests.checkpoints.scenes import a_row, add_run, blocked, until
from tests.checkpoints.test_approvals import a_request


async def count_true(results: Iterable[Awaitable[bool]]) -> int:
    """How many came out true."""
    return sum(await asyncio.gather(*results))


async def test_an_owner_has_the_run_to_itself(database: Database) -> None:
    """The second worker is told who drives the run, and when it could take over at the latest."""
    await add_run(database)
    async with Leases(database) as mine, Leases(database) as theirs:
        lease = await mine.acquire("r1", "host:1")
        assert (lease.run_id, lease.fence, lease.owner, lease.taken_from) == ("r1", 1, "host:1", None)
        assert lease.alive(time.monotonic())
        with pytest.raises(RunBusy, match=r"run r1 is being driven by host:1; .* can be taken over in (30|29) s"):
            await theirs.acquire("r1", "host:2")
        with pytest.raises(RunBusy, match="already being driven by this process"):
            await mine.acquire("r1", "host:1")


async def test_of_many_that_want_a_run_at_once_one_gets_it(database: Database) -> None:
    """Two workers that start on the same run at the same moment never both become its owner."""
    async with Leases(database) as one, Leases(database) as two:
        for round_ in range(20):
            await add_run(database, f"r{round_}")

            async def wins(leases: Leases, run_id: str) -> bool:
                try:
                    return (await leases.acquire(run_id, "worker")).fence == 1
                except RunBusy:
                    return False

            assert await count_true(wins(leases, f"r{round_}") for leases in (one, two, one, two)) == 1


async def test_a_run_that_does_not_exist_has_no_lease(database: Database) -> None:
    """A wrong id is told plainly, and is no busy run."""
    async with Leases(database) as leases:
        with pytest.raises(UnknownThread, match="there is no run nope"):
            await leases.acquire("nope", "host:1")
        with pytest.raises(UnknownThread, match="there is no run nope"):
            await leases.request_cancel("nope")


async def test_a_lease_is_kept_as_long_as_its_owner_lives(database: Database) -> None:
    """Renewals carry an owner over any number of lease lengths."""
    await add_run(database)
    async with Leases(database, length_s=2) as mine, Leases(database, length_s=2) as theirs:
        lease = await mine.acquire("r1", "host:1")
        for _ in range(5):
            await asyncio.sleep(0.6)
            assert lease.alive(time.monotonic())
            with pytest.raises(RunBusy):
                await theirs.acquire("r1", "host:2")


async def test_an_owner_s_own_bound_counts_from_when_it_asked(database: Database) -> None:
    """The time that a renewal is on its way counts against the owner: it stops before the database lets others in."""
    await add_run(database)
    now = [100.0]
    async with Leases(database, monotonic=lambda: now[0]) as leases:
        lease = await leases.acquire("r1", "host:1")
        assert lease.valid_until == 130.0
        held = asyncio.Event()

        async def hold() -> None:
            async with database.pool.connection() as connection, connection.transaction():
                await connection.execute("SELECT FROM surestep.leases FOR SHARE")
                held.set()
                await blocked(database)
                now[0] = 117.0

        holding = asyncio.create_task(hold())
        await held.wait()
        now[0] = 110.0
        await leases.renew()
        await holding
        assert lease.valid_until == 140.0
        assert lease.alive(139.9)
        assert not lease.alive(140.0)


async def test_a_released_run_is_free_for_the_next(database: Database) -> None:
    """A paused run has no owner: whoever comes next takes it at once, with a higher fence."""
    await add_run(database)
    async with Leases(database) as mine, Leases(database) as theirs:
        first = await mine.acquire("r1", "host:1")
        assert await mine.release(first)
        assert not first.alive(time.monotonic())
        second = await theirs.acquire("r1", "host:2")
        assert (second.fence, second.taken_from) == (2, None)
        assert await mine.release(first)
        await theirs.renew()
        assert second.alive(time.monotonic())


async def test_leaving_lets_go_of_what_is_held(database: Database) -> None:
    """A process that ends in good order makes nobody wait."""
    await add_run(database)
    async with Leases(database) as mine:
        await mine.acquire("r1", "host:1")
    found = await database.fetch("SELECT owner, fence FROM surestep.leases")
    assert found == [{"owner": None, "fence": 1}]
    assert not [task for task in asyncio.all_tasks() if task.get_name() in ("presence", "lease renewals")]


async def test_an_owner_is_told_at_once_that_its_run_is_to_be_cancelled(database: Database) -> None:
    """A cancel reaches the owner without waiting for a renewal, and stays for whoever drives the run next."""
    for run_id in ("r1", "r2"):
        await add_run(database, run_id)
    async with Leases(database) as mine, Leases(database) as theirs:
        lease, other = await mine.acquire("r1", "host:1"), await mine.acquire("r2", "host:1")
        assert await theirs.request_cancel("r1") == "host:1"
        async with asyncio.timeout(2):
            await lease.cancel.wait()
        assert not other.cancel.is_set()
        await mine.release(lease)
        assert await theirs.request_cancel("r1") is None
        assert (await theirs.acquire("r1", "host:2")).cancel.is_set()


async def test_a_cancel_that_was_not_heard_is_seen_by_the_next_renewal(database: Database) -> None:
    """Where the notice is lost on the way, the flag on the lease row is not."""
    await add_run(database)
    async with Leases(database) as leases:
        lease = await leases.acquire("r1", "host:1")
        await database.execute("UPDATE surestep.leases SET cancel_requested = true")
        await leases.renew()
        assert lease.cancel.is_set()


@pytest.mark.parametrize("answer", ["none", "decided", "expired"])
async def test_an_owner_that_pauses_stays_if_one_of_its_approvals_is_answered(database: Database, answer: str) -> None:
    """A decision made before the pause, and silence that has lasted too long, are found by it: it goes on by itself."""
    await add_run(database)
    approvals, answered = Approvals(database), answer != "none"
    await approvals.record([a_request("a1"), a_request("a2", age_s=1 if answer == "expired" else -60)])
    async with Leases(database) as leases:
        lease = await leases.acquire("r1", "host:1")
        if answer == "decided":
            await approvals.decide("a2", Approve(), Principal(name="ann"))
        assert await leases.release(lease, unless_decided=["a1", "a2"]) is not answered
        assert lease.alive(time.monotonic()) is answered


async def test_no_wake_up_is_lost_between_a_decision_and_a_pause(database: Database) -> None:
    """A decision under way while its run pauses is waited for: either the owner sees it, or it sees no owner."""
    await add_run(database)
    await Approvals(database).record([a_request("a1")])
    async with Leases(database) as leases:
        lease = await leases.acquire("r1", "host:1")
        async with database.pool.connection() as deciding, deciding.transaction():
            await deciding.execute("UPDATE surestep.approvals SET status = 'approved'")
            releasing = asyncio.create_task(leases.release(lease, unless_decided=["a1"]))
            await blocked(database)
        assert await releasing is False
        assert (await database.fetch("SELECT owner FROM surestep.leases"))[0]["owner"] == "host:1"


async def test_renewals_and_the_journal_never_wait_for_each_other_in_a_ring(database: Database) -> None:
    """Both lock lease rows in one order, so that a busy process renews its many runs without deadlocks."""
    runs = [f"r{i:02}" for i in range(40)]
    for run_id in reversed(runs):
        await add_run(database, run_id)
    async with Leases(database) as leases, Journal(database) as journal:
        held = [await leases.acquire(run_id, "host:1") for run_id in sorted(runs, key=lambda name: name[::-1])]
        stop = time.monotonic() + 2.0

        async def write(lease: Lease, n: int = 0) -> None:
            while time.monotonic() < stop:
                await journal.append(a_row(n, lease.run_id, fence=lease.fence))
                n += 1

        async def renew() -> None:
            while time.monotonic() < stop:
                await leases.renew()

        async with asyncio.TaskGroup() as group:
            for job in [*(write(lease) for lease in reversed(held)), *(renew() for _ in range(3))]:
                group.create_task(job)
        assert all(lease.alive(time.monotonic()) for lease in held)
    await database.fetch("SELECT pg_stat_force_next_flush()")
    assert await database.fetch("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [
        {"deadlocks": 0}
    ]


async def test_an_owner_whose_session_breaks_names_its_new_one_at_once(database: Database) -> None:
    """A cut connection costs a living owner nothing: the lease soon names the session that replaced it."""
    await add_run(database)
    async with Leases(database) as leases:
        lease = await leases.acquire("r1", "host:1")
        before = await _session(database)
        await database.execute("SELECT pg_terminate_backend(%s)", (before[0],))

        async def renewed() -> bool:
            return await _session(database) != before

        async with asyncio.timeout(3):
            await until(renewed)
        assert lease.alive(time.monotonic())
        assert (await database.fetch("SELECT fence FROM surestep.leases"))[0]["fence"] == lease.fence


async def _session(database: Database) -> tuple[int, datetime]:
    row = (await database.fetch("SELECT backend_pid, backend_start FROM surestep.leases"))[0]
    return row["backend_pid"], row["backend_start"]
