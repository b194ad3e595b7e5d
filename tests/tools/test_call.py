"""Tests of the whole chain: the order of its layers, and what holds for any tool and any failure."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.errors import GraphInterrupt

from plans.failure import ToolFailure
from tests.tools.calls import Time, code_of, context, ports, tool_of
from tools.call import CallFailure, Outcome, Success, call
from tools.context import ToolContext
from tools.local import LocalSettings
from tools.ports import Ports
from tools.spec import EFFECTS, Effect
from tools.tool import Tool


class Service:
    """Something behind a tool: raises or returns what the script says, the last of it for ever, and counts."""

    def __init__(self, *script: Any) -> None:
        self.script = script
        self.calls = 0

    async def ask(self, a: int = 1) -> Any:
        """One call."""
        self.calls += 1
        said = self.script[min(self.calls, len(self.script)) - 1]
        if isinstance(said, BaseException):
            raise said
        return said


def within(seconds: float, clock: Time) -> ToolContext:
    """A context that ends this long from now."""
    return context(deadline=clock.now + seconds)


async def test_a_plain_call_gives_its_result_and_its_time(tmp_path: Path) -> None:
    """The result, not degraded, and how long it took in all."""
    clock = Time()
    service = Service(ConnectionResetError(), {"a": 1})
    outcome = await call(tool_of(service.ask), {"a": 1}, within(60, clock), ports(clock.clock))
    assert outcome == Success({"a": 1}, degraded=None, elapsed_s=0.5)
    assert service.calls == 2


async def test_permission_comes_before_the_cache() -> None:
    """A kept result is not given to a role that may not use the tool, nor once the tool is switched off."""
    service, stored = Service(1), LocalSettings()
    tool, shared = tool_of(service.ask, roles=("clerk",), cache_ttl_s=60), ports(settings=stored)
    assert code_of(await call(tool, {}, context(), shared, role="clerk")) == "OK"
    assert code_of(await call(tool, {}, context(), shared, role="guest")) == "NOT_PERMITTED"
    stored.changes["ask"] = {"enabled": False}
    assert code_of(await call(tool, {}, context(), shared, role="clerk")) == "TOOL_DISABLED"
    assert service.calls == 1


async def test_rules_come_before_the_cache_and_the_breaker() -> None:
    """A refused call reaches nothing and counts as nothing."""
    service = Service(1)
    tool = tool_of(service.ask, rules=[{"condition": "a < `5`", "message": "too many"}])
    shared = ports()
    for _ in range(10):
        assert code_of(await call(tool, {"a": 9}, context(), shared)) == "RULE_VIOLATED"
    assert (service.calls, await shared.breakers.load_all()) == (0, {})


async def test_the_breaker_counts_calls_and_not_attempts_of_a_step() -> None:
    """Three failing transport attempts of one call open it, and the next call does not reach the tool."""
    clock, service = Time(), Service(ConnectionResetError())
    tool, shared = tool_of(service.ask), ports(clock.clock)
    assert code_of(await call(tool, {}, within(60, clock), shared)) == "UNAVAILABLE"
    assert service.calls == 3
    assert code_of(await call(tool, {}, within(60, clock), shared)) == "BREAKER_OPEN"
    assert service.calls == 3


async def test_a_kept_result_is_given_while_the_breaker_is_open() -> None:
    """The cache stands before the breaker: what is known need not be asked."""
    clock, service = Time(), Service(1, ConnectionResetError())
    tool, shared = tool_of(service.ask, cache_ttl_s=300), ports(clock.clock)
    assert code_of(await call(tool, {"a": 1}, within(60, clock), shared)) == "OK"
    for a in (2, 3):
        await call(tool, {"a": a}, within(60, clock), shared)
    assert code_of(await call(tool, {"a": 2}, within(60, clock), shared)) == "BREAKER_OPEN"
    assert code_of(await call(tool, {"a": 1}, within(60, clock), shared)) == "OK"


async def test_no_slot_is_held_while_waiting_to_retry() -> None:
    """With one slot, a call that backs off lets another one through, and the slot stays one."""
    order: list[str] = []
    running, most = 0, 0

    async def function(name: str) -> str:
        nonlocal running, most
        order.append(name)
        if order == ["first"]:
            raise ConnectionResetError
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return name

    tool = tool_of(function, concurrency=1, retry={"initial_interval": 0.2, "jitter": 0})
    shared = ports()
    first = asyncio.create_task(call(tool, {"name": "first"}, context(), shared))
    await asyncio.sleep(0.05)
    await call(tool, {"name": "second"}, context(), shared)
    await first
    assert order == ["first", "second", "first"]
    await asyncio.gather(*(call(tool, {"name": "more"}, context(), shared) for _ in range(5)))
    assert most == 1


async def test_changed_settings_count_from_the_next_call() -> None:
    """A timeout that was changed while running holds without a restart."""
    stored = LocalSettings()

    async def slow() -> str:
        await asyncio.sleep(0.3)
        return "done"

    tool, shared = tool_of(slow, retry={"max_attempts": 1}), ports(settings=stored)
    assert code_of(await call(tool, {}, context(), shared)) == "OK"
    stored.changes["slow"] = {"timeout_s": 0.05}
    assert code_of(await call(tool, {}, context(), shared)) == "TIMEOUT"


async def test_each_attempt_gets_what_is_left() -> None:
    """The deadline is an instant: three slow attempts end together with the run's time, not after three timeouts."""
    service_calls: list[float] = []

    async def slow(ctx: ToolContext) -> None:
        service_calls.append(ctx.deadline)
        await asyncio.sleep(5)

    tool = tool_of(slow, timeout_s=0.2, retry={"initial_interval": 0.05, "jitter": 0})
    ctx = context(deadline=time.monotonic() + 0.35)
    began = time.monotonic()
    assert code_of(await call(tool, {}, ctx, ports())) == "TIMEOUT"
    assert time.monotonic() - began < 0.35 + 0.15
    assert len(service_calls) == 2
    assert service_calls[1] == ctx.deadline


