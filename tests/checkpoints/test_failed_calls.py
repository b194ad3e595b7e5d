"""Failed calls that all workers know of, through PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from checkpoints.database import Database
from checkpoints.failed_calls import FRESH_S, KEPT, WHOLE_S, PostgresFailures
from plans.sharing import FailedCalls
from tools.spec import MOST_REPEATS


class Moved:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def counted(known: Mapping[str, FailedCalls]) -> dict[str, tuple[int, str]]:
    """How often each call has failed, and with which code last."""
    return {key: (len(calls.at), calls.code) for key, calls in known.items()}


async def test_a_failure_is_known_at_once_here_and_within_half_a_second_elsewhere(database: Database) -> None:
    """Two workers count one call's failures together; what succeeds anywhere is forgotten by both."""
    clock = Moved()
    here, elsewhere = (PostgresFailures(database, monotonic=clock) for _ in range(2))
    assert await elsewhere.known() == {}
    await here.note("k", "t", "TIMEOUT", 300)
    assert counted(await here.known()) == {"k": (1, "TIMEOUT")}
    clock.now += FRESH_S - 0.01
    assert await elsewhere.known() == {}
    clock.now += 0.01
    assert counted(await elsewhere.known()) == {"k": (1, "TIMEOUT")}
    await elsewhere.note("k", "t", "TOOL_ERROR", 300)
    await elsewhere.note("other", "t", "TIMEOUT", 300)
    clock.now += FRESH_S
    assert counted(await here.known()) == {"k": (2, "TOOL_ERROR"), "other": (1, "TIMEOUT")}
    await here.clear("k")
    assert counted(await here.known()) == {"other": (1, "TIMEOUT")}
    clock.now += FRESH_S
    assert counted(await elsewhere.known()) == {"other": (1, "TIMEOUT")}


async def test_when_it_failed_is_told_on_the_readers_own_clock(database: Database) -> None:
    """Ages come from the database, so that workers' clocks need not agree."""
    writer, late = PostgresFailures(database, monotonic=Moved()), Moved()
    await writer.note("k", "t", "TIMEOUT", 300)
    await database.execute("UPDATE surestep.failed_calls SET failed_at = ARRAY[clock_timestamp() - '40 s'::interval]")
    await writer.note("k", "t", "TIMEOUT", 300)
    late.now = 9_000.0
    (calls,) = (await PostgresFailures(database, monotonic=late).known()).values()
    assert [round(at) for at in calls.at] == [8_960, 9_000]


async def test_one_query_serves_all_calls_of_half_a_second(database: Database) -> None:
    """However many ask at once, the database is asked once."""
    clock, asked = Moved(), 0
    store = PostgresFailures(database, monotonic=clock)
    fetch = database.fetch

    async def counting(sql: str, params: Any = None) -> list[dict[str, Any]]:
        nonlocal asked
        asked += 1
        return await fetch(sql, params)

    object.__setattr__(database, "fetch", counting)
    for _ in range(3):
        await asyncio.gather(*(store.known() for _ in range(20)))
    assert asked == 1


async def test_a_reader_that_looks_seldom_misses_no_success(database: Database) -> None:
    """A call that was cleared and whose row is gone is not remembered as failing."""
    clock = Moved()
    here, elsewhere = (PostgresFailures(database, monotonic=clock) for _ in range(2))
    await here.note("k", "t", "TIMEOUT", 300)
    assert list(await elsewhere.known()) == ["k"]
    await here.clear("k")
    await database.execute("DELETE FROM surestep.failed_calls")
    clock.now += WHOLE_S
    assert await elsewhere.known() == {}


async def test_a_person_can_have_all_calls_of_a_tool_made_again(database: Database) -> None:
    """`forget` is for one tool and all its arguments, and is seen by other workers."""
    clock = Moved()
    here, elsewhere = (PostgresFailures(database, monotonic=clock) for _ in range(2))
    for key, tool in (("a", "t"), ("b", "t"), ("c", "other")):
        await here.note(key, tool, "TIMEOUT", 300)
    assert sorted(await elsewhere.known()) == ["a", "b", "c"]
    assert await here.forget("t") == 2
    assert await here.forget("t") == 0
    clock.now += FRESH_S
    assert list(await elsewhere.known()) == ["c"]
    assert list(await here.known()) == ["c"]


async def test_what_is_over_is_deleted_and_what_is_kept_is_bounded(database: Database) -> None:
    """The table holds what failed lately, and of each call no more failures than a policy can ask for."""
    store = PostgresFailures(database)
    await store.note("old", "t", "TIMEOUT", 0.0)
    for _ in range(KEPT + 3):
        await store.note("k", "t", "TIMEOUT", 300)
    rows = await database.fetch("SELECT key, cardinality(failed_at) AS n FROM surestep.failed_calls")
    assert rows == [{"key": "k", "n": KEPT}]
    assert len((await store.known())["k"].at) == KEPT == MOST_REPEATS


async def test_without_a_database_a_failure_counts_for_this_worker(database: Database) -> None:
    """An outcome is not lost because its failure could not be counted."""
    store = PostgresFailures(database, monotonic=Moved())
    assert await store.known() == {}
    await database.pool.close()
    await store.note("k", "t", "TIMEOUT", 300)
    await store.note("k", "t", "TOOL_ERROR", 300)
    assert counted(await store.known()) == {"k": (2, "TOOL_ERROR")}
    await store.clear("k")
    assert await store.known() == {}


async def test_eight_workers_lose_no_failure(database: Database) -> None:
    """Failures that are noted at the same moment are all counted."""
    stores = [PostgresFailures(database) for _ in range(8)]
    await asyncio.gather(*(store.note("k", "t", "TIMEOUT", 300) for store in stores for _ in range(4)))
    assert len((await PostgresFailures(database).known())["k"].at) == 32
