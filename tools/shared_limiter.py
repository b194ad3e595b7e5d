"""The limiter over all workers: of each process one call of a tool asks the shared store, the others wait behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4
from weakref import WeakKeyDictionary

from plans.errors import DatabaseUnavailable
from plans.sharing import Asked, SlotLimits
from tools.outcome import Call, CallFailure, refused
from tools.ports import SlotStore

GRACE_S = 2.0
"""What a slot is held beyond its call's deadline before it has to be renewed."""


@dataclass
class _Door:
    """One tool's line in this process: who holds `turn` asks, and is woken when a call of ours has ended."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)


_doors: MutableMapping[asyncio.AbstractEventLoop, dict[str, _Door]] = WeakKeyDictionary()


async def enter_shared(call: Call, slots: SlotStore) -> Callable[[], None] | CallFailure:
    """What to call when the work has ended, once the call may start; else the refusal: POOL_FULL or RATE_LIMITED where
    it would take until the deadline, UNAVAILABLE where the store is gone: nobody knows then what others do."""
    doors = _doors.setdefault(asyncio.get_running_loop(), {})
    door, slot = doors.setdefault(call.tool.name, _Door()), uuid4().hex
    refusal, seen = None, Asked(granted=False)
    try:
        async with asyncio.timeout(_left(call)), door.turn:
            while not (seen := await _asked(call, slots, slot)).granted:
                if seen.rate_wait_s >= _left(call):
                    break
                await _until_asked_again(door, seen)
    except TimeoutError:
        seen = seen._replace(granted=False)
    except DatabaseUnavailable:
        said = f"whether {call.tool.name} may be called now is not known: the limits of all workers are out of reach"
        refusal = refused(call, "UNAVAILABLE", said)
    except BaseException:
        slots.give_back(slot)
        raise
    if seen.granted and refusal is None:
        return lambda: _ended(call, slots, slot, door)
    slots.give_back(slot)
    return refusal or _refused(call, seen)


async def _asked(call: Call, slots: SlotStore, slot: str) -> Asked:
    rate = call.spec.rate_limit
    limits = SlotLimits(call.spec.concurrency, rate.calls if rate else None, rate.per_s if rate else 0.0)
    return await slots.take(slot, call.tool.name, limits, min(_left(call), call.spec.timeout_s) + GRACE_S)


async def _until_asked_again(door: _Door, seen: Asked) -> None:
    door.freed.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(seen.ask_again_s):
            await door.freed.wait()


def _ended(call: Call, slots: SlotStore, slot: str, door: _Door) -> None:
    slots.give_back(slot)
    door.freed.set()
    call.ended()


def _refused(call: Call, seen: Asked) -> CallFailure:
    name = call.tool.name
    if seen.rate_wait_s > 0:
        return refused(call, "RATE_LIMITED", f"{name} may not be called more often", delay_s=seen.rate_wait_s)
    return refused(call, "POOL_FULL", f"all workers together run {call.spec.concurrency} calls of {name} already")


def _left(call: Call) -> float:
    return max(0.0, call.ctx.deadline - call.ports.clock.monotonic())
