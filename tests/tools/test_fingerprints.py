"""Tests of repeated failures: the same call three times in five minutes, then not once more until time has passed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.failure import CODES
from tests.tools.calls import Scripted, Time, a_call, code_of, failed, ports, tool_of
from tools.call import call
from tools.fingerprints import SAYING_NOTHING, counts, refuse_repetition
from tools.local import LocalFailures
from tools.outcome import CallFailure, Outcome, Success
from tools.ports import Ports
from tools.spec import MOST_REPEATS
from tools.tool import Tool


@pytest.fixture
def tool() -> Tool:
    """A tool with the default of three failures within five minutes."""
    return tool_of(lambda: 1, name="t")


@pytest.fixture
def time() -> Time:
    """Time that moves when told to."""
    return Time()


def shared(time: Time, **options: Any) -> Ports:
    """Ports with a store of failures on the test's clock."""
    return replace(ports(time.clock, **options), failures=LocalFailures(now=lambda: time.now))


async def ask(
    tool: Tool, on: Ports, *outcomes: Outcome, args: dict[str, Any] | None = None, tries: int = 0
) -> tuple[Outcome, int]:
    """One attempt through the layer, with its outcome and how often the tool was reached."""
    below = Scripted(outcomes)
    attempt = replace(a_call(tool, args, clock=on.clock), ports=on, tries=tries)
    return await refuse_repetition(attempt, below), len(below.calls)


async def test_the_fourth_attempt_is_refused_and_says_why(tool: Tool, time: Time) -> None:
    """Three failures in a row, then a refusal that names count, code and time, until the oldest is five minutes old."""
    on = shared(time)
    for code in ("UNAVAILABLE", "TIMEOUT", "TOOL_ERROR"):
        assert code_of((await ask(tool, on, failed(code)))[0]) == code
        time.now += 10
    outcome, reached = await ask(tool, on, Success(1))
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.called, reached) == ("REPEATED_FAILURE", False, 0)
    assert outcome.failure.delay_s == 270
    assert outcome.failure.message == (
        "t was not called: its last 3 attempts with these arguments failed, the last one with TOOL_ERROR; it may be "
        "tried again in 270 s, or after `surestep tools enable t`"
    )
    time.now += 269.9
    assert code_of((await ask(tool, on, Success(1)))[0]) == "REPEATED_FAILURE"
    time.now += 0.1
    assert await ask(tool, on, failed("TIMEOUT")) == (failed("TIMEOUT"), 1)
    assert code_of((await ask(tool, on, Success(1)))[0]) == "REPEATED_FAILURE"


async def test_a_success_starts_the_count_anew(tool: Tool, time: Time) -> None:
    """Two failures and a success are no failures."""
    on = shared(time)
    for outcome in (failed("TIMEOUT"), failed("TIMEOUT"), Success(1), failed("TIMEOUT"), failed("TIMEOUT"), Success(1)):
        assert await ask(tool, on, outcome) == (outcome, 1)


@pytest.mark.parametrize("other", [{"a": "1"}, {"a": True}, {"a": 1.0}, {"a": 1, "b": None}, {}])
async def test_other_arguments_are_another_call(tool: Tool, time: Time, other: dict[str, Any]) -> None:
    """Arguments count as they are typed: 1, true, 1.0 and "1" differ."""
    on = shared(time)
    for _ in range(3):
        await ask(tool, on, failed("TIMEOUT"), args={"a": 1})
    assert await ask(tool, on, Success(1), args=other) == (Success(1), 1)
    assert (await ask(tool, on, Success(1), args={"a": 1}))[1] == 0


async def test_another_version_and_another_tenant_are_another_call(tool: Tool, time: Time) -> None:
    """A mended tool is called again, and one tenant's failures are not another's."""
    on = shared(time)
    for _ in range(3):
        await ask(tool, on, failed("TIMEOUT"))
    assert (await ask(tool_of(lambda: 1, name="t", version="2"), on, Success(1)))[1] == 1
    assert (await ask(tool, replace(on, tenant="other"), Success(1)))[1] == 1
    assert (await ask(tool, on, Success(1)))[1] == 0


