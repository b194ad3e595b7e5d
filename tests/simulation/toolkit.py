"""The tools of the simulated world: each kind of effect, with the failures that the plot has for it."""

from __future__ import annotations

import asyncio
from typing import Any

from plans.failure import ToolFailure
from tests.simulation.plot import TIMEOUT_S
from tests.simulation.world import TOOL_LIMITS, Call, World
from tools.context import ToolContext
from tools.registry import Registry, Toolkit

ONCE = {"max_attempts": 1}
NEVER_OPEN = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}

kit = Toolkit("world")
stage: list[World] = []
"""The world that is on, one at a time."""


def _read(name: str, **declared: Any) -> None:
    async def read(ctx: ToolContext, given: Any = None) -> Any:
        call = stage[-1].begin(name, ctx, {"given": given})
        try:
            await _take_time(call)
            return stage[-1].value(call)
        finally:
            stage[-1].end(call)

    options = {"breaker": NEVER_OPEN, "retry": ONCE, "timeout_s": TIMEOUT_S, **declared}
    kit.add(read, name=name, description=name, effect="read", **options)


async def _take_time(call: Call) -> None:
    """Be as long as the plot says, and fail as it says, before anything has happened."""
    turn, seconds = stage[-1].plot.turn(call.unit, call.tool, call.number)
    await asyncio.sleep(seconds)
    if turn == "soft":
        raise ToolFailure("UNAVAILABLE", "not now")
    if turn == "hard":
        raise ToolFailure("NOT_FOUND", "never here")


_read("look", fallbacks=({"tool": "glance"},))
_read("glance")
_read("scan", concurrency=TOOL_LIMITS["scan"], breaker={"in_a_row": 3})
_read("tally", retry={"max_attempts": 2, "initial_interval": 0.25, "jitter": 0.1})


@kit.tool(effect="transactional", breaker=NEVER_OPEN, retry=ONCE, timeout_s=TIMEOUT_S)
async def note(ctx: ToolContext, by: str, given: Any = None) -> Any:
    """Write a row of the world, in the transaction that its outcome commits with."""
    call = stage[-1].begin("note", ctx, {"by": by, "given": given})
    try:
        value = stage[-1].value(call)
        await ctx.connection.execute("world", {"unit": call.unit, "key": call.key, "value": value})
        await _take_time(call)
        return value
    finally:
        stage[-1].end(call)


async def _outside(name: str, ctx: ToolContext, by: str, given: Any) -> Any:
    """An effect elsewhere: the request is on its way at once, and arrives whatever becomes of who has sent it."""
    world = stage[-1]
    call = world.begin(name, ctx, {"by": by, "given": given})
    try:
        turn, seconds = world.plot.turn(call.unit, call.tool, call.number)
        if turn in ("soft", "hard"):
            await _take_time(call)
        value = world.truth(call.key) if name == "book" and world.truth(call.key) else world.value(call)
        if turn != "hang":
            world.post(call, value, min(seconds, TIMEOUT_S / 2) / 2)
        await asyncio.sleep(seconds)
        return world.truth(call.key) if name == "book" else value
    finally:
        world.end(call)


async def _probe(key: str) -> Any:
    world = stage[-1]
    await asyncio.sleep(0.1)
    if world.plot.chance("probe", key).random() < 0.3:
        raise ToolFailure("UNAVAILABLE", "nobody can tell now")
    return world.truth(key)


@kit.tool(effect="idempotent", breaker=NEVER_OPEN, retry={"max_attempts": 2, "jitter": 0.0}, timeout_s=TIMEOUT_S)
async def book(ctx: ToolContext, by: str, given: Any = None) -> Any:
    """An effect that the other side does once for one key."""
    return await _outside("book", ctx, by, given)


@kit.tool(effect="irreversible", breaker=NEVER_OPEN, timeout_s=TIMEOUT_S)
async def send(ctx: ToolContext, by: str, given: Any = None) -> Any:
    """An effect that nobody can ask about."""
    return await _outside("send", ctx, by, given)


@kit.tool(effect="irreversible", breaker=NEVER_OPEN, timeout_s=TIMEOUT_S, probe=_probe)
async def wire(ctx: ToolContext, by: str, given: Any = None) -> Any:
    """An effect that can be asked about, mostly."""
    return await _outside("wire", ctx, by, given)


REGISTRY = Registry.of(kit)
