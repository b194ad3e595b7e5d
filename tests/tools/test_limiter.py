"""Tests of the sixth layer: never more at once, never more often, and all calls run in the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.timeline import simulated
from tests.tools.calls import Scripted, Time, a_call, code_of, failed, tool_of
from tests.tools.limited import NEVER, PER_S, Ask, Story, stories
from tools.limiter import limit
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.ports import Clock


class Counted:
    """Work that takes a little while and counts how many of it ran at once."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.ran = 0

    async def __call__(self, call: Call) -> Outcome:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        self.ran += 1
        call.ended()
        return Success(None)


@given(most=st.integers(1, 6), calls=st.integers(1, 30))
def test_the_observed_maximum_is_the_limit_and_all_calls_run(most: int, calls: int) -> None:
    """However many ask at once, as many as allowed run together, and each runs once."""

    async def scenario() -> Counted:
        tool, below = tool_of(lambda: 1, name="t", concurrency=most), Counted()
        await asyncio.gather(*(limit(a_call(tool), below) for _ in range(calls)))
        return below

    below = asyncio.run(scenario())
    assert (below.most, below.ran, below.running) == (min(most, calls), calls, 0)


async def test_a_tool_without_limits_is_not_limited() -> None:
    """No declaration, no waiting."""
    tool, below = tool_of(lambda: 1, name="t"), Counted()
    await asyncio.gather(*(limit(a_call(tool), below) for _ in range(20)))
    assert below.most == 20


async def test_the_slot_is_held_until_the_work_has_really_ended() -> None:
    """A call that was given up while its work goes on still occupies its tool."""
    tool = tool_of(lambda: 1, name="hung", concurrency=1)
    given_up: list[Call] = []

    async def leaves_work_behind(call: Call) -> Outcome:
        given_up.append(call)
        return failed("TIMEOUT")

    await limit(a_call(tool), leaves_work_behind)
    below = Scripted([Success(1)])
    assert code_of(await limit(a_call(tool, seconds=0.02), below)) == "POOL_FULL"
    given_up[0].ended()
    assert await limit(a_call(tool, seconds=1), below) == Success(1)


async def test_two_tools_do_not_share_slots() -> None:
    """A limit is per tool."""
    below = Counted()
    calls = [a_call(tool_of(lambda: 1, name=name, concurrency=1)) for name in ("a", "b")]
    await asyncio.gather(*(limit(call, below) for call in calls))
    assert below.most == 2


async def test_a_cancelled_wait_gives_nothing_away() -> None:
    """A caller that stops waiting for a slot leaves the number of slots as it was."""
    tool, held = tool_of(lambda: 1, name="cancelled", concurrency=1), asyncio.Event()

    async def holds(call: Call) -> Outcome:
        await held.wait()
        call.ended()
        return Success(1)

    holding = asyncio.create_task(limit(a_call(tool), holds))
    waiting = [asyncio.create_task(limit(a_call(tool), Scripted([Success(1)]))) for _ in range(3)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    waiting[2].cancel()
    held.set()
    await asyncio.gather(holding, *waiting, return_exceptions=True)
    below = Counted()
    await asyncio.gather(*(limit(a_call(tool), below) for _ in range(5)))
    assert (below.most, below.ran) == (1, 5)


@given(
    calls=st.integers(1, 4), per_s=st.floats(0.5, 5), gaps=st.lists(st.floats(0, 2, allow_subnormal=False), max_size=20)
)
def test_no_window_of_time_holds_more_starts_than_the_rate(calls: int, per_s: float, gaps: list[float]) -> None:
    """Whenever calls come, no `per_s` seconds see more than `calls` of them start."""

    async def scenario() -> list[float]:
        time, starts = Time(), []
        tool = tool_of(lambda: 1, name="t", rate_limit={"calls": calls, "per_s": per_s})

        async def noted(call: Call) -> Outcome:
            starts.append(time.now)
            return Success(None)

        for gap in gaps:
            time.now += gap
            await limit(a_call(tool, clock=time.clock, seconds=1_000), noted)
        return starts

    starts = asyncio.run(scenario())
    assert len(starts) == len(gaps)
    assert all(later - earlier >= per_s - 1e-9 for earlier, later in zip(starts, starts[calls:], strict=False))


async def test_a_turn_that_comes_after_the_deadline_is_refused() -> None:
    """A call that would wait past its deadline is told when to come back, and takes no turn."""
    time = Time()
    tool = tool_of(lambda: 1, name="rated", rate_limit={"calls": 1, "per_s": 10}, concurrency=1)
    below = Scripted([Success(1)])
    await limit(a_call(tool, clock=time.clock), below)
    refused = await limit(a_call(tool, clock=time.clock, seconds=3), below)
    assert code_of(refused) == "RATE_LIMITED"
    assert isinstance(refused, CallFailure)
    assert (refused.called, refused.failure.delay_s) == (False, 10)
    time.now += 10
    await limit(a_call(tool, clock=time.clock), below)
    assert (len(below.calls), time.slept) == (2, [])


async def test_a_slot_is_free_again_after_a_refused_turn() -> None:
    """Being refused for the rate does not keep the slot."""
    time = Time()
    tool = tool_of(lambda: 1, name="both", rate_limit={"calls": 1, "per_s": 10}, concurrency=1)
    below = Scripted([Success(1)])
    await limit(a_call(tool, clock=time.clock), below)
    for _ in range(3):
        assert code_of(await limit(a_call(tool, clock=time.clock, seconds=1), below)) == "RATE_LIMITED"
    time.now += 10
    assert code_of(await limit(a_call(tool, clock=time.clock, seconds=1), below)) == "OK"


@pytest.mark.parametrize("seconds", [0, -1])
async def test_no_time_left_means_no_waiting(seconds: float) -> None:
    """A call whose time is over is refused at once where no slot is free."""
    tool = tool_of(lambda: 1, name="late", concurrency=1)

    async def goes_on(call: Call) -> Outcome:
        return failed("TIMEOUT")

    await limit(a_call(tool), goes_on)
    assert code_of(await limit(a_call(tool, seconds=seconds), Scripted([Success(1)]))) == "POOL_FULL"


FEW = st.sampled_from([1, 2, 3])


@settings(max_examples=60)
@given(asks=stories(FEW, st.none() | st.just(2)))
def test_limits_that_change_are_followed_by_one_count(asks: list[Ask]) -> None:
    """Whatever calls come, fail, raise, hang on or are cancelled: none starts while as many run as the newest limit
    allows (limits do not add up), all that is neither cancelled nor broken runs, and nothing is held in the end."""
    story = Story.of(asks)
    assert all(start.most is not None and start.running <= start.most for start in story.starts)
    sound = [n for n, ask in enumerate(asks) if ask.cancelled_after == NEVER]
    assert {start.number for start in story.starts} >= set(sound)
    assert (story.running, story.refusals) == (0, [])
    after = Story.of([*asks, *[Ask(at=100.0, lasts=1.0, most=2), Ask(most=2, lasts=1.0), Ask(most=2, lasts=1.0)]])
    assert [start.running for start in after.starts[-3:]] in ([1, 2, 1], [1, 2, 2])


@settings(max_examples=60)
@given(asks=stories(st.just(2), st.just(3)))
def test_no_window_holds_more_starts_than_the_rate_whatever_happens(asks: list[Ask]) -> None:
    """With calls that work, fail, raise, hang on and are cancelled: of any four starts the last comes two seconds after
    the first at the earliest, and they start in the order in which they came."""
    story = Story.of(asks)
    times = [start.at for start in story.starts]
    assert all(later - earlier >= PER_S - 1e-9 for earlier, later in zip(times, times[3:], strict=False))
    assert [start.number for start in story.starts] == sorted(start.number for start in story.starts)


@settings(max_examples=60)
@given(most=st.integers(1, 4), lasts=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=4, max_size=20))
def test_with_enough_work_the_limit_is_reached_and_never_left(most: int, lasts: list[float]) -> None:
    """No slot stands empty while somebody waits: as many run as may, and the next starts when one ends."""
    story = Story.of([Ask(lasts=seconds, most=most) for seconds in lasts])
    assert max(start.running for start in story.starts) == most
    free = [0.0] * most
    for start, seconds in zip(story.starts, lasts, strict=True):
        free.sort()
        assert start.at == pytest.approx(free[0])
        free[0] += seconds


