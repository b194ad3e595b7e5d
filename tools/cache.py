"""Third layer: results of reads kept for a while, and one call for all who ask the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from plans.values import sha256_of
from tools.outcome import Call, CallFailure, Outcome, Proceed, Success, refused

Flights = dict[str, asyncio.Future[Outcome | None]]

_flights: MutableMapping[asyncio.AbstractEventLoop, Flights] = WeakKeyDictionary()


def key_of(call: Call) -> str:
    """The same for the same question only: tool, its version, tenant and typed arguments (1, true and "1" differ)."""
    return sha256_of([call.ports.tenant, call.tool.name, call.spec.version, dict(call.args)])


async def use_cache(call: Call, proceed: Proceed) -> Outcome:
    """A kept result, or that of a call that is under way, or a call whose result is then kept. Only for reads that
    declare cache_ttl_s; failures are never kept."""
    if call.spec.cache_ttl_s is None or call.spec.effect != "read":
        return await proceed(call)
    key = key_of(call)
    flights = _flights.setdefault(asyncio.get_running_loop(), {})
    while (flight := flights.get(key)) is not None:
        shared = await _joined(flight, call)
        if shared is not None:
            return shared
    flights[key] = flight = asyncio.get_running_loop().create_future()
    outcome: Outcome | None = None
    try:
        outcome = await _kept_or_made(call, proceed, key, call.spec.cache_ttl_s)
        return outcome
    finally:
        del flights[key]
        flight.set_result(outcome)


async def _kept_or_made(call: Call, proceed: Proceed, key: str, ttl_s: float) -> Outcome:
    if (kept := await call.ports.cache.get(key)) is not None:
        return Success(kept[0])
    outcome = await proceed(call)
    if isinstance(outcome, Success):
        await call.ports.cache.put(key, call.tool.name, outcome.value, ttl_s)
    return outcome


async def _joined(flight: asyncio.Future[Outcome | None], call: Call) -> Outcome | None:
    """What the call under way gives. None, so that the caller makes its own, where that call was cancelled or only ran
    out of its own time."""
    left = call.ctx.deadline - call.ports.clock.monotonic()
    await asyncio.wait({flight}, timeout=max(0.0, left))
    if not flight.done():
        return refused(call, "TIMEOUT", f"{call.tool.name} did not answer in time")
    outcome = flight.result()
    if isinstance(outcome, CallFailure):
        return None if outcome.failure.code == "TIMEOUT" else _as_ours(outcome, call)
    return outcome


def _as_ours(outcome: CallFailure, call: Call) -> CallFailure:
    ours = {"step_id": call.ctx.step_id, "attempt": call.ctx.attempt}
    return replace(outcome, failure=outcome.failure.model_copy(update=ours), called=False)
