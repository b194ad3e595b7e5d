"""The journal: what is accepted is stored, many rows to a commit, and only while the run is the writer's."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from checkpoints.backlog import RUN_ROWS
from checkpoints.database import Database
from checkpoints.journal import Journal
from plans.errors import StaleOwner
from tests.checkpoints.scenes import a_row, add_run, blocked, locked, owned_run, set_fence


async def transactions(database: Database) -> int:
    """In how many transactions the journal's rows were written."""
    return int((await database.fetch("SELECT count(DISTINCT xmin::text) AS n FROM surestep.journal"))[0]["n"])


async def test_accepted_rows_are_read_back_in_the_order_of_fence_and_number(database: Database) -> None:
    """What was accepted is there, whole, in the order in which its owners numbered it."""
    await owned_run(database)
    async with Journal(database) as journal:
        rows = [a_row(2), a_row(1), a_row(3, body={"argument": 1e16, "text": "零 \U0001f600 \\u0000", "none": None})]
        for row in rows:
            await journal.append(row)
        await set_fence(database, "r1", 2)
        await journal.append(last := a_row(1, fence=2))
        read = await journal.read("r1")
    assert read == [rows[1], rows[0], rows[2], last]
    assert type(read[2].body["argument"]) is float
    assert all(row.at is not None and row.at.tzinfo is not None for row in read)
    assert await journal.read("r2") == []


async def test_rows_queued_during_a_commit_share_the_next_one(database: Database) -> None:
    """Group commit: while one batch is on its way, up to 64 rows of any runs gather for the next statement."""
    runs = [f"r{i}" for i in range(4)]
    for run_id in runs:
        await owned_run(database, run_id)
    async with Journal(database) as journal:
        async with locked(database, "r0"):
            first = await journal.submit(a_row(0, "r0"))
            await blocked(database)
            rest = [await journal.submit(a_row(n, run_id)) for n in range(1, 51) for run_id in runs]
            assert not first.done()
        await asyncio.gather(first, *rest)
        assert await transactions(database) == 1 + 4  # 200 rows: 64 + 64 + 64 + 8


async def test_a_small_artifact_is_committed_with_its_row(database: Database) -> None:
    """The artifact of a row is stored by the same statement: neither is ever there without the other."""
    await owned_run(database)
    async with Journal(database) as journal:
        await journal.append(a_row(1, content=b"[1]"))
        await journal.append(a_row(2, content=b"[1]"))
    stored = await database.fetch(
        "SELECT a.body, a.size, a.media_type FROM surestep.artifacts a JOIN surestep.journal j ON j.xmin = a.xmin"
    )
    assert stored == [{"body": b"[1]", "size": 3, "media_type": "application/json"}]


async def test_a_stale_owner_is_refused_and_the_other_runs_of_the_batch_are_not(database: Database) -> None:
    """A row whose fence is not the lease's is not stored, nor its artifact, nor its owner's later rows."""
    await owned_run(database, "mine")
    await owned_run(database, "lost", fence=2)
    async with Journal(database) as journal:
        async with locked(database, "mine"):
            gate = await journal.submit(a_row(1, "mine"))
            await blocked(database)
            stale = await journal.submit(a_row(1, "lost", fence=1, content=b"{}"))
            later = await journal.submit(a_row(2, "lost", fence=1))
            good = await journal.submit(a_row(2, "mine"))
        await asyncio.gather(gate, good)
        for refused in (stale, later):
            with pytest.raises(StaleOwner, match="no longer drives run lost: it was owner number 1"):
                await refused
        with pytest.raises(StaleOwner):
            await journal.submit(a_row(3, "lost", fence=1))
        with pytest.raises(StaleOwner):
            await journal.flush("lost")
        await journal.flush("mine")
        assert await transactions(database) == 2
        assert await journal.read("lost") == []
    assert await database.fetch("SELECT output_ref FROM surestep.artifacts") == []


async def test_a_takeover_that_commits_first_refuses_a_batch_that_waited_for_it(database: Database) -> None:
    """A batch sent before a takeover and held up by it sees the new fence, not the one at which it was sent."""
    await owned_run(database)
    async with Journal(database) as journal:
        async with locked(database, "r1") as takeover:
            future = await journal.submit(a_row(1))
            await blocked(database)
            await takeover.execute("UPDATE surestep.leases SET fence = 2 WHERE run_id = 'r1'")
        with pytest.raises(StaleOwner):
            await future
        assert await journal.read("r1") == []


async def test_nothing_is_written_to_a_run_that_nobody_drives(database: Database) -> None:
    """A paused run has no owner, so not even the owner that let it go may add to it."""
    await add_run(database)
    async with Journal(database) as journal:
        with pytest.raises(StaleOwner):
            await journal.append(a_row(1, fence=0))


