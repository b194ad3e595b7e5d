"""Checkpoints and fences: who no longer drives a thread saves nothing more of it, and who never did only where nobody
drives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint

from checkpoints.database import Database
from checkpoints.fences import Fence, Fences, fences_of
from checkpoints.saver import PostgresSaver
from plans.errors import RunBusy, StaleOwner
from tests.checkpoints.scenes import add_run, owned_run, set_fence

THREAD = "thread of r1"


class Worker:
    """A process of its own: its saver, and its table of fences."""

    def __init__(self, saver: PostgresSaver, fences: Fences) -> None:
        self.saver, self.fences = saver, fences
        self.config: RunnableConfig = place(THREAD)

    def drives(self, fence: int, run_id: str = "r1") -> None:
        """A session of this process took the lease."""
        self.fences.enter(THREAD, run_id, fence)

    def lets_go(self, fence: int, run_id: str = "r1") -> None:
        """That session has ended."""
        self.fences.let_go(THREAD, run_id, fence)

    async def reads(self) -> Any:
        """The newest value of the thread; saves go on from there."""
        found = await self.saver.aget_tuple(place(THREAD))
        self.config = found.config if found else place(THREAD)
        return found and found.checkpoint["channel_values"]["word"]

    async def saves(self, word: str) -> None:
        """One more checkpoint, newer than all there are."""
        self.config = await self.saver.aput(self.config, checkpoint(word), {}, {})

    async def writes(self, word: str) -> None:
        """What a task has written, on the last checkpoint that this worker knows."""
        await self.saver.aput_writes(self.config, [("word", word)], f"task {word}")


@pytest.fixture
async def workers(database: Database) -> AsyncIterator[tuple[Worker, Worker]]:
    """Two processes on one database."""
    async with AsyncExitStack() as stack:
        tables = Fences(), Fences()
        savers = [await stack.enter_async_context(PostgresSaver(database, fences=table)) for table in tables]
        yield Worker(savers[0], tables[0]), Worker(savers[1], tables[1])


async def test_a_worker_that_was_replaced_saves_nothing_more(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """A newer checkpoint of an older owner is refused, and the thread's state does not go back."""
    old, new = workers
    await owned_run(database, fence=1)
    old.drives(1)
    await old.saves("one")
    await set_fence(database, "r1", 2)
    new.drives(2)
    assert await new.reads() == "one"
    await new.saves("two")
    with pytest.raises(StaleOwner, match="owner number 1"):
        await old.saves("late")
    with pytest.raises(StaleOwner):
        await old.writes("late")
    assert await new.reads() == "two"
    assert await database.fetch("SELECT * FROM checkpoint_writes") == []


