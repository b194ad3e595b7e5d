"""Tests of the cache against a simple model of it, and of what it keeps for those who fall back to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import Scripted, Time, a_call, code_of, context, failed, ports, tool_of
from tools.cache import MOST_KEPT, fits, kept_result, use_cache
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.ports import Ports
from tools.tool import Tool

TTL_S, KEPT_S = 5.0, 20.0


class Ask(NamedTuple):
    """So many ask the same at once; what the tool gives, and whether who makes the call is cancelled in the middle."""

    question: str
    callers: int
    gives: str
    is_cancelled: bool


class Wait(NamedTuple):
    """Time goes by."""

    seconds: float


@dataclass
class Service:
    """The tool below the cache: it waits to be let go, counts its calls and answers with their number, or fails."""

    gives: str = "result"
    calls: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, call: Call) -> Outcome:
        self.calls += 1
        number = self.calls
        await self.go.wait()
        return Success(number) if self.gives == "result" else failed(self.gives)


ASKS = st.builds(
    Ask, st.sampled_from("ab"), st.integers(1, 4), st.sampled_from(["result", "result", "NOT_FOUND", "UNAVAILABLE"]),
    st.booleans(),
)  # fmt: skip
WAITS = st.builds(Wait, st.sampled_from([1.0, 4.0, 6.0, 21.0]))


@given(st.lists(ASKS | WAITS, max_size=12))
def test_whatever_is_asked_in_whatever_order_the_cache_does_what_a_simple_model_does(steps: list[Ask | Wait]) -> None:
    """A fresh result is given without a call; else one call is made for all who ask at once, or one more where the
    first of them is cancelled; only results are kept; a fallback finds the last one until it is too old."""
    asyncio.run(_compared(steps))


async def _compared(steps: list[Ask | Wait]) -> None:
    time, known, calls = Time(), dict[str, tuple[int, float]](), 0
    shared, service = ports(time.clock), Service()
    tool = tool_of(lambda **args: args, name="t", cache_ttl_s=TTL_S, fallbacks=[{"cached": KEPT_S}])
    for step in steps:
        if isinstance(step, Wait):
            time.now += step.seconds
            continue
        is_fresh = step.question in known and time.now - known[step.question][1] < TTL_S
        outcomes = await _asked(tool, shared, service, step, time)
        if not is_fresh:
            survivors = step.callers - step.is_cancelled
            calls += step.is_cancelled + (survivors > 0)
            if survivors and step.gives == "result":
                known[step.question] = (calls, time.now)
        expected = "OK" if is_fresh else step.gives.replace("result", "OK")
        assert [code_of(outcome) for outcome in outcomes] == [expected] * len(outcomes)
        values = {outcome.value for outcome in outcomes if isinstance(outcome, Success)}
        assert values <= {known[step.question][0]} if values else True
        assert service.calls == calls
        kept = await kept_result(tool, {"q": step.question}, shared, at_most_s=KEPT_S)
        value, at = known.get(step.question, (None, -KEPT_S))
        assert kept == ((value, time.now - at) if time.now - at < KEPT_S else None)


async def _asked(tool: Tool, shared: Ports, service: Service, step: Ask, time: Time) -> list[Outcome]:
    """The outcomes of those callers that were not cancelled."""
    service.gives, service.go = step.gives, asyncio.Event()
    ctx = context(deadline=time.now + 60)
    call = Call(tool, tool.spec, {"q": step.question}, ctx, shared)
    asking = [asyncio.create_task(use_cache(call, service)) for _ in range(step.callers)]
    for _ in range(3):
        await asyncio.sleep(0)
    if step.is_cancelled:
        asking[0].cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    service.go.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    return [outcome for outcome in found if isinstance(outcome, Success | CallFailure)]


@pytest.mark.parametrize(("code", "calls"), [("UNAVAILABLE", 1), ("RATE_LIMITED", 1), ("NOT_FOUND", 0)])
async def test_who_has_more_time_than_the_one_that_failed_asks_again(code: str, calls: int) -> None:
    """A failure that time might have mended, of a call that had little of it, is not that of those who have more; one
    that would be the same again is."""
    tool, shared, below = tool_of(lambda: 1, name="t", cache_ttl_s=5), ports(), Service(gives=code)
    short, long = (replace(a_call(tool, seconds=seconds), ports=shared) for seconds in (5, 60))
    first = asyncio.create_task(use_cache(short, below))
    await asyncio.sleep(0)
    answering = Scripted([Success(3)])
    second = asyncio.create_task(use_cache(long, answering))
    await asyncio.sleep(0)
    below.go.set()
    assert code_of(await first) == code
    assert code_of(await second) == ("OK" if calls else code)
    assert len(answering.calls) == calls


async def test_a_read_without_a_time_of_its_own_is_kept_for_its_fallback_and_asked_each_time() -> None:
    """Only the fallback is answered by what is kept; a call is made for every question."""
    tool, below = tool_of(lambda: 1, name="t", fallbacks=[{"cached": 60}]), Scripted([Success(1), Success(2)])
    call = a_call(tool)
    assert [await use_cache(call, below) for _ in range(2)] == [Success(1), Success(2)]
    kept = await kept_result(tool, {}, call.ports, at_most_s=60)
    assert kept is not None
    assert kept[0] == 2
    assert await kept_result(tool, {}, call.ports, at_most_s=-1) is None


async def test_a_new_version_of_a_tool_never_sees_what_an_older_one_has_kept() -> None:
    """Neither as a fresh result nor as a fallback."""
    below, shared = Scripted([Success(1), Success(2)]), ports()
    old, new = (
        tool_of(lambda: 1, name="t", cache_ttl_s=60, fallbacks=[{"cached": 600}], version=version) for version in "12"
    )
    await use_cache(replace(a_call(old), ports=shared), below)
    assert await kept_result(new, {}, shared, at_most_s=600) is None
    assert await use_cache(replace(a_call(new), ports=shared), below) == Success(2)


@pytest.mark.parametrize("value", ["x" * (MOST_KEPT + 1), ["y" * 1_000] * 1_100, {"z": list(range(MOST_KEPT))}])
async def test_a_large_result_is_given_and_not_kept(value: Any) -> None:
    """A row of the cache has a bounded size, whatever a tool returns."""
    call, below = a_call(tool_of(lambda: 1, name="t", cache_ttl_s=60)), Scripted([Success(value)])
    assert await use_cache(call, below) == Success(value)
    assert await use_cache(call, below) == Success(value)
    assert len(below.calls) == 2


@given(
    st.recursive(
        st.text(max_size=9) | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(max_size=4), v)
    )
)
def test_what_is_small_fits(value: Any) -> None:
    """Nesting and kind do not matter; only how much there is."""
    assert fits(value)
    assert not fits([value, "x" * MOST_KEPT])