async def test_hung_tools_starve_nobody() -> None:
    """Six tools that hang in threads leave another run's sync and async tools as fast as ever."""
    go = threading.Event()
    hung = tool_of(lambda: go.wait(10), name="hung", timeout_s=0.2, retry={"max_attempts": 1})
    quick, shared = tool_of(lambda a: a, name="quick"), ports()
    hanging = [asyncio.create_task(call(hung, {}, context(), shared)) for _ in range(6)]
    await asyncio.sleep(0.01)
    began = time.monotonic()
    assert [code_of(await call(quick, {"a": n}, context(), shared)) for n in range(20)] == ["OK"] * 20
    assert time.monotonic() - began < 1
    assert {code_of(outcome) for outcome in await asyncio.gather(*hanging)} <= {"TIMEOUT", "BREAKER_OPEN"}
    go.set()


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_an_interrupt_of_langgraph_comes_out(asynchronous: bool) -> None:
    """A tool that asks a person through LangGraph interrupts the run; it has not failed."""

    async def later() -> None:
        raise GraphInterrupt(())

    def now() -> None:
        raise GraphInterrupt(())

    shared = ports()
    for _ in range(5):
        with pytest.raises(GraphInterrupt):
            await call(tool_of(later if asynchronous else now, name="t"), {}, context(), shared)
    assert await shared.breakers.load_all() == {}


async def test_failures_say_no_more_than_they_should() -> None:
    """No raw text, argument or secret gets into a failure; the raw text is beside it."""

    def function(token: str) -> None:
        raise RuntimeError(f"401 for {token}")

    outcome = await call(tool_of(function), {"token": "hunter2"}, context(), ports())
    assert isinstance(outcome, CallFailure)
    assert "hunter2" not in str(outcome.failure)
    assert "hunter2" in outcome.raw


RAISED: list[Any] = [
    {"ok": True}, ConnectionResetError(), ConnectionRefusedError(), TimeoutError(), KeyError("x"), SystemExit(1),
    ToolFailure("RATE_LIMITED", "slow down"), ToolFailure("NOT_FOUND", "no"), object(), asyncio.CancelledError(),
]  # fmt: skip
KNOWN_NOT_TO_HAVE_HAPPENED = (ConnectionRefusedError, ToolFailure)


@settings(max_examples=150, deadline=None)
@given(
    effect=st.sampled_from(EFFECTS),
    script=st.lists(st.sampled_from(RAISED), min_size=1, max_size=6),
    calls=st.integers(1, 3),
)
def test_an_effect_is_called_at_most_once_without_a_known_outcome(
    effect: Effect, script: list[Any], calls: int
) -> None:
    """For any mix of failures: within one attempt an irreversible or transactional tool is called once, and whatever
    leaves its effect open is never told as something to try again."""
    clock, service = Time(), Service(*script)
    tool, shared = tool_of(service.ask, name="t", effect=effect), ports(clock.clock)

    async def scenario() -> list[tuple[Outcome, int, Any]]:
        ended = []
        for _ in range(calls):
            before = service.calls
            outcome = await call(tool, {}, within(600, clock), shared)
            last = service.script[min(service.calls, len(service.script)) - 1] if service.calls > before else None
            ended.append((outcome, service.calls - before, last))
        return ended

    for outcome, reached, last in asyncio.run(scenario()):
        assert reached <= (3 if effect in ("read", "idempotent") else 1)
        if effect == "irreversible" and reached and not isinstance(outcome, Success):
            sure = isinstance(last, KNOWN_NOT_TO_HAVE_HAPPENED)
            assert (code_of(outcome) == "UNKNOWN_OUTCOME") is not sure


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), calls=st.integers(1, 12))
def test_concurrent_calls_of_a_cached_read_reach_the_tool_once_per_question(sizes: list[int], calls: int) -> None:
    """However many ask, each different question is asked once; every caller gets the answer to its own."""
    asked: Counter[int] = Counter()

    async def function(a: int) -> int:
        asked[a] += 1
        await asyncio.sleep(0)
        return a * 10

    async def scenario() -> list[Outcome]:
        tool, shared = tool_of(function, name="t", cache_ttl_s=60), ports()
        return list(await asyncio.gather(*(call(tool, {"a": a}, context(), shared) for a in sizes * calls)))

    outcomes = asyncio.run(scenario())
    assert [outcome.value for outcome in outcomes if isinstance(outcome, Success)] == [a * 10 for a in sizes * calls]
    assert set(asked.values()) == {1}


async def test_a_switched_off_tool_stays_off(tmp_path: Path) -> None:
    """A tool whose declaration is switched off is refused without any stored setting."""
    off: Tool = replace(tool_of(Service(1).ask), enabled=False)
    shared: Ports = ports()
    assert code_of(await call(off, {}, context(tmp_path), shared)) == "TOOL_DISABLED"
