"""Tests of the fourth layer: which failures are tried again, how often, and when it is too late."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.failure import CODES
from tests.tools.calls import Scripted, Time, a_call, code_of, failed, tool_of
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.retry import REPEATABLE, retry_transport
from tools.spec import Effect


@pytest.fixture
def time() -> Time:
    """Time that moves only by sleeping."""
    return Time()


async def test_two_retries_after_half_a_second_and_one(time: Time) -> None:
    """The default: three calls at most, waiting 0.5 and 1 s; the last failure is given."""
    below = Scripted([failed("UNAVAILABLE")])
    outcome = await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock), below)
    assert code_of(outcome) == "UNAVAILABLE"
    assert (len(below.calls), time.slept) == (3, [0.5, 1.0])


async def test_the_first_success_ends_it(time: Time) -> None:
    """Nothing is called again after a result."""
    below = Scripted([failed("TIMEOUT"), Success(1), Success(2)])
    assert await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock), below) == Success(1)
    assert len(below.calls) == 2


@pytest.mark.parametrize("code", sorted(CODES))
async def test_only_failures_that_may_be_gone_in_a_moment_are_tried_again(code: str, time: Time) -> None:
    """Timeouts, limits, outages and conflicts; never what would be the same again, nor an unknown outcome."""
    below = Scripted([failed(code)])
    await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock), below)
    assert (len(below.calls) > 1) is (code in {"TIMEOUT", "RATE_LIMITED", "UNAVAILABLE", "CONFLICT", "POOL_FULL"})
    assert (code in REPEATABLE) is (len(below.calls) > 1)


@pytest.mark.parametrize(
    ("effect", "calls"), [("read", 3), ("idempotent", 3), ("transactional", 1), ("irreversible", 1)]
)
async def test_effects_that_could_double_are_never_tried_again(effect: Effect, calls: int, time: Time) -> None:
    """Whatever the policy says, a transactional or irreversible tool is called once."""
    call = a_call(tool_of(lambda: 1, name="t", effect=effect), clock=time.clock)
    policy = call.spec.retry.model_copy(update={"max_attempts": 3})
    object.__setattr__(call, "spec", call.spec.model_copy(update={"retry": policy}))
    below = Scripted([failed("UNAVAILABLE")])
    await retry_transport(call, below)
    assert len(below.calls) == calls


async def test_a_retry_that_would_find_no_time_left_is_not_started(time: Time) -> None:
    """With 0.9 s left the first retry (after 0.5 s) is made and the second (after 1 s more) is not waited for."""
    below = Scripted([failed("UNAVAILABLE")])
    began = time.now
    await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock, seconds=0.9), below)
    assert (len(below.calls), time.slept) == (2, [0.5])
    assert time.now - began < 0.9


async def test_the_other_sides_wish_to_wait_is_honoured(time: Time) -> None:
    """A Retry-After longer than the policy's wait is kept; a shorter one does not shorten it."""
    below = Scripted([failed("RATE_LIMITED", delay_s=7), failed("RATE_LIMITED", delay_s=0.1)])
    await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock), below)
    assert time.slept == [7.0, 1.0]


async def test_a_wish_to_wait_past_the_deadline_ends_it(time: Time) -> None:
    """A Retry-After beyond the deadline is not waited for; the failure carries it to whoever decides next."""
    below = Scripted([failed("RATE_LIMITED", delay_s=61)])
    outcome = await retry_transport(a_call(tool_of(lambda: 1, name="t"), clock=time.clock), below)
    assert outcome == failed("RATE_LIMITED", delay_s=61)
    assert (len(below.calls), time.slept) == (1, [])


async def test_the_policy_of_the_tool_counts(time: Time) -> None:
    """Attempts, first wait, growth and longest wait are the tool's own."""
    retry = {"max_attempts": 5, "initial_interval": 1, "backoff_factor": 3, "max_interval": 4, "jitter": 0}
    below = Scripted([failed("UNAVAILABLE")])
    await retry_transport(a_call(tool_of(lambda: 1, name="t", retry=retry), clock=time.clock), below)
    assert (len(below.calls), time.slept) == (5, [1, 3, 4, 4])


@pytest.mark.parametrize("later", [failed("NOT_FOUND"), failed("BREAKER_OPEN", called=False), failed("UNAVAILABLE")])
async def test_what_may_have_happened_stays_in_doubt_whatever_comes_after(later: CallFailure, time: Time) -> None:
    """An idempotent call whose connection was lost, and then one that was refused, or never arrived: the first one may
    have had its effect all the same. A success settles it."""
    lost = replace(failed("UNAVAILABLE"), in_doubt=True)
    call = a_call(tool_of(lambda: 1, name="t", effect="idempotent"), clock=time.clock)
    outcome = await retry_transport(call, Scripted([lost, later]))
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt, outcome.called) == (later.failure.code, True, later.called)
    assert await retry_transport(call, Scripted([lost, Success(1)])) == Success(1)


@given(
    delays=st.lists(st.none() | st.floats(0, 40), min_size=1, max_size=6),
    jitter=st.floats(0, 5),
    share=st.floats(0, 1),
    seconds=st.floats(0, 120),
)
def test_no_call_comes_earlier_than_the_other_side_asked_nor_after_the_deadline(
    delays: list[float | None], jitter: float, share: float, seconds: float
) -> None:
    """For any Retry-After, any jitter and any deadline: each call comes at least so long after the one before, none
    after the deadline, and what was not waited for is told."""

    async def scenario() -> None:
        time, made = Time(), list[float]()
        clock = replace(time.clock, uniform=lambda low, high: low + share * (high - low))
        call = a_call(
            tool_of(lambda: 1, name="t", retry={"max_attempts": 6, "jitter": jitter}), clock=clock, seconds=seconds
        )

        async def fails(_: Call) -> Outcome:
            made.append(time.now)
            return failed("RATE_LIMITED", delay_s=delays[min(len(made), len(delays)) - 1])

        began = time.now
        outcome = await retry_transport(call, fails)
        for earlier, later, asked in zip(made, made[1:], delays, strict=False):
            assert later - earlier >= (asked or 0.0) - 1e-9
        assert all(at < began + seconds for at in made[1:])
        assert isinstance(outcome, CallFailure)
        assert outcome.failure.delay_s == delays[min(len(made), len(delays)) - 1]
        assert time.now == made[-1]  # nobody slept for a call that was not made

    asyncio.run(scenario())
