"""W5: one call of a tool. What do its safeguards cost over awaiting the function, and what does each layer alone?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.figures import Line, Series
from bench.server import Server
from checkpoints.breaker_windows import BreakerWindows
from checkpoints.database import open_database
from checkpoints.failed_calls import PostgresFailures
from checkpoints.tool_settings import PostgresSettings
from checkpoints.tool_slots import PostgresSlots
from checkpoints.tool_stores import PostgresBreakers, PostgresCache
from plans.values import JSON
from tools.breaker import break_circuit
from tools.cache import use_cache
from tools.call import call
from tools.context import ToolContext
from tools.deadline import hold_deadline
from tools.fingerprints import refuse_repetition
from tools.limiter import limit
from tools.local import local_ports
from tools.outcome import Call, Layer, Outcome, Success
from tools.permission import check_permission
from tools.ports import Ports
from tools.registry import Registry, Toolkit
from tools.retry import retry_transport
from tools.rules import check_rules
from tools.tool import Tool

CALLS = (2_000,)
"""Calls per figure and round."""
OTHERS = ("langchain", "by hand")

Once = Callable[[int], Awaitable[object]]


def measure(server: Server, rounds: int, sizes: Sequence[int] = CALLS, others: Sequence[str] = OTHERS) -> list[Line]:
    """Everything in turn, round after round, in one process on one loop; `sizes` is the number of calls."""
    return asyncio.run(_measure(server, rounds, max(sizes), others))


async def _measure(server: Server, rounds: int, calls: int, others: Sequence[str]) -> list[Line]:
    async with open_database(server.database(), server.folder) as database, PostgresSlots(database, "bench") as slots:
        breakers = BreakerWindows(PostgresBreakers(database, monotonic=time.monotonic), monotonic=time.monotonic)
        settings = PostgresSettings(database, monotonic=time.monotonic)
        shared = replace(
            local_ports(),
            breakers=breakers,
            settings=settings,
            cache=PostgresCache(database),
            failures=PostgresFailures(database, monotonic=time.monotonic),
            slots=slots,
        )
        bench = _Bench(server.folder, local_ports(), shared)
        cases = bench.cases | {name: once for name, once in _others().items() if name in others}
        found: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds + 1):
            for name, once in cases.items():
                found[name].append(await _microseconds(once, calls))
    return _lines({name: Series.of(values[1:]) for name, values in found.items()}, others)  # the first warms up


async def _microseconds(once: Once, calls: int) -> float:
    began = time.perf_counter()
    for number in range(calls):
        await once(number)
    return (time.perf_counter() - began) / calls * 1e6


async def look_up(number: int) -> int:
    """Look a number up."""
    return number


class _Bench:
    """What is called, by the name of the figure."""

    def __init__(self, folder: Path, local: Ports, shared: Ports) -> None:
        self._ctx = ToolContext.bare(folder, seconds=3_600.0)
        kit = Toolkit("bench")
        plain = kit.add(look_up, name="plain", effect="read")
        safe = kit.add(
            look_up,
            name="safe",
            effect="read",
            rules=[{"condition": "number >= `0`", "message": "numbers are not negative"}],
            concurrency=8,
            rate_limit={"calls": 1_000_000, "per_s": 1.0},
        )
        everywhere = kit.add(look_up, name="everywhere", effect="read", concurrency=8, limit_scope="workers")
        kept = kit.add(look_up, name="kept", effect="read", cache_ttl_s=3_600.0)
        threaded = kit.add(
            lambda number: number, name="threaded", description="Look up.", args_schema=_NUMBER, effect="read"
        )
        Registry.of(kit)
        self.cases: dict[str, Once] = {
            "bare": look_up,
            "whole": self._whole(safe, local),
            "declared nothing": self._whole(plain, local),
            "whole, shared": self._whole(safe, shared),
            "thread": self._whole(threaded, local),
            **{layer.__name__: self._alone(layer, safe, local) for layer in _LAYERS},
            "cache hit": self._alone(use_cache, kept, local, same=True),
            "cache miss": self._alone(use_cache, kept, local),
            "cache hit, shared": self._alone(use_cache, kept, shared, same=True),
            "breaker, shared": self._alone(break_circuit, safe, shared),
            "repetition, shared": self._alone(refuse_repetition, safe, shared),
            "limit, shared": self._alone(limit, everywhere, shared),
        }

    def _whole(self, tool: Tool, ports: Ports) -> Once:
        return lambda number: call(tool, {"number": number}, self._ctx, ports)

    def _alone(self, layer: Layer, tool: Tool, ports: Ports, *, same: bool = False) -> Once:
        async def answer(call: Call) -> Outcome:
            call.ended()
            return Success(1)

        return lambda number: layer(Call(tool, tool.spec, {"number": 0 if same else number}, self._ctx, ports), answer)


_LAYERS: tuple[Layer, ...] = (
    check_permission, check_rules, refuse_repetition, retry_transport, break_circuit, limit, hold_deadline,
)  # fmt: skip
_NUMBER: Mapping[str, JSON] = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def _others() -> dict[str, Once]:
    return {"langchain": _langchain_tool(), "by hand": _by_hand()}


def _langchain_tool() -> Once:
    """The same function as LangChain's own tool, called as LangGraph calls it."""
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(coroutine=look_up, name="look_up", description="Look a number up.")
    return lambda number: tool.ainvoke({"number": number})


def _by_hand() -> Once:
    """What a careful person writes around a call: tenacity, a semaphore and a timeout."""
    from tenacity import AsyncRetrying, stop_after_attempt, wait_exponential

    places = asyncio.Semaphore(8)

    async def once(number: int) -> int:
        async def limited() -> int:
            async with places, asyncio.timeout(8):
                return await look_up(number)

        found: int = await AsyncRetrying(stop=stop_after_attempt(3), wait=wait_exponential(), reraise=True)(limited)
        return found

    return once


_OTHERS_SAID = {"langchain": "LangChain's tool.ainvoke", "by hand": "tenacity, semaphore and timeout by hand"}


def _lines(found: Mapping[str, Series], others: Sequence[str]) -> list[Line]:
    bare = found["bare"].median
    over = {name: Series.of(value - bare for value in series.values) for name, series in found.items()}

    def told(name: str) -> str:
        return over[name].told(" µs", 1)

    whole = over["whole, shared"]
    beside = " · ".join(f"{_OTHERS_SAID[name]} {told(name)}" for name in others)
    return [
        Line(
            "W5", "call through every layer, breaker and settings in PostgreSQL, − a bare await",
            whole.told(" µs", 1), whole.median, 100, unit=" µs", beside=beside,
        ),
        Line("W5", "the same, all stores in the process", told("whole")),
        Line("W5", "the same, of a tool that declares its effect alone", told("declared nothing")),
        Line("W5", "the same, of a sync function in a thread", told("thread")),
        *(Line("W5", f"layer alone: {layer.__name__}", told(layer.__name__)) for layer in _LAYERS),
        Line("W5", "layer alone: break_circuit, breakers in PostgreSQL", told("breaker, shared")),
        Line("W5", "layer alone: refuse_repetition, failures in PostgreSQL", told("repetition, shared")),
        Line("W5", "layer alone: limit, over all workers", told("limit, shared")),
        Line("W5", "layer alone: use_cache, a hit", told("cache hit")),
        Line("W5", "layer alone: use_cache, a miss that is then kept", told("cache miss")),
        Line("W5", "layer alone: use_cache, a hit in PostgreSQL", told("cache hit, shared")),
    ]  # fmt: skip
