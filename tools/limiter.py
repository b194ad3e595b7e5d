"""Sixth layer: how many calls of a tool run at once, and how many start in a while, for all runs that it counts over.

Within a process the count belongs to the event loop, as an engine does; over all workers it is in their database
(`tools/shared_limiter.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from tools.outcome import Call, CallFailure, Outcome, Proceed, refused
from tools.shared_limiter import enter_shared
from tools.spec import RateLimit

FOLLOW_S = 1.0
"""How long a call that waits for the rate sleeps at most before it looks whether the rate has changed."""


async def limit(call: Call, proceed: Proceed) -> Outcome:
    """Wait in line for a free slot and for the rate. POOL_FULL or RATE_LIMITED where that would take until the
    deadline. The slot is given back when the work has really ended: a hung call still occupies its tool."""
    if call.ports.slots is not None and call.spec.limit_scope == "workers":
        entered = await enter_shared(call, call.ports.slots)
        return await proceed(replace(call, ended=entered)) if callable(entered) else entered
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    gate = gates.get(call.tool.name)
    if gate is None:
        if call.spec.concurrency is None and call.spec.rate_limit is None:
            return await proceed(call)
        gate = gates[call.tool.name] = Gate()
    gate.follow(call)
    refusal = await gate.enter(call)
    return refusal or await proceed(replace(call, ended=lambda: gate.leave(call)))


@dataclass
class Gate:
    """One tool's line. Limits that were changed while running count for all who wait once a call knows of them; calls
    that have begun before there was any limit are not counted."""

    most: float = math.inf
    rate: RateLimit | None = None
    running: int = 0
    _known_at: float = -math.inf
    _starts: deque[float] = field(default_factory=deque)
    _line: deque[asyncio.Event] = field(default_factory=deque)

    def follow(self, call: Call) -> None:
        """Take over what this call knows of the limits, unless another one has known later ones."""
        if call.asked_at >= self._known_at:
            self._known_at = call.asked_at
            self.most, self.rate = call.spec.concurrency or math.inf, call.spec.rate_limit
            self._wake_first()

    async def enter(self, call: Call) -> CallFailure | None:
        """Stand in line until this call may start; the refusal where it may not before its deadline."""
        now = call.ports.clock.monotonic()
        if not self._line and self.running < self.most and self._turn_in(now) <= 0:
            self._start(now)
            return None
        wait = self._turn_in(now, len(self._line))
        if wait > 0 and now + wait >= call.ctx.deadline:
            return _too_often(call, wait)
        ticket = asyncio.Event()
        self._line.append(ticket)
        try:
            return await self._wait(call, ticket)
        finally:
            self._line.remove(ticket)
            self._wake_first()

    def leave(self, call: Call) -> None:
        """The work of a call has ended."""
        self.running -= 1
        self._wake_first()
        call.ended()

    async def _wait(self, call: Call, ticket: asyncio.Event) -> CallFailure | None:
        clock, deadline = call.ports.clock, call.ctx.deadline
        while True:
            now = clock.monotonic()
            has_slot, wait = self.running < self.most, self._turn_in(now)
            if ticket is self._line[0] and has_slot:
                if wait <= 0:
                    self._start(now)
                    return None
                if now + wait >= deadline:
                    return _too_often(call, wait)
                await clock.sleep(min(wait, FOLLOW_S))
                continue
            ticket.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, deadline - now)):
                    await ticket.wait()
                continue
            return self._late(call)

    def _late(self, call: Call) -> CallFailure:
        wait = self._turn_in(call.ports.clock.monotonic())
        if self.running < self.most and wait > 0:
            return _too_often(call, wait)
        return none_ended(call)

    def _turn_in(self, now: float, ahead: int = 0) -> float:
        """Seconds until the rate allows a start behind so many others, if each of them starts as soon as it may."""
        if self.rate is None:
            return 0.0
        rounds, place = divmod(ahead, self.rate.calls)
        nth = self.rate.calls - place
        wait = self._starts[-nth] + self.rate.per_s - now if nth <= len(self._starts) else 0.0
        return max(0.0, wait) + rounds * self.rate.per_s

    def _start(self, now: float) -> None:
        self.running += 1
        if self.rate is not None:
            self._starts.append(now)
            while len(self._starts) > self.rate.calls:
                self._starts.popleft()

    def _wake_first(self) -> None:
        if self._line:
            self._line[0].set()


_gates: MutableMapping[asyncio.AbstractEventLoop, dict[str, Gate]] = WeakKeyDictionary()


def none_ended(call: Call) -> CallFailure:
    """The refusal of a call for which no slot became free."""
    most = call.spec.concurrency
    return refused(call, "POOL_FULL", f"{most} calls of {call.tool.name} run already, and none ended in time")


def _too_often(call: Call, wait: float) -> CallFailure:
    return refused(call, "RATE_LIMITED", f"{call.tool.name} may not be called more often", delay_s=wait)
