"""What tools share between workers: breaker states, cached results. By shape they fit the tools' ports."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable

from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.values import JSON

BREAKER_FRESH_S = 0.5
"""How long a breaker's state is taken as read: a call should not cost a round trip, nor a fault go unnoticed."""

PRUNE_EVERY_S = 600.0
"""How often a worker that stores results deletes those that have expired."""


class PostgresBreakers:
    """The breakers' states, one JSON object per tool. What another worker stores is seen within half a second; what is
    stored here rests on what really stands there, because a swap compares."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, dict[str, JSON] | None]] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self, tool: str) -> dict[str, JSON] | None:
        """The tool's state, possibly half a second old; None where nothing was ever stored."""
        if (known := self._fresh(tool)) is None:
            async with self._asking[tool]:  # one asks for all that wait
                if (known := self._fresh(tool)) is None:
                    known = await self._asked(tool)
        return known[1]

    def _fresh(self, tool: str) -> tuple[float, dict[str, JSON] | None] | None:
        known = self._known.get(tool)
        return known if known is not None and self._monotonic() < known[0] else None

    async def _asked(self, tool: str) -> tuple[float, dict[str, JSON] | None]:
        until = self._monotonic() + BREAKER_FRESH_S
        found = await self._database.fetch(QUERIES["breaker"], (tool,))
        self._known[tool] = known = (until, dict(found[0]["state"]) if found else None)
        return known

    async def load_all(self) -> dict[str, dict[str, JSON]]:
        """Every stored state by tool."""
        return {row["tool"]: row["state"] for row in await self._database.fetch(QUERIES["breakers"])}

    async def swap(self, tool: str, old: dict[str, JSON] | None, new: dict[str, JSON]) -> bool:
        """Store `new` if the state is still `old` (None: nothing stored yet); False, and nothing stored, if not."""
        self._known.pop(tool, None)
        asked = self._monotonic()
        if old is None:
            swapped = bool(await self._database.execute(QUERIES["first_breaker"], (tool, jsonb(new))))
        else:
            swapped = bool(await self._database.execute(QUERIES["swap_breaker"], (jsonb(new), tool, jsonb(old))))
        if swapped:
            self._known[tool] = (asked + BREAKER_FRESH_S, new)
        return swapped


class PostgresCache:
    """Results of reads by key. Ages and expiry count in the database's time. Whoever stores one also deletes what has
    expired, every ten minutes, so that nothing is left to be done apart."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._prune_at = -math.inf

    async def get(self, key: str) -> tuple[JSON, float] | None:
        """The stored value and its age in seconds; None when there is none, or it has expired."""
        found = await self._database.fetch(QUERIES["cached"], (key,))
        return (found[0]["value"], found[0]["age_s"]) if found else None

    async def put(self, key: str, tool: str, value: JSON, keep_s: float, run_id: str = "") -> None:
        """Keep a value for `keep_s` seconds, as an answer to that run. ValueError for one that cannot be stored."""
        await self._database.execute(QUERIES["cache"], (key, tool, jsonb(value), keep_s, run_id))
        if (now := self._monotonic()) >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY_S
            await self.prune()

    async def prune(self) -> int:
        """Delete what has expired, a bounded part of it at a time; gives how many entries."""
        return await self._database.execute(QUERIES["prune_cache"])