def test_a_limit_that_grows_lets_those_start_that_wait_and_one_that_shrinks_waits() -> None:
    """4, then 2, then 6 at once: after the change to 2 nobody starts before there is room, after 6 as many as may."""
    asks = [Ask(lasts=10.0, most=4)] * 6 + [Ask(1.0, 10.0, most=2), Ask(1.0, 10.0, most=6)]
    story = Story.of(asks)
    assert [(start.at, start.running) for start in story.starts[:6]] == [(0, 1), (0, 2), (0, 3), (0, 4), (2, 5), (2, 6)]
    story = Story.of(asks[:7])
    assert [(start.at, start.running) for start in story.starts[4:]] == [(10, 1), (10, 2), (20, 1)]


def test_an_older_view_of_the_limits_does_not_come_back() -> None:
    """A call that began before a change and is tried again after it does not undo the change."""

    async def most_of_five() -> int:
        below, clock = Counted(), Clock(monotonic=asyncio.get_running_loop().time)
        old, new = (tool_of(lambda: 1, name="t", concurrency=most) for most in (4, 1))
        calls = [replace(a_call(new, clock=clock), asked_at=2.0)]
        calls += [replace(a_call(old, clock=clock), asked_at=1.0) for _ in range(4)]
        await asyncio.gather(*(limit(call, below) for call in calls))
        return below.most

    assert simulated(most_of_five()) == 1


@given(waiting=st.integers(1, 6), calls=st.integers(1, 3))
def test_who_could_not_start_in_time_is_told_at_once_when_to_come_back(waiting: int, calls: int) -> None:
    """Behind others who wait for the rate, the delay counts their turns too, and nobody who is refused takes one."""
    story = Story.of([Ask(calls=calls)] * (calls * (waiting + 1) + 1), seconds=PER_S * waiting + 0.5)
    assert len(story.starts) == calls * (waiting + 1)
    assert [refusal.failure.code for refusal in story.refusals] == ["RATE_LIMITED"]
    assert story.refusals[0].failure.delay_s == PER_S * (waiting + 1)
    assert story.outcomes.index(story.refusals[0]) <= calls


def test_a_waiting_call_that_is_cancelled_gives_its_turn_to_the_next() -> None:
    """The turn of a call that gave up is used by the one behind it, not lost."""
    story = Story.of([Ask(calls=1), Ask(calls=1, cancelled_after=0.3), Ask(calls=1)])
    assert [start.at for start in story.starts] == [0.0, PER_S]


def test_a_limit_that_is_taken_away_lets_all_go() -> None:
    """Those who wait start as soon as a call comes for which there is no limit any more."""
    story = Story.of([Ask(lasts=9.0, most=1)] * 3 + [Ask(at=1.0)])
    assert [start.at for start in story.starts] == [0.0, 1.0, 1.0, 1.0]