@pytest.mark.parametrize("code", sorted(CODES))
def test_what_counts_as_a_failed_attempt(code: str) -> None:
    """A call that was made and certainly failed; not a refusal, not a doubt, not a full pool."""
    assert counts(failed(code)) is (code not in {"UNKNOWN_OUTCOME", "POOL_FULL"})
    assert {"UNKNOWN_OUTCOME", "POOL_FULL"} == SAYING_NOTHING
    assert not counts(failed(code, called=False))
    assert not counts(replace(failed(code), in_doubt=True))
    assert not counts(Success(1))


async def test_each_tool_can_have_its_own_count_and_time_or_none(time: Time) -> None:
    """`repeats` is the tool's; None calls for ever."""
    strict = tool_of(lambda: 1, name="strict", repeats={"failures": 1, "within_s": 10})
    polling = tool_of(lambda: 1, name="polling", repeats=None)
    on = shared(time)
    await ask(strict, on, failed("TIMEOUT"))
    assert (await ask(strict, on, Success(1)))[1] == 0
    time.now += 10
    assert (await ask(strict, on, Success(1)))[1] == 1
    assert [(await ask(polling, on, failed("UNAVAILABLE")))[1] for _ in range(9)] == [1] * 9


async def test_a_run_that_grants_more_tries_gets_them(tool: Tool, time: Time) -> None:
    """Whoever raises max_attempts to five means five calls; other runs are refused after three as before."""
    on = shared(time)
    reached = [(await ask(tool, on, failed("TIMEOUT"), tries=5))[1] for _ in range(7)]
    assert reached == [1, 1, 1, 1, 1, 0, 0]
    assert (await ask(tool, on, Success(1), tries=3))[1] == 0


async def test_attempts_count_and_not_the_calls_that_they_retry(time: Time) -> None:
    """An attempt of three transport retries is one failure; a kept result is served all the same."""
    made = 0

    async def function(a: int) -> int:
        nonlocal made
        made += 1
        if a:
            raise ConnectionResetError
        return 7

    tool = tool_of(function, name="t", cache_ttl_s=60, breaker={"window": 99, "in_a_row": 99, "min_calls": 99})
    on = shared(time)
    codes = [code_of(await call(tool, {"a": 1}, a_call(tool, clock=time.clock).ctx, on)) for _ in range(5)]
    assert (codes, made) == (["UNAVAILABLE"] * 3 + ["REPEATED_FAILURE"] * 2, 9)
    for _ in range(5):
        assert code_of(await call(tool, {"a": 0}, a_call(tool, clock=time.clock).ctx, on)) == "OK"
    assert made == 10


@given(
    script=st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1.0, 40.0, 100.0, 300.0])), max_size=40),
    failures=st.integers(1, 5),
)
def test_a_call_is_refused_exactly_when_its_last_ones_failed_in_time(
    script: list[tuple[bool, float]], failures: int
) -> None:
    """Against a plain list of what was made: refused if and only if the last so many all failed within the time."""
    time, made = Time(), list[tuple[bool, float]]()
    tool = tool_of(lambda: 1, name="t", repeats={"failures": failures, "within_s": 120})

    async def scenario() -> None:
        on = shared(time)
        for succeeds, gap in script:
            time.now += gap
            last = made[-failures:]
            refuses = (
                len(last) == failures and not any(good and at for good, at in last) and last[0][1] + 120 > time.now
            )
            outcome, reached = await ask(tool, on, Success(1) if succeeds else failed("TIMEOUT"))
            assert (reached == 0, code_of(outcome) == "REPEATED_FAILURE") == (refuses, refuses)
            if reached:
                made.append((succeeds, time.now))

    asyncio.run(scenario())


async def test_the_store_in_memory_stays_small(time: Time) -> None:
    """Only the calls that failed last are kept, and of each no more failures than a policy can ask for."""
    store = LocalFailures(size=2, now=lambda: time.now)
    for key in "abc":
        await store.note(key, "t", "TIMEOUT", 1)
    for _ in range(MOST_REPEATS + 5):
        await store.note("c", "t", "TIMEOUT", 1)
    known = await store.known()
    assert {key: len(calls.at) for key, calls in known.items()} == {"b": 1, "c": MOST_REPEATS}
