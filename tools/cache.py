"""Third layer: results of reads kept for a while, and one call for all who ask the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from plans.values import JSON, sha256_of
from tools.fallbacks import longest_kept_s
from tools.outcome import Call, CallFailure, Outcome, Proceed, Success, refused
from tools.ports import Ports
from tools.tool import Tool

OF_TENANT = "/"
"""Between a tenant and the hash in the keys of what is kept for it: they can be told from another's, to be erased."""
MOST_KEPT = 1024 * 1024
"""Characters of text and elements, taken together, of the largest result that is kept. A larger one is given to who
asked and asked for again by the next."""


@dataclass(eq=False)
class Flight:
    """A call under way that others wait for, and until when whoever makes it has time. None: it gave nothing that
    anybody else could use."""

    deadline: float
    landing: asyncio.Future[Outcome | None] = field(default_factory=asyncio.Future)


_flights: MutableMapping[asyncio.AbstractEventLoop, dict[str, Flight]] = WeakKeyDictionary()


def key_of(call: Call) -> str:
    """Names the question that a call asks."""
    return question(call.tool, call.args, call.ports)


def question(tool: Tool, args: Mapping[str, JSON], ports: Ports) -> str:
    """The same for the same question only: tool, its version, tenant and typed arguments. Types are those of JSON as it
    is written: 1, 1.0, true and "1" are four arguments. 1 and 1.0 may mean the same to a tool; to take them for one
    would cost a wrong answer where they do not, to take them for two costs a call."""
    key = sha256_of([ports.tenant, tool.name, tool.spec.version, dict(args)])
    return f"{ports.tenant}{OF_TENANT}{key}" if ports.tenant else key


async def use_cache(call: Call, proceed: Proceed) -> Outcome:
    """A kept result, or that of a call that is under way, or a call whose result is then kept. Only for reads; only
    those with cache_ttl_s are answered from here, and those that fall back to kept results have theirs kept for that.
    Failures are never kept."""
    if call.spec.effect != "read":
        return await proceed(call)
    ttl_s, keep_s = call.spec.cache_ttl_s, longest_kept_s(call.spec.fallbacks)
    if ttl_s is not None:
        return await _shared(call, proceed, key_of(call), ttl_s, max(ttl_s, keep_s))
    return await _made(call, proceed, key_of(call), keep_s) if keep_s else await proceed(call)


async def kept_result(
    tool: Tool, args: Mapping[str, JSON], ports: Ports, *, at_most_s: float
) -> tuple[JSON, float] | None:
    """The last good result of this question and its age in seconds; None where none is so young."""
    kept = await ports.cache.get(question(tool, args, ports))
    return kept if kept is not None and kept[1] <= at_most_s else None


async def _shared(call: Call, proceed: Proceed, key: str, ttl_s: float, keep_s: float) -> Outcome:
    flights = _flights.setdefault(asyncio.get_running_loop(), {})
    while (flight := flights.get(key)) is not None:
        if (shared := await _joined(flight, call)) is not None:
            return shared
    flight = flights[key] = Flight(call.ctx.deadline)
    outcome: Outcome | None = None
    try:
        kept = await call.ports.cache.get(key)
        if kept is not None and kept[1] < ttl_s:
            outcome = Success(kept[0], called=False, kept_s=kept[1])
        else:
            outcome = await _made(call, proceed, key, keep_s)
        return outcome
    finally:
        del flights[key]
        flight.landing.set_result(outcome)


async def _made(call: Call, proceed: Proceed, key: str, keep_s: float) -> Outcome:
    outcome = await proceed(call)
    if isinstance(outcome, Success) and fits(outcome.value):
        await call.ports.cache.put(key, call.tool.name, outcome.value, keep_s, call.ctx.run_id)
    return outcome


async def _joined(flight: Flight, call: Call) -> Outcome | None:
    """What the call under way gives. None, so that the caller makes its own, where that call was cancelled, or failed
    in a way that more time might have mended and the caller has more."""
    left = call.ctx.deadline - call.ports.clock.monotonic()
    await asyncio.wait({flight.landing}, timeout=max(0.0, left))
    if not flight.landing.done():
        return refused(call, "TIMEOUT", f"{call.tool.name} did not answer in time")
    outcome = flight.landing.result()
    if isinstance(outcome, CallFailure):
        failure = outcome.failure
        has_more = failure.class_ == "soft" and call.ctx.deadline > flight.deadline
        return None if has_more or failure.code == "TIMEOUT" else _as_ours(outcome, call)
    return None if outcome is None else replace(outcome, called=False)


def _as_ours(outcome: CallFailure, call: Call) -> CallFailure:
    ours = {"step_id": call.ctx.step_id, "attempt": call.ctx.attempt}
    return replace(outcome, failure=outcome.failure.model_copy(update=ours), called=False)


def fits(value: JSON, most: int = MOST_KEPT) -> bool:
    """Whether a value is small enough to be kept; stops counting where it is not."""
    left, waiting = most, [value]
    while waiting and left >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item)
        elif isinstance(item, dict):
            left -= sum(map(len, item))
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            left -= len(item)
            waiting.extend(item)
        left -= 1
    return left >= 0
