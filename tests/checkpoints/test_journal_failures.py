"""The journal when the line breaks, the database dies, or a row is wrong."""

from __future__ import annotations

import asyncio

import pytest

from checkpoints.backlog import BATCH_ROWS, RUN_ROWS
from checkpoints.database import Database
from checkpoints.journal import Journal
from plans.errors import DatabaseUnavailable, StaleOwner
from tests.checkpoints.bad_line import BadLine
from tests.checkpoints.scenes import a_row, blocked, locked, owned_run, until


async def test_rows_whose_answer_was_lost_are_accepted_once(database: Database) -> None:
    """A commit whose answer never came is sent again, found identical, and accepted without a second copy."""
    await owned_run(database)
    async with BadLine.to(database) as (line, far), Journal(far) as journal:
        await journal.append(a_row(1))
        line.lose_answer = True
        futures = [await journal.submit(a_row(n, content=b"%d" % n)) for n in (2, 3)]
        await asyncio.gather(*futures)
        assert line.lost == 1
        assert [row.n for row in await journal.read("r1")] == [1, 2, 3]
    written = await database.fetch("SELECT n FROM surestep.journal WHERE xmax::text <> '0'")
    assert written, "the rows were seen a second time"


async def test_a_batch_whose_server_process_is_killed_is_accepted_once(database: Database) -> None:
    """A restart of the database in the middle of a statement neither loses a row nor kills a healthy run."""
    await owned_run(database)
    async with Journal(database) as journal:
        async with locked(database, "r1"):
            futures = [await journal.submit(a_row(n)) for n in range(20)]
            pid = await blocked(database)
            await database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            await until(lambda: _another(database, pid))
        await asyncio.gather(*futures)
        assert [row.n for row in await journal.read("r1")] == list(range(20))


async def _another(database: Database, pid: int) -> bool:
    return await blocked(database) != pid


async def test_a_row_whose_answer_was_lost_is_stale_once_the_run_was_taken_over(database: Database) -> None:
    """Stale comes from the lease alone: an owner that lost the run acts on no row, stored though it is."""
    await owned_run(database)
    async with BadLine.to(database) as (line, far), Journal(far) as journal:
        await journal.append(a_row(1))
        line.lose_answer = line.cut = True
        future = await journal.submit(a_row(2))
        await until(lambda: _lost(line))
        await database.execute("UPDATE surestep.leases SET fence = 2")
        line.cut = False
        with pytest.raises(StaleOwner):
            await future
        assert [row.n for row in await journal.read("r1")] == [1, 2]


async def _lost(line: BadLine) -> bool:
    return line.lost == 1


async def test_another_row_with_a_used_number_is_an_error(database: Database) -> None:
    """A number used twice with other content is refused loudly; the first row stays as it is."""
    await owned_run(database)
    async with Journal(database) as journal:
        await journal.append(a_row(1))
        await journal.append(a_row(1))
        with pytest.raises(RuntimeError, match="row 1 of owner 1 of run r1 exists with other content"):
            await journal.append(a_row(1, body={"n": 2}))
        assert [row.body for row in await journal.read("r1")] == [{"n": 1}]


async def test_what_follows_a_refused_row_is_refused_too(database: Database) -> None:
    """A run stops at its first refused row, even if the database would take the next one of the same batch."""
    await owned_run(database)
    async with Journal(database) as journal:
        await journal.append(a_row(1))
        async with locked(database, "r1"):
            gate = await journal.submit(a_row(2))
            await blocked(database)
            rows = (a_row(3), a_row(1, body={"n": 2}), a_row(4))
            before, refused, after = [await journal.submit(row) for row in rows]
        await asyncio.gather(gate, before)
        for future in (refused, after):
            with pytest.raises(RuntimeError, match="row 1 of owner 1 of run r1 exists with other content"):
                await future
        with pytest.raises(RuntimeError, match="exists with other content"):
            await journal.submit(a_row(5))


async def test_a_row_that_waits_behind_a_refused_one_is_not_even_stored(database: Database) -> None:
    """An intent may be queued before the results it rests on are accepted: when one of them is refused, the intent of
    a later commit is neither accepted nor in the table, where a resume would find it without what it rests on."""
    await owned_run(database)
    await owned_run(database, "other")
    async with Journal(database) as journal:
        async with locked(database, "other"):
            await journal.submit(a_row(0, "other"))
            await blocked(database)
            for n in range(1, BATCH_ROWS):
                await journal.submit(a_row(n, "other"))
            refused = await journal.submit(a_row(1, attempt=2**31))  # the last row of the next commit
            intent = await journal.submit(a_row(2))
        for future in (refused, intent):
            with pytest.raises(RuntimeError, match="the database refuses rows of run r1: integer out of range"):
                await future
        await journal.flush("other")
        assert await journal.read("r1") == []


