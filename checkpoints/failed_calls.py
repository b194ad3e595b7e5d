"""Which calls failed lately, over all workers: written on failure only, read from a copy. It fits the tools' port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from checkpoints.database import Database
from checkpoints.queries import QUERIES
from plans.errors import DatabaseUnavailable
from plans.sharing import FailedCalls

FRESH_S = 0.5
"""How long the copy is taken as read: one query then serves all calls of half a second."""
OVERLAP_S = 5.0
"""What was stored so long before the last look is read again: statements commit in another order than they began."""
WHOLE_S = 30.0
"""How often the copy is read anew as a whole; what was cleared is seen for longer than that."""
CLEARED_S = 60.0
EVER_S = 1e9
KEPT = 100


class PostgresFailures:
    """Failed calls by fingerprint. What another worker notes or clears is seen within half a second. What cannot be
    stored counts for this worker alone: an outcome is not lost for its count."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._calls: dict[str, FailedCalls] = {}
        self._read_at = self._whole_at = -EVER_S
        self._asking = asyncio.Lock()

    async def known(self) -> Mapping[str, FailedCalls]:
        """The failures by fingerprint, possibly half a second old. DatabaseUnavailable when the server is gone."""
        if not self._fresh():
            async with self._asking:  # one asks for all that wait
                if not self._fresh():
                    await self._read()
        return self._calls

    async def note(self, key: str, tool: str, code: str, within_s: float) -> None:
        """An attempt has failed; it may be forgotten after `within_s` seconds."""
        given = {"key": key, "tool": tool, "code": code, "within_s": within_s, "kept": KEPT}
        try:
            (row,) = await self._database.fetch(QUERIES["note_failed_call"], given)
        except DatabaseUnavailable:
            before = self._calls.get(key, FailedCalls((), code))
            self._calls[key] = FailedCalls((*before.at, self._monotonic()), code)
        else:
            self._take(key, code, row["ages_s"])

    async def clear(self, key: str) -> None:
        """The call has succeeded."""
        self._calls.pop(key, None)
        try:
            await self._database.execute(QUERIES["clear_failed_calls"], {"key": key, "tool": None, "seen_s": CLEARED_S})
        except DatabaseUnavailable:
            return

    async def forget(self, tool: str) -> int:
        """Let every call of a tool be made again, whatever has failed before; gives how many had failed. Here that is
        so at once: the copy is read anew as a whole."""
        given = {"key": None, "tool": tool, "seen_s": CLEARED_S}
        count = await self._database.execute(QUERIES["clear_failed_calls"], given)
        self._read_at = self._whole_at = -EVER_S
        return count

    def _fresh(self) -> bool:
        return self._monotonic() < self._read_at + FRESH_S

    async def _read(self) -> None:
        asked = self._monotonic()
        whole = asked - self._whole_at >= WHOLE_S
        since_s = EVER_S if whole else asked - self._read_at + OVERLAP_S
        rows = await self._database.fetch(QUERIES["failed_calls"], {"since_s": since_s})
        if whole:
            self._calls.clear()
            self._whole_at = asked
        for row in rows:
            self._take(row["key"], row["code"], row["ages_s"])
        self._read_at = asked

    def _take(self, key: str, code: str, ages_s: Sequence[float]) -> None:
        now = self._monotonic()
        if ages_s:
            self._calls[key] = FailedCalls(tuple(now - age for age in ages_s), code)
        else:
            self._calls.pop(key, None)
