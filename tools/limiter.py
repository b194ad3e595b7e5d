"""Sixth layer: how many calls of a tool run at once, and how many start in a while, over all runs of a process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from tools.outcome import Call, Outcome, Proceed, refused
from tools.spec import RateLimit


@dataclass
class _Limits:
    """The counters of one event loop."""

    slots: dict[tuple[str, int], asyncio.Semaphore] = field(default_factory=dict)
    starts: dict[str, deque[float]] = field(default_factory=dict)


_limits: MutableMapping[asyncio.AbstractEventLoop, _Limits] = WeakKeyDictionary()


async def limit(call: Call, proceed: Proceed) -> Outcome:
    """Wait for a free slot, then for the rate. POOL_FULL or RATE_LIMITED where that would take until the deadline. The
    slot is given back when the work has really ended: a hung call still occupies its tool."""
    if call.spec.concurrency is None and call.spec.rate_limit is None:
        return await proceed(call)
    limits = _limits.setdefault(asyncio.get_running_loop(), _Limits())
    release = await _slot(call, limits)
    if release is None:
        most = call.spec.concurrency
        return refused(call, "POOL_FULL", f"{most} calls of {call.tool.name} run already, and none ended in time")
    try:
        wait = await _turn(call, limits, call.spec.rate_limit) if call.spec.rate_limit is not None else None
    except BaseException:
        release()
        raise
    if wait is not None:
        release()
        return refused(call, "RATE_LIMITED", f"{call.tool.name} may not be called more often", delay_s=wait)
    return await proceed(replace(call, ended=release))


async def _slot(call: Call, limits: _Limits) -> Callable[[], None] | None:
    if call.spec.concurrency is None:
        return call.ended
    slots = limits.slots.setdefault((call.tool.name, call.spec.concurrency), asyncio.Semaphore(call.spec.concurrency))
    try:
        async with asyncio.timeout(max(0.0, call.ctx.deadline - call.ports.clock.monotonic())):
            await slots.acquire()
    except TimeoutError:
        return None
    return slots.release


async def _turn(call: Call, limits: _Limits, rate: RateLimit) -> float | None:
    """Wait for this call's turn; None when it has come, else the seconds until it would, past the deadline."""
    now = call.ports.clock.monotonic()
    starts = limits.starts.setdefault(call.tool.name, deque())
    while starts and starts[0] <= now - rate.per_s:
        starts.popleft()
    at = now if len(starts) < rate.calls else max(now, starts[-rate.calls] + rate.per_s)
    if at >= call.ctx.deadline and at > now:
        return at - now
    starts.append(at)
    if at > now:
        await call.ports.clock.sleep(at - now)
    return None