async def test_a_body_that_cannot_be_stored_is_refused_before_it_is_queued(database: Database) -> None:
    """One unclean value costs its own caller an error and nobody else anything."""
    await owned_run(database)
    async with Journal(database) as journal:
        with pytest.raises(
            ValueError, match=r"the outcome row of step s1 cannot be stored: a\[0\] holds the character"
        ):
            await journal.submit(a_row(1, body={"a": ["\x00"]}))
        await journal.append(a_row(1))


async def test_a_row_that_the_database_refuses_fails_its_own_run_only(database: Database) -> None:
    """What the database will not take stops one run; the runs that shared its statement go on."""
    await owned_run(database, "bad")
    await owned_run(database, "good")
    async with Journal(database) as journal:
        async with locked(database, "good"):
            gate = await journal.submit(a_row(0, "good"))
            await blocked(database)
            refused = await journal.submit(a_row(1, "bad", attempt=2**31))
            good = await journal.submit(a_row(1, "good"))
        await asyncio.gather(gate, good)
        with pytest.raises(RuntimeError, match="the database refuses rows of run bad: integer out of range"):
            await refused
        await journal.flush("good")


async def test_a_database_that_stays_away_is_given_up(database: Database) -> None:
    """Rows that no database takes fail in plain words after a time, and the journal works again afterwards."""
    await owned_run(database)
    async with BadLine.to(database) as (line, far), Journal(far, give_up_s=0.3) as journal:
        line.cut = True
        with pytest.raises(DatabaseUnavailable, match="cannot connect to PostgreSQL at"):
            await journal.append(a_row(1))
        with pytest.raises(DatabaseUnavailable):
            await journal.flush("r1")
        line.cut = False
        journal.forget("r1")
        await journal.append(a_row(2))
        assert [row.n for row in await journal.read("r1")] == [2]


async def test_a_journal_closes_though_its_database_is_gone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a process does not wait for ever; what was not accepted is said to be so."""
    monkeypatch.setattr("checkpoints.journal.CLOSE_S", 0.2)
    await owned_run(database)
    async with BadLine.to(database) as (line, far):
        line.cut = True
        async with Journal(far) as journal:
            futures = [await journal.submit(a_row(n)) for n in range(RUN_ROWS)]
            waiting = asyncio.create_task(journal.append(a_row(RUN_ROWS)))
            await asyncio.sleep(0)
        for refused in (*futures, waiting):
            with pytest.raises(DatabaseUnavailable, match="closed before this row was accepted"):
                await refused


async def test_a_row_commits_inside_the_transaction_of_its_tool(database: Database) -> None:
    """A transactional tool's writes and its outcome row, artifact included, are stored together or not at all."""
    await owned_run(database)
    await database.execute("CREATE TABLE tickets (id int)")
    async with Journal(database) as journal:
        sql, params = journal.statement_for(a_row(1, content=b"{}"))
        for keep in (False, True):
            async with database.pool.connection() as connection, connection.transaction(force_rollback=not keep):
                await connection.execute("INSERT INTO tickets VALUES (1)")
                assert await (await connection.execute(sql, params)).fetchall() == [{"n": 1}]
            counts = await database.fetch(
                "SELECT (SELECT count(*) FROM tickets) AS tickets, (SELECT count(*) FROM surestep.journal) AS rows,"
                " (SELECT count(*) FROM surestep.artifacts) AS artifacts"
            )
            assert counts == [dict.fromkeys(("tickets", "rows", "artifacts"), int(keep))]
        assert await journal.find("r1", 1, 1) == a_row(1)
        assert await database.fetch(sql, params) == [{"n": 1}]
        await journal.append(a_row(2))


async def test_a_stale_owner_s_row_is_not_stored_inside_a_transaction_either(database: Database) -> None:
    """The statement gives no row when the fence has moved on, by which the tool's transaction is rolled back."""
    await owned_run(database, fence=2)
    async with Journal(database) as journal:
        assert await database.fetch(*journal.statement_for(a_row(1, content=b"{}"))) == []
        assert await journal.read("r1") == []
    assert await database.fetch("SELECT output_ref FROM surestep.artifacts") == []


async def test_looking_for_a_row_waits_for_a_transaction_that_may_still_commit_it(database: Database) -> None:
    """After a lost connection, whether an outcome was committed is said only when nothing can change it any more."""
    await owned_run(database)
    async with Journal(database) as journal:
        async with database.pool.connection() as connection, connection.transaction():
            await connection.execute(*journal.statement_for(a_row(1)))
            looking = asyncio.create_task(journal.find("r1", 1, 1))
            await blocked(database)
            assert not looking.done()
        assert await looking == a_row(1)
        assert await journal.find("r1", 1, 2) is None
