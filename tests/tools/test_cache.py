"""Tests of the third layer: what is kept, for whom and how long, and one call for all who ask at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import Scripted, Time, a_call, code_of, context, failed, ports, tool_of
from tools.cache import key_of, use_cache
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.spec import Effect
from tools.tool import Tool


@pytest.fixture
def tool() -> Tool:
    """A read whose results are kept for five seconds."""
    return tool_of(lambda **args: args, name="t", cache_ttl_s=5)


async def test_a_result_is_kept_until_it_expires(tool: Tool) -> None:
    """The second call within the time makes none; after it the tool is asked again."""
    time = Time()
    call = a_call(tool, {"a": 1}, clock=time.clock)
    below = Scripted([Success(1), Success(2)])
    assert await use_cache(call, below) == Success(1)
    time.now += 4.9
    again = await use_cache(call, below)
    assert isinstance(again, Success)
    assert (again.value, again.called) == (1, False)
    assert again.kept_s == pytest.approx(4.9)
    time.now += 0.2
    assert await use_cache(call, below) == Success(2)
    assert len(below.calls) == 2


@pytest.mark.parametrize(
    ("effect", "ttl"), [("read", None), ("idempotent", 5.0), ("transactional", 5.0), ("irreversible", 5.0)]
)
async def test_only_reads_that_ask_for_it_are_kept(effect: Effect, ttl: float | None) -> None:
    """A tool with an effect is called every time, whatever its settings say."""
    call = a_call(tool_of(lambda: 1, name="t"))
    call = replace(call, spec=call.spec.model_copy(update={"effect": effect, "cache_ttl_s": ttl}))
    below = Scripted([Success(1)])
    await use_cache(call, below)
    await use_cache(call, below)
    assert len(below.calls) == 2


async def test_failures_are_not_kept(tool: Tool) -> None:
    """A failure is no result: the next call asks again."""
    below = Scripted([failed("NOT_FOUND"), Success(2)])
    call = a_call(tool)
    assert code_of(await use_cache(call, below)) == "NOT_FOUND"
    assert await use_cache(call, below) == Success(2)


def test_the_key_tells_questions_apart(tool: Tool) -> None:
    """Other arguments, another tool, version or tenant have another key; 1, 1.0, true and "1" are four arguments."""
    base = a_call(tool, {"a": 1})
    others = [a_call(tool, {"a": value}) for value in (1.0, True, "1", None, [1])]
    others += [
        a_call(tool, {"b": 1}),
        a_call(tool_of(lambda **a: a, name="u", cache_ttl_s=5), {"a": 1}),
        a_call(tool_of(lambda **a: a, name="t", cache_ttl_s=5, version="2"), {"a": 1}),
        replace(base, ports=ports(tenant="other")),
    ]
    assert len({key_of(call) for call in (base, *others)}) == len(others) + 1


@given(args=st.dictionaries(st.text("ab", max_size=2), st.integers() | st.text("ab", max_size=2), max_size=4))
def test_the_order_of_arguments_does_not_matter(args: dict[str, Any]) -> None:
    """The same arguments in another order are the same question."""
    tool = tool_of(lambda **given: given, name="t", cache_ttl_s=5)
    assert key_of(a_call(tool, args)) == key_of(a_call(tool, dict(reversed(args.items()))))


async def test_a_kept_result_cannot_be_changed_by_whoever_got_it(tool: Tool) -> None:
    """Each reader of the cache gets its own copy."""
    call = a_call(tool)
    below = Scripted([Success({"list": [1]})])
    await use_cache(call, below)
    first = await use_cache(call, below)
    assert isinstance(first, Success)
    first.value["list"].append(2)
    second = await use_cache(call, below)
    assert isinstance(second, Success)
    assert second.value == {"list": [1]}


class Slow:
    """Work that waits to be let go; counts its calls."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.go = asyncio.Event()
        self.calls = 0

    async def __call__(self, call: Call) -> Outcome:
        self.calls += 1
        await self.go.wait()
        return self.outcome


async def test_many_who_ask_the_same_at_once_cause_one_call(tool: Tool) -> None:
    """A hundred equal calls at the same time reach the tool once, and all get its result."""
    below, shared = Slow(Success(7)), ports()
    calls = [replace(a_call(tool, {"a": 1}), ports=shared) for _ in range(100)]
    asking = [asyncio.create_task(use_cache(call, below)) for call in calls]
    await asyncio.sleep(0)
    below.go.set()
    assert await asyncio.gather(*asking) == [Success(7), *[Success(7, called=False)] * 99]
    assert below.calls == 1


async def test_a_shared_failure_is_that_of_each_caller(tool: Tool) -> None:
    """All who waited get the failure, each under its own step; only one of them made the call."""
    below, shared = Slow(failed("NOT_FOUND")), ports()
    calls = [replace(a_call(tool), ports=shared, ctx=context(step_id=step)) for step in ("s1", "s2")]
    asking = [asyncio.create_task(use_cache(call, below)) for call in calls]
    await asyncio.sleep(0)
    below.go.set()
    first, second = await asyncio.gather(*asking)
    assert isinstance(second, CallFailure)
    assert (second.failure.step_id, second.failure.code, second.called) == ("s2", "NOT_FOUND", False)
    assert isinstance(first, CallFailure)
    assert first.called
    assert below.calls == 1


async def test_a_cancelled_call_does_not_take_the_others_with_it(tool: Tool) -> None:
    """When the run that made the call is cancelled, the next who waits makes it anew."""
    below, shared = Slow(Success(7)), ports()
    calls = [replace(a_call(tool), ports=shared) for _ in range(3)]
    asking = [asyncio.create_task(use_cache(call, below)) for call in calls]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0.01)
    below.go.set()
    assert await asyncio.gather(*asking[1:]) == [Success(7), Success(7, called=False)]
    assert below.calls == 2


async def test_somebody_elses_short_deadline_is_not_ours(tool: Tool) -> None:
    """A shared call that only ran out of its own time is made again by whoever has time left."""
    below, shared = Slow(failed("TIMEOUT")), ports()
    first = asyncio.create_task(use_cache(replace(a_call(tool), ports=shared), below))
    await asyncio.sleep(0)
    answering = Scripted([Success(3)])
    second = asyncio.create_task(use_cache(replace(a_call(tool), ports=shared), answering))
    await asyncio.sleep(0)
    below.go.set()
    assert code_of(await first) == "TIMEOUT"
    assert await second == Success(3)


async def test_a_wait_for_somebody_elses_call_has_a_deadline(tool: Tool) -> None:
    """Whoever waits for a call under way stops at its own deadline; the call goes on for the others."""
    below, shared = Slow(Success(7)), ports()
    first = asyncio.create_task(use_cache(replace(a_call(tool), ports=shared), below))
    await asyncio.sleep(0)
    assert code_of(await use_cache(replace(a_call(tool, seconds=0.02), ports=shared), below)) == "TIMEOUT"
    below.go.set()
    assert await first == Success(7)
