"""Tests of the stores that live in one process."""

from __future__ import annotations

from tests.tools.calls import Time
from tools.local import LocalBreakers, LocalCache, LocalSettings, local_ports


async def test_a_breaker_state_is_changed_only_from_what_it_is() -> None:
    """swap stores nothing when the state is not the expected one."""
    store = LocalBreakers()
    assert await store.load("t") is None
    assert await store.swap("t", None, {"a": 1})
    assert not await store.swap("t", None, {"a": 2})
    assert not await store.swap("t", {"a": 2}, {"a": 3})
    assert await store.swap("t", {"a": 1}, {"a": 2})
    assert await store.load_all() == {"t": {"a": 2}}


async def test_the_cache_keeps_what_was_used_last() -> None:
    """Beyond its size the entry that nobody asked for longest is gone; ages are told."""
    time = Time()
    cache = LocalCache(size=2, now=lambda: time.now)
    await cache.put("a", "t", 1, 10)
    await cache.put("b", "t", None, 10)
    time.now += 3
    assert await cache.get("a") == (1, 3)
    await cache.put("c", "t", 3, 10)
    assert await cache.get("b") is None
    assert await cache.get("a") == (1, 3)
    time.now += 7
    assert await cache.get("a") is None
    assert await cache.get("c") == (3, 7)


async def test_a_null_result_is_a_result() -> None:
    """None that was stored is told apart from nothing stored."""
    cache = LocalCache()
    await cache.put("a", "t", None, 10)
    found = await cache.get("a")
    assert found is not None
    assert found[0] is None


async def test_fresh_ports_share_nothing() -> None:
    """Two sets of ports are independent, and settings start empty."""
    one, two = local_ports(), local_ports()
    await one.breakers.swap("t", None, {"a": 1})
    assert await two.breakers.load("t") is None
    assert await LocalSettings().get("t") == {}
