"""Saves that share their commits: each has its own answer, and what may be sent twice is there once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.types import ERROR

from checkpoints import saves
from checkpoints.database import Database
from checkpoints.saver import PostgresSaver
from checkpoints.saves import SaveWriter
from plans.errors import DatabaseUnavailable, RunBusy
from tests.checkpoints.scenes import blocked, owned_run


@pytest.fixture
async def saver(database: Database) -> AsyncIterator[PostgresSaver]:
    """An open saver."""
    async with PostgresSaver(database) as opened:
        yield opened


async def test_many_saves_share_few_commits(
    database: Database, saver: PostgresSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while one batch commits goes with the next."""
    sent = count_batches(monkeypatch)
    await asyncio.gather(*(saver.aput(place(f"t{n}"), checkpoint(n), {}, {"value": "1"}) for n in range(100)))
    assert len(sent) <= 3
    assert len(await database.fetch("SELECT version FROM checkpoint_blobs")) == 100


async def test_a_refused_save_fails_alone(database: Database, saver: PostgresSaver) -> None:
    """In one batch: a thread that somebody drives, a value that cannot be stored, and others, which are saved."""
    await owned_run(database)
    bad = checkpoint("nul\x00")
    results = await asyncio.gather(
        saver.aput(place("fine"), checkpoint(1), {}, {"value": "1"}),
        saver.aput(place("thread of r1"), checkpoint(2), {}, {"value": "1"}),
        saver.aput(place("bad"), bad, {}, {"value": "1"}),
        saver.aput(place("fine too"), checkpoint(3), {}, {"value": "1"}),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [dict, RunBusy, psycopg.errors.UntranslatableCharacter, dict]
    stored = await database.fetch("SELECT thread_id FROM checkpoints ORDER BY thread_id")
    assert [row["thread_id"] for row in stored] == ["fine", "fine too"]


async def test_saves_of_one_row_at_once_follow_langgraphs_rules(saver: PostgresSaver) -> None:
    """The later checkpoint of one id counts; of a task's writes the first, but on special channels the last."""
    config = await saver.aput(place("t"), checkpoint(0), {}, {})
    twice = checkpoint("first")
    again: Checkpoint = {**twice, "channel_values": {"value": "second"}}
    await asyncio.gather(saver.aput(config, twice, {}, {}), saver.aput(config, again, {}, {}))
    stored = await saver.aget_tuple(place("t"))
    assert stored is not None
    assert stored.checkpoint["channel_values"] == {"value": "second"}
    await asyncio.gather(
        saver.aput_writes(stored.config, [("value", "first")], "task"),
        saver.aput_writes(stored.config, [("value", "second")], "task"),
        saver.aput_writes(stored.config, [(ERROR, "first"), (ERROR, "second")], "other"),
        saver.aput_writes(stored.config, [(ERROR, "third")], "other"),
    )
    found = await saver.aget_tuple(place("t"))
    assert found is not None
    assert sorted(found.pending_writes or []) == [("other", ERROR, "third"), ("task", "value", "first")]


async def test_a_save_is_sent_again_after_a_lost_connection(database: Database, saver: PostgresSaver) -> None:
    """Its session is ended in the middle of the statement: the save returns all the same, stored once."""
    stuck = checkpoint("value")
    config = await saver.aput(place("t"), stuck, {}, {})
    async with database.pool.connection() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM checkpoints FOR UPDATE")
        waiting = asyncio.create_task(saver.aput(place("t"), stuck, {}, {}))
        await connection.execute("SELECT pg_terminate_backend(%s)", (await blocked(database),))
        assert not waiting.done()
    assert await asyncio.wait_for(waiting, 10) == config


async def test_a_database_that_does_not_answer_is_named_in_the_end(database: Database) -> None:
    """A save is not sent for ever."""
    writer = SaveWriter(database, give_up_s=0.05)
    async with PostgresSaver(database) as saver:
        await saver.aput(place("t"), checkpoint(1), {}, {})
        saver._writer, first = writer, saver._writer
        await first.close()
        writer.open()
        async with database.pool.connection() as connection, connection.transaction():
            await connection.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(DatabaseUnavailable):
                await saver.aput(place("t"), checkpoint(2), {}, {})
        assert await saver.aput(place("t"), checkpoint(3), {}, {})


async def test_saves_beyond_the_bound_wait_for_room(
    database: Database, saver: PostgresSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the database is, only so many saves are held as bytes."""
    monkeypatch.setattr(saver._writer, "room", asyncio.Semaphore(2))
    async with database.pool.connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
        waiting = [asyncio.create_task(saver.aput(place(f"t{n}"), checkpoint(n), {}, {})) for n in range(5)]
        await blocked(database)
        assert len(saver._writer._queue) == 2
    await asyncio.gather(*waiting)
    assert len(await database.fetch("SELECT thread_id FROM checkpoints")) == 5


async def test_a_cancelled_save_does_not_hold_up_the_others(database: Database, saver: PostgresSaver) -> None:
    """Who is cancelled while waiting gets no answer; the next save does."""
    async with database.pool.connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
        cancelled = asyncio.create_task(saver.aput(place("a"), checkpoint(1), {}, {}))
        await blocked(database)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert await saver.aput(place("b"), checkpoint(2), {}, {})


async def test_a_saver_that_was_closed_says_so(database: Database) -> None:
    """No save waits for a writer that is gone."""
    async with PostgresSaver(database) as saver:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await saver.aput(place("t"), checkpoint(1), {}, {})


def count_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many saves each statement holds, from now on."""
    sent: list[int] = []

    def counted(batch: Any) -> dict[str, Any]:
        sent.append(len(batch))
        return real(batch)

    real = saves.columns
    monkeypatch.setattr(saves, "columns", counted)
    return sent


def place(thread_id: str) -> RunnableConfig:
    """Where a thread begins."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def checkpoint(value: Any) -> Checkpoint:
    """A checkpoint with one value, beside it unless it is plain text."""
    made = empty_checkpoint()
    made["channel_values"] = {"value": value if isinstance(value, str) else [value]}
    made["channel_versions"] = {"value": "1"}
    return made
