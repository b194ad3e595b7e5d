"""Slots and starts of tools' calls over all workers, in the database's time. It fits the tools' port.

A slot is a row with its worker's name and an expiry: its call's deadline, or half a minute if that is sooner. What
still runs is renewed, a thread that hangs included. A worker that dies leaves its slots until they expire, or until
somebody on its machine sees that it is dead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from checkpoints.background import stop
from checkpoints.database import Database
from checkpoints.queries import QUERIES
from checkpoints.workers import known_dead
from plans.errors import DatabaseUnavailable
from plans.sharing import Asked, SlotLimits

HOLD_S = 30.0
"""How long a slot outlives the last sign of its worker, at most."""
RENEW_EVERY_S = 5.0
WAITING_S = 3.0
"""How long a place in the line outlives the last question."""
ASK_EVERY_S = 0.05
"""How often the first of the line asks; those behind it ask less often, and never less than once a second."""
ASK_AT_LEAST_EVERY_S = 1.0
LOOK_EVERY_S = 1.0
"""How often one other worker is looked at, whether it is dead."""


class PostgresSlots:
    """A context manager: while it is open, slots are renewed and given back in the background."""

    def __init__(
        self,
        database: Database,
        worker: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        hold_s: float = HOLD_S,
    ) -> None:
        self._database = database
        self._worker = worker
        self._monotonic = monotonic
        self._hold_s = hold_s
        self._held: dict[str, tuple[str, float]] = {}
        self._freed: set[str] = set()
        self._looked: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._asking: set[asyncio.Task[Asked]] = set()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._keeping = asyncio.create_task(self._keep(), name="slots")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """What is still held stays until it expires: a thread of this process may still be at it."""
        await stop(self._keeping)
        if self._asking:
            await asyncio.wait(self._asking)
        await self._send()

    async def take(self, slot: str, tool: str, limits: SlotLimits, hold_s: float) -> Asked:
        """Take a slot and a start, if both are free and nobody who waits came first. DatabaseUnavailable when the
        server is gone. Who is cancelled meanwhile gives the slot back as soon as it is known to be taken."""
        asking = asyncio.create_task(self._take(slot, tool, limits, min(hold_s, self._hold_s)))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(lambda asked: self._abandoned(slot, asked))
            raise

    def give_back(self, slot: str) -> None:
        """Free the slot, or leave the place among those that wait. Never waits, never fails."""
        self._held.pop(slot, None)
        self._freed.add(slot)
        self._wake.set()

    async def _take(self, slot: str, tool: str, limits: SlotLimits, hold_s: float) -> Asked:
        asked = self._monotonic()
        row = await self._one_asked(slot, tool, limits, hold_s)
        if not row["granted"] and await self._bury(row["holders"] or ()):
            row = await self._one_asked(slot, tool, limits, hold_s)
        if row["granted"]:
            self._held[slot] = (tool, asked + hold_s)
            return Asked(granted=True)
        least = max(row["rate_wait_s"], ASK_EVERY_S * (1 + row["ahead"]))
        return Asked(False, row["rate_wait_s"], min(least, ASK_AT_LEAST_EVERY_S))

    async def _one_asked(self, slot: str, tool: str, limits: SlotLimits, hold_s: float) -> dict[str, Any]:
        """What has been freed here travels along: it is free for this question."""
        given = {"slot": slot, "tool": tool, "worker": self._worker, "hold_s": hold_s, "waiting_s": WAITING_S}
        freed = self._freed - {slot}
        statements: list[tuple[str, dict[str, Any]]] = [(QUERIES["lock_tool_slots"], {"tool": tool})]
        if freed:
            statements.append((QUERIES["give_slots_back"], {"slots": list(freed)}))
        rows = await self._database.together([*statements, (QUERIES["take_slot"], {**given, **limits._asdict()})])
        self._freed -= freed
        return rows[-1][0]

    def _abandoned(self, slot: str, asked: asyncio.Task[Asked]) -> None:
        if not asked.cancelled():
            asked.exception()
        self.give_back(slot)

    async def _bury(self, holders: Sequence[str]) -> bool:
        """Free the slots of those workers that are known to be dead; whether there were any."""
        now = self._monotonic()
        dead = []
        for worker in holders:
            if worker != self._worker and now - self._looked.get(worker, -LOOK_EVERY_S) >= LOOK_EVERY_S:
                self._looked[worker] = now
                if await asyncio.to_thread(known_dead, worker):
                    dead.append(worker)
        if not dead:
            return False
        return await self._database.execute(QUERIES["free_slots_of_the_dead"], {"workers": dead}) > 0

    async def _keep(self) -> None:
        renew_at = self._monotonic() + RENEW_EVERY_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, renew_at - self._monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            if self._monotonic() >= renew_at:
                await self._renew()
                renew_at = self._monotonic() + RENEW_EVERY_S
            if self._freed and not await self._send():
                await asyncio.sleep(ASK_AT_LEAST_EVERY_S)
                self._wake.set()

    async def _send(self) -> bool:
        """Give back what was freed; False when the database is gone, and it is tried again."""
        freed = set(self._freed)
        if freed:
            try:
                await self._database.execute(QUERIES["give_slots_back"], {"slots": list(freed)})
            except DatabaseUnavailable:
                return False
            self._freed -= freed
        return True

    async def _renew(self) -> None:
        soon = self._monotonic() + 2 * RENEW_EVERY_S
        due = {slot: tool for slot, (tool, until) in self._held.items() if until < soon}
        if not due:
            return
        asked = self._monotonic()
        given = {"slots": list(due), "tools": list(due.values()), "worker": self._worker, "hold_s": self._hold_s}
        try:
            await self._database.execute(QUERIES["renew_slots"], given)
        except DatabaseUnavailable:
            return
        for slot, tool in due.items():
            if slot in self._held:
                self._held[slot] = (tool, asked + self._hold_s)
            else:  # given back meanwhile, and perhaps made anew by this statement
                self._freed.add(slot)
                self._wake.set()