async def test_the_next_owner_in_the_same_process_writes_though_the_last_one_was_refused(database: Database) -> None:
    """A refusal belongs to an owner, not to the run: with a new fence the run goes on in this process."""
    await owned_run(database, fence=2)
    async with Journal(database) as journal:
        with pytest.raises(StaleOwner):
            await journal.append(a_row(1, fence=1))
        await journal.append(a_row(1, fence=2))
        await journal.flush("r1")
        with pytest.raises(StaleOwner):
            await journal.append(a_row(2, fence=1))
        assert [row.identity for row in await journal.read("r1")] == [("r1", 2, 1)]


async def test_a_caller_that_is_cancelled_takes_no_row_back(database: Database) -> None:
    """A row once submitted is written, whoever stops listening; flush waits for it all the same."""
    await owned_run(database)
    async with Journal(database) as journal:
        async with locked(database, "r1"):
            waiting = asyncio.create_task(journal.append(a_row(1)))
            await blocked(database)
            waiting.cancel()
            await asyncio.wait({waiting})
            flush = asyncio.create_task(journal.flush("r1"))
            await asyncio.sleep(0.05)
            assert not flush.done()
        await flush
        assert [row.n for row in await journal.read("r1")] == [1]


async def test_a_run_that_is_ahead_of_the_disk_waits_and_holds_nobody_else_up(database: Database) -> None:
    """At most 64 rows of a run are unaccepted; the next one waits for room while other runs go on."""
    await owned_run(database, "fast")
    await owned_run(database, "slow")
    async with Journal(database) as journal:
        async with locked(database, "fast"):
            for n in range(RUN_ROWS):
                await journal.submit(a_row(n, "fast"))
            extra = asyncio.create_task(journal.submit(a_row(RUN_ROWS, "fast")))
            await asyncio.sleep(0.05)
            assert not extra.done()
            async with asyncio.timeout(1):
                await journal.submit(a_row(0, "slow"))
        await (await extra)
        await journal.flush("slow")
        assert len(await journal.read("fast")) == RUN_ROWS + 1


async def test_rows_enter_in_the_order_of_the_calls_even_when_they_wait_for_room(database: Database) -> None:
    """What is stored of an owner is always a beginning of what it submitted, so a crash leaves no hole."""
    await owned_run(database)
    async with Journal(database) as journal:
        await asyncio.gather(*(journal.append(a_row(n)) for n in range(300)))
        written = await database.fetch("SELECT n FROM surestep.journal ORDER BY ctid")
    assert [row["n"] for row in written] == list(range(300))


async def test_a_refusal_that_nobody_awaits_is_no_warning(database: Database) -> None:
    """Whoever flushes hears of a refusal; a future nobody looked at leaves no noise behind."""
    noise: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    await owned_run(database, fence=2)
    async with Journal(database) as journal:
        await journal.submit(a_row(1, fence=1))
        with pytest.raises(StaleOwner):
            await journal.flush("r1")
        gc.collect()
    assert noise == []


async def test_leaving_the_journal_writes_what_is_queued_and_takes_no_more(database: Database) -> None:
    """The end of a process loses no row that was submitted before it."""
    await owned_run(database)
    journal = Journal(database)
    with pytest.raises(RuntimeError, match="is closed"):
        await journal.submit(a_row(0))
    async with journal:
        futures = [await journal.submit(a_row(n)) for n in range(10)]
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(RuntimeError, match="is closed"):
        await journal.submit(a_row(11))
    assert len(await journal.read("r1")) == 10
    assert [task.get_name() for task in asyncio.all_tasks() if "journal" in task.get_name()] == []


async def test_a_journal_serves_one_event_loop(database: Database) -> None:
    """Another loop's rows are refused at once, in words, and not mixed up with this one's."""
    refused: list[str] = []

    def elsewhere() -> None:
        with pytest.raises(RuntimeError) as told:
            asyncio.run(journal.append(a_row(1)))
        refused.append(str(told.value))

    async with Journal(database) as journal:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
    assert refused == ["this journal belongs to another event loop; open one journal per loop"]


async def test_a_cancel_that_was_asked_for_is_seen_with_the_next_row(database: Database) -> None:
    """The statement that checks the fence also reads the cancel flag (rule 4)."""
    await owned_run(database)
    async with Journal(database) as journal:
        await journal.append(a_row(1))
        assert not journal.cancel_requested("r1")
        await database.execute("UPDATE surestep.leases SET cancel_requested = true")
        await journal.append(a_row(2))
        assert journal.cancel_requested("r1")
        journal.forget("r1")
        assert not journal.cancel_requested("r1")