async def test_the_last_checkpoint_is_saved_after_the_run_was_let_go(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """LangGraph saves once more when the last node has ended: nobody has taken over, so it is accepted."""
    old, _ = workers
    await owned_run(database, fence=1)
    old.drives(1)
    await old.saves("one")
    old.lets_go(1)
    await database.execute("UPDATE surestep.leases SET owner = NULL, expires_at = NULL")
    await old.saves("last")
    assert await old.reads() == "last"


async def test_the_belated_end_of_a_drive_is_refused_when_another_process_went_on(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """Let go, answered elsewhere, let go again: the first drive's last checkpoint would be the newest."""
    old, new = workers
    await owned_run(database, fence=1)
    old.drives(1)
    await old.saves("one")
    old.lets_go(1)
    await set_fence(database, "r1", 2)
    new.drives(2)
    with pytest.raises(RunBusy, match="somebody"):
        await old.saves("late")
    await new.reads()
    await new.saves("two")
    await database.execute("UPDATE surestep.leases SET owner = NULL, expires_at = NULL")
    with pytest.raises(StaleOwner):
        await old.saves("later")
    assert await new.reads() == "two"


async def test_a_server_may_begin_a_drive_where_it_has_driven_before(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """Its first checkpoints come before any node has taken the lease: on the newest one they are accepted."""
    old, new = workers
    await owned_run(database, fence=1)
    old.drives(1)
    await old.saves("one")
    old.lets_go(1)
    await set_fence(database, "r1", 2)
    new.drives(2)
    await new.reads()
    await new.saves("two")
    await database.execute("UPDATE surestep.leases SET owner = NULL, expires_at = NULL")
    await old.reads()
    await old.writes("answer")
    await old.saves("three")
    assert await new.reads() == "three"


async def test_a_thread_of_which_a_process_knows_nothing_is_saved_while_nobody_drives_it(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """No run, a run without an owner, and one whose lease has run out are in nobody's way; a living owner is."""
    stranger, _ = workers
    await stranger.saves("no run")
    await add_run(database)
    await stranger.saves("no owner")
    await set_fence(database, "r1", 1)
    with pytest.raises(RunBusy, match="r1"):
        await stranger.saves("driven")
    await database.execute("UPDATE surestep.leases SET expires_at = clock_timestamp()")
    await stranger.saves("expired")
    assert await stranger.reads() == "expired"


async def test_an_older_run_of_a_thread_saves_nothing_once_a_later_one_was_driven(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """A finished run keeps its fence, but the thread is the next run's."""
    old, new = workers
    await owned_run(database, "r1", fence=1)
    old.drives(1)
    await old.saves("one")
    await add_run(database, "r2")
    await database.execute("UPDATE surestep.runs SET thread_id = %s", (THREAD,))
    await old.saves("still alone")
    await set_fence(database, "r2", 1)
    new.drives(1, "r2")
    await new.reads()
    await new.saves("next goal")
    with pytest.raises(StaleOwner):
        await old.saves("late")
    assert await new.reads() == "next goal"


async def test_a_driven_thread_is_not_deleted_copied_over_or_pruned_by_others(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """RunBusy, and nothing is gone; the driver itself may, and so may anybody once nobody drives it."""
    owner, other = workers
    await owned_run(database, fence=1)
    owner.drives(1)
    await owner.saver.aput(place(THREAD), checkpoint("one"), {"run_id": "langgraph run"}, {})
    await other.saver.aput(place("source"), checkpoint("other"), {}, {})
    for refused in (
        other.saver.adelete_thread(THREAD),
        other.saver.adelete_for_runs(["langgraph run"]),
        other.saver.acopy_thread("source", THREAD),
        other.saver.aprune([THREAD], strategy="delete"),
        other.saver.aprune([THREAD]),
    ):
        with pytest.raises(RunBusy, match="somebody"):
            await refused
    assert await other.reads() == "one"
    assert len(await database.fetch("SELECT thread_id FROM checkpoints WHERE thread_id = %s", (THREAD,))) == 1
    await owner.saver.adelete_for_runs(["langgraph run"])
    assert await owner.reads() is None
    await owner.saves("two")
    await database.execute("UPDATE surestep.leases SET owner = NULL, expires_at = NULL")
    await other.saver.adelete_thread(THREAD)
    assert await other.reads() is None


def test_a_table_forgets_the_threads_that_were_let_go_longest_ago_and_no_living_one() -> None:
    """The number of remembered threads is bounded, and what is driven now is never among the forgotten."""
    fences = Fences(most=2)
    for name in ("a", "b", "c", "d"):
        fences.enter(name, f"run {name}", 1)
    for name in ("a", "b", "c"):
        fences.let_go(name, f"run {name}", 1)
        fences.of("a")
    assert fences.of("b") is None
    assert fences.of("a") == Fence("run a", 1, live=False)
    assert fences.of("d") == Fence("run d", 1)


def test_the_end_of_an_older_session_leaves_the_next_one_of_the_thread_alone() -> None:
    """Sessions of a thread may end late; the last that began counts."""
    fences = Fences()
    fences.enter("t", "r", 1)
    fences.enter("t", "r", 2)
    fences.let_go("t", "r", 1)
    assert fences.of("t") == Fence("r", 2)


def test_saver_and_engine_of_one_process_meet_in_one_table_per_database() -> None:
    """A server opens them apart; two databases have nothing to do with each other."""
    assert fences_of("postgresql://here/one") is fences_of("postgresql://here/one")
    assert fences_of("postgresql://here/one") is not fences_of("postgresql://here/two")


def place(thread_id: str) -> RunnableConfig:
    """Where a thread begins."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def checkpoint(word: str) -> Checkpoint:
    """A checkpoint with one value."""
    made = empty_checkpoint()
    made["channel_values"] = {"word": word}
    made["channel_versions"] = {"word": "1"}
    return made


async def test_the_beginning_of_a_drive_that_a_node_has_entered_meanwhile_is_that_drive_s_own(
    database: Database, workers: tuple[Worker, Worker]
) -> None:
    """LangGraph saves a drive's first checkpoint in the background: the lease may be ours by then, its fence not here
    yet. It is saved under that fence; another process's is refused all the same."""
    ours, theirs = workers
    await owned_run(database, fence=1)
    with pytest.raises(RunBusy):
        await theirs.saves("theirs")
    with ours.fences.taking("r1"):
        first = asyncio.create_task(ours.saves("first"))
        done, _ = await asyncio.wait({first}, timeout=0.3)
        assert not done
        ours.drives(1)
    await asyncio.wait_for(first, 10)
    assert await ours.reads() == "first"


@pytest.mark.parametrize("over", [False, True])
async def test_what_a_drive_was_begun_with_may_come_after_its_next_checkpoint(
    database: Database, workers: tuple[Worker, Worker], over: bool
) -> None:
    """LangGraph saves writes in the background, an answer too: when they are there the drive may have gone on, and be
    over. They hang on the checkpoint that they name, and the newest stays what it is."""
    ours, _ = workers
    await owned_run(database, fence=1)
    ours.drives(1)
    await ours.saves("one")
    ours.lets_go(1)
    await set_fence(database, "r1", 2)
    with ours.fences.taking("r1"):
        answer = asyncio.create_task(ours.writes("answer"))
        done, _ = await asyncio.wait({answer}, timeout=0.3)
        assert not done
        ours.drives(2)
        await ours.saves("two")
        if over:
            ours.lets_go(2)
    await asyncio.wait_for(answer, 10)
    assert await ours.reads() == "two"
