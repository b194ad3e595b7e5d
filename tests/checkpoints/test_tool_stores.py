"""What tools share between workers, through PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from checkpoints.database import Database
from checkpoints.tool_settings import PostgresSettings
from checkpoints.tool_stores import PRUNE_EVERY_S, PostgresBreakers, PostgresCache
from plans.values import canonical
from tools.ports import Ports


async def test_the_stores_fit_the_ports_of_the_tools(database: Database) -> None:
    """The tools' side takes these stores as they are; mypy holds the shapes together, this the constructor."""
    ports = Ports(PostgresBreakers(database), PostgresSettings(database), PostgresCache(database))
    assert await ports.settings.get("get_order") == {}


async def test_a_breaker_is_seen_at_once_here_within_half_a_second_elsewhere_and_never_swapped_unseen(
    database: Database,
) -> None:
    """A call costs no round trip, another worker's change is seen soon, and a stale view stores nothing."""
    now = [50.0]
    here, elsewhere = (PostgresBreakers(database, monotonic=lambda: now[0]) for _ in range(2))
    assert await elsewhere.load("t") is None
    assert await here.swap("t", None, {"status": "open"})
    assert await here.load("t") == {"status": "open"}
    now[0] = 50.4
    assert await elsewhere.load("t") is None
    assert not await elsewhere.swap("t", None, {"status": "closed"})
    assert await elsewhere.load("t") == {"status": "open"}
    assert await here.swap("t", {"status": "open"}, {"status": "half_open"})
    now[0] = 51.0
    assert await elsewhere.load("t") == {"status": "half_open"}


async def test_a_breaker_is_moved_by_one_of_those_who_saw_the_same_state(database: Database) -> None:
    """Workers that call one tool at once never overwrite each other's count."""
    breakers = PostgresBreakers(database)
    assert await breakers.load("get_order") is None
    firsts = await asyncio.gather(*(breakers.swap("get_order", None, {"failures": 1}) for _ in range(8)))
    assert sum(firsts) == 1

    async def count() -> None:
        while True:
            old = await breakers.load("get_order")
            assert old is not None
            if await breakers.swap("get_order", old, {"failures": old["failures"] + 1}):
                return

    await asyncio.gather(*(count() for _ in range(10)))
    assert await breakers.load("get_order") == {"failures": 11}
    assert await breakers.swap("other", None, {"opened_at": 1723.25})
    assert await breakers.swap("other", {"opened_at": 1723.25}, {"opened_at": None})
    assert await breakers.load_all() == {"get_order": {"failures": 11}, "other": {"opened_at": None}}


async def test_a_cached_result_comes_back_with_its_age_until_it_expires(database: Database) -> None:
    """A value, null included, is given back to the type while it is fresh, and never afterwards."""
    cache = PostgresCache(database)
    assert await cache.get("k") is None
    for value in ({"total": 1e16, "lines": [1, 1.0, None]}, None):
        await cache.put("k", "get_order", value, 60)
        await database.execute("UPDATE surestep.tool_cache SET stored_at = stored_at - '5 s'::interval")
        found = await cache.get("k")
        assert found is not None
        assert canonical(found[0]) == canonical(value)
        assert found[1] == pytest.approx(5, abs=1)
    await cache.put("k", "get_order", 1, 0.0)
    assert await cache.get("k") is None
    assert await cache.prune() == 1
    with pytest.raises(ValueError, match="holds the character"):
        await cache.put("k", "get_order", "\x00", 60)


async def test_whoever_keeps_a_result_deletes_those_that_have_expired(database: Database) -> None:
    """Every ten minutes of a worker that stores: nobody else has to think of it, and what is still good stays."""
    now = 0.0
    cache = PostgresCache(database, monotonic=lambda: now)
    await cache.put("first", "t", 1, 60)
    await cache.put("old", "t", 1, 0.0)
    await cache.put("second", "t", 1, 60)
    assert await left_in(database) == ["first", "old", "second"]
    now = PRUNE_EVERY_S
    await cache.put("third", "t", 1, 60)
    assert await left_in(database) == ["first", "second", "third"]


async def left_in(database: Database) -> list[str]:
    """The keys that the table of kept results holds."""
    return [row["key"] for row in await database.fetch("SELECT key FROM surestep.tool_cache ORDER BY key")]
