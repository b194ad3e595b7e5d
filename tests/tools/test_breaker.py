"""Tests of the fifth layer: the breaker against a simple model, one probe at a time, and what counts."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from plans.failure import CODES
from plans.values import JSON
from tests.tools.calls import Scripted, Time, a_call, code_of, context, failed, ports, tool_of
from tests.tools.test_isolation import eventually
from tools.breaker import (
    FAILING,
    BreakerState,
    Signal,
    admit,
    break_circuit,
    close_circuit,
    open_tools,
    opens,
    record,
    signal_of,
)
from tools.call import call
from tools.isolation import POOL
from tools.local import LocalBreakers
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.ports import Ports
from tools.spec import BreakerPolicy
from tools.tool import Tool

POLICY = BreakerPolicy()
PROBE_S = 13.0


@given(calls=st.lists(st.booleans(), max_size=40))
def test_it_opens_exactly_when_the_last_calls_say_so(calls: list[bool]) -> None:
    """After any calls: open if the last three failed, or of the last ten (at least five) more than 40 % did."""
    state = BreakerState()
    for n, succeeded in enumerate(calls, start=1):
        state = record(state, POLICY, state.turn, "success" if succeeded else "failure", now=0.0)
        last_ten = calls[max(0, n - 10) : n]
        in_a_row = n >= 3 and not any(calls[n - 3 : n])
        too_many = len(last_ten) >= 5 and sum(not call for call in last_ten) * 10 > 4 * len(last_ten)
        if in_a_row or too_many:
            assert state.status == "open"
            return
        assert state.status == "closed"


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("", False), ("F", False), ("FF", False), ("FFF", True), ("SFFF", True), ("FFSF", False), ("FSFSF", True),
        ("FSFSS", False), ("SSSSSSSSSS", False), ("FSFSFSSSSS", False), ("FSFSFSSSFS", False), ("FSFSFSFSFS", True),
    ],
)  # fmt: skip
def test_the_windows_that_open_it(window: str, expected: bool) -> None:
    """Exactly 60 % success keeps it closed; below opens it."""
    assert opens(tuple(letter == "S" for letter in window), POLICY) is expected


@dataclass
class Model:
    """The breaker as one would explain it to a person."""

    status: Literal["closed", "open", "half_open"] = "closed"
    calls: list[bool] = field(default_factory=list)
    since: float = 0.0
    turn: int = 0

    def may_call(self, now: float) -> bool:
        """Closed: yes. Open: after the cooldown, as the one probe. Half open: only when the probe is lost."""
        if self.status == "closed":
            return True
        if now < self.since + (POLICY.cooldown_s if self.status == "open" else PROBE_S):
            return False
        self.status, self.since, self.turn = "half_open", now, self.turn + 1
        return True

    def ended(self, turn: int, signal: Signal, now: float) -> None:
        """Only calls of this turn count."""
        if turn != self.turn or self.status == "open":
            return
        if self.status == "half_open":
            self.status = "closed" if signal in ("success", "answered") else "open"
            self.since, self.calls, self.turn = now if signal == "failure" else now - POLICY.cooldown_s, [], turn + 1
        elif signal in ("success", "failure"):
            self.calls = [*self.calls, signal == "success"][-10:]
            bad = self.calls.count(False)
            if (len(self.calls) >= 5 and bad / len(self.calls) > 0.4) or self.calls[-3:] == [False] * 3:
                self.status, self.since, self.calls, self.turn = "open", now, [], turn + 1


class BreakerAgainstModel(RuleBasedStateMachine):
    """Any mix of calls that overlap, end in any order, are lost, and of time that passes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = BreakerState()
        self.model = Model()
        self.now = 100.0
        self.running: list[tuple[int, int]] = []
        self.probes = 0

    @rule()
    def a_call_asks(self) -> None:
        """The breaker and the model agree on who may call."""
        self.state, wait = admit(self.state, POLICY, self.now, PROBE_S)
        allowed = self.model.may_call(self.now)
        assert (wait <= 0) is allowed
        if allowed:
            self.running.append((self.state.turn, self.model.turn))

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 50), signal=st.sampled_from(["success", "failure", "failure", "answered", "none"]))
    def a_call_ends(self, which: int, signal: Signal) -> None:
        """Ended calls change both alike, in whatever order they end."""
        turn, model_turn = self.running.pop(which % len(self.running))
        self.state = record(self.state, POLICY, turn, signal, self.now)
        self.model.ended(model_turn, signal, self.now)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 50))
    def a_call_is_lost(self, which: int) -> None:
        """A call whose process died never reports."""
        self.running.pop(which % len(self.running))

    @rule(seconds=st.sampled_from([0.5, 12.9, 13.0, 59.9, 60.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def they_agree(self) -> None:
        """Status and window are the same."""
        assert self.state.status == self.model.status
        assert list(self.state.window) == self.model.calls

    @invariant()
    def one_probe_at_most(self) -> None:
        """While half open, at most one call of this turn runs."""
        if self.state.status == "half_open":
            assert sum(turn == self.state.turn for turn, _ in self.running) <= 1


TestBreakerAgainstModel = BreakerAgainstModel.TestCase
TestBreakerAgainstModel.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)


@pytest.mark.parametrize("code", sorted(CODES))
def test_what_each_code_says_about_the_tool(code: str) -> None:
    """Outages count against the tool; a call that was wrong does not; a call that was not made says nothing."""
    failing = {"TIMEOUT", "UNAVAILABLE", "RATE_LIMITED", "UNKNOWN_OUTCOME", "TOOL_ERROR", "OUTPUT_INVALID"}
    expected = "none" if code == "POOL_FULL" else "failure" if code in failing else "answered"
    assert signal_of(failed(code)) == expected
    assert signal_of(failed(code, called=False)) == "none"
    assert failing == FAILING
    assert signal_of(Success(1)) == "success"


@pytest.fixture
def tool() -> Tool:
    """A tool with the default breaker."""
    return tool_of(lambda: 1, name="t")


@pytest.fixture
def time() -> Time:
    """Time that moves when told to."""
    return Time()


async def ask(tool: Tool, shared: Ports, *outcomes: Outcome) -> tuple[Outcome, int]:
    """One call through the breaker; its outcome, and how often the tool was reached."""
    below = Scripted(outcomes)
    call = replace(a_call(tool, clock=shared.clock), ports=shared)
    return await break_circuit(call, below), len(below.calls)


async def test_three_failures_in_a_row_leave_the_tool_alone_for_a_minute(tool: Tool, time: Time) -> None:
    """The fourth call is refused without reaching the tool, and is told when to come back; after 60 s one probes."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 20
    outcome, reached = await ask(tool, shared, Success(1))
    assert (code_of(outcome), reached) == ("BREAKER_OPEN", 0)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.delay_s, outcome.called) == (40.0, False)
    time.now += 40
    assert await ask(tool, shared, Success(1)) == (Success(1), 1)
    assert await ask(tool, shared, failed("UNAVAILABLE")) == (failed("UNAVAILABLE"), 1)


async def test_a_failed_probe_opens_it_again(tool: Tool, time: Time) -> None:
    """A probe that fails means another whole cooldown."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 60
    await ask(tool, shared, failed("TIMEOUT"))
    time.now += 59
    assert code_of((await ask(tool, shared, Success(1)))[0]) == "BREAKER_OPEN"


async def test_only_one_of_many_probes(tool: Tool, time: Time) -> None:
    """When the cooldown is over, one of a hundred waiting calls reaches the tool; the others are refused."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 60
    go = asyncio.Event()
    reached: list[Call] = []

    async def waits(call: Call) -> Outcome:
        reached.append(call)
        await go.wait()
        return Success(1)

    call = replace(a_call(tool, clock=time.clock), ports=shared)
    asking = [asyncio.create_task(break_circuit(call, waits)) for _ in range(100)]
    await asyncio.sleep(0.01)
    go.set()
    codes = [code_of(outcome) for outcome in await asyncio.gather(*asking)]
    assert (len(reached), codes.count("OK"), codes.count("BREAKER_OPEN")) == (1, 1, 99)


async def test_a_cancelled_probe_gives_its_place_to_the_next(tool: Tool, time: Time) -> None:
    """Cancelling the run that probes does not keep the tool closed off."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 60

    async def hangs(call: Call) -> Outcome:
        await asyncio.sleep(60)
        return Success(1)

    probe = asyncio.create_task(break_circuit(replace(a_call(tool, clock=time.clock), ports=shared), hangs))
    await asyncio.sleep(0.01)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await ask(tool, shared, Success(1)) == (Success(1), 1)


class Slow(LocalBreakers):
    """A store whose writes take until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def swap(self, tool: str, old: dict[str, JSON] | None, new: dict[str, JSON]) -> bool:
        await self.go.wait()
        return await super().swap(tool, old, new)


async def test_a_probe_that_is_cancelled_while_it_asks_keeps_no_place(tool: Tool, time: Time) -> None:
    """Its place may be stored already when it is cancelled: the next call is the probe, at once."""
    stored = Slow()
    shared = replace(ports(time.clock), breakers=stored)
    stored.go.set()
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 60
    stored.go.clear()
    probe = asyncio.create_task(ask(tool, shared, Success(1)))
    await asyncio.sleep(0.01)
    probe.cancel()
    await asyncio.sleep(0)
    stored.go.set()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await ask(tool, shared, Success(1)) == (Success(1), 1)


async def test_a_refused_call_that_is_cancelled_leaves_the_probe_its_place(tool: Tool, time: Time) -> None:
    """While one call probes, others come and go: there is still one probe."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    time.now += 60
    go = asyncio.Event()

    async def waits(call: Call) -> Outcome:
        await go.wait()
        return Success(1)

    probe = asyncio.create_task(break_circuit(replace(a_call(tool, clock=time.clock), ports=shared), waits))
    await asyncio.sleep(0.01)
    for ticks in range(5):
        other = asyncio.create_task(ask(tool, shared, Success(1)))
        for _ in range(ticks):
            await asyncio.sleep(0)
        other.cancel()
        await asyncio.wait({other})
    assert code_of((await ask(tool, shared, Success(1)))[0]) == "BREAKER_OPEN"
    go.set()
    assert await probe == Success(1)


async def test_an_open_breaker_says_why_and_a_person_can_close_it(tool: Tool, time: Time) -> None:
    """The refusal names the failure that opened it, also after a probe said nothing; closed by hand, the next call is
    made at once, and one that was under way before does not count."""
    shared = ports(time.clock)
    for _ in range(3):
        await ask(tool, shared, failed("TIMEOUT"))
    refusal, calls = await ask(tool, shared, Success(1))
    assert isinstance(refusal, CallFailure)
    assert (calls, "the last time with TIMEOUT" in refusal.failure.message) == (0, True)
    assert await close_circuit(shared.breakers, tool.name)
    assert not await close_circuit(shared.breakers, tool.name)
    assert await ask(tool, shared, Success(1)) == (Success(1), 1)


def late(go: threading.Event) -> Tool:
    """A tool that comes back long after its deadline, and then well."""

    def answer() -> str:
        go.wait(10)
        return "late"

    return tool_of(answer, name="late", timeout_s=0.02, retry={"max_attempts": 1})


async def test_a_late_success_is_the_failure_that_it_was(time: Time) -> None:
    """Three calls that time out open the breaker, once each; that they end well afterwards changes nothing, neither
    while it is open nor while another call probes."""
    go, shared = threading.Event(), ports(time.clock)
    tool = late(go)
    for _ in range(3):
        assert code_of(await call(tool, {}, context(deadline=time.now + 60), shared)) == "TIMEOUT"
    stored = await shared.breakers.load("late")
    assert stored is not None
    assert (stored["status"], stored["window"]) == ("open", [])
    go.set()
    await eventually(lambda: POOL.running == 0)
    await asyncio.sleep(0.01)
    assert await shared.breakers.load("late") == stored
    time.now += 60
    assert isinstance(await call(tool, {}, context(deadline=time.now + 60), shared), Success)


async def test_a_late_success_does_not_count_in_a_closed_window(time: Time) -> None:
    """One call that timed out is one failure in the window, before and after it has come back."""
    go, shared = threading.Event(), ports(time.clock)
    tool = late(go)
    await call(tool, {}, context(deadline=time.now + 60), shared)
    before = await shared.breakers.load("late")
    go.set()
    await eventually(lambda: POOL.running == 0)
    await asyncio.sleep(0.01)
    assert before is not None
    assert before["window"] == [False]
    assert await shared.breakers.load("late") == before


async def test_a_cancelled_call_counts_as_nothing(time: Time) -> None:
    """Ten cancelled calls leave no trace; nor do ten whose arguments were wrong, except that the tool is there."""

    async def waits() -> None:
        await asyncio.sleep(60)

    shared = ports(time.clock)
    tool = tool_of(waits, name="waits")
    for _ in range(10):
        calling = asyncio.create_task(call(tool, {}, context(deadline=time.now + 60), shared))
        await asyncio.sleep(0.001)
        calling.cancel()
        await asyncio.wait({calling})
    assert await shared.breakers.load("waits") is None
    for _ in range(10):
        await ask(tool, shared, failed("INVALID_ARGS"))
    assert await shared.breakers.load("waits") is None


async def test_calls_that_started_before_it_opened_do_not_close_it(tool: Tool, time: Time) -> None:
    """A late success of an earlier call is no probe."""
    shared = ports(time.clock)
    go = asyncio.Event()

    async def waits(call: Call) -> Outcome:
        await go.wait()
        return Success(1)

    early = asyncio.create_task(break_circuit(replace(a_call(tool, clock=time.clock), ports=shared), waits))
    await asyncio.sleep(0)
    for _ in range(3):
        await ask(tool, shared, failed("UNAVAILABLE"))
    go.set()
    await early
    assert code_of((await ask(tool, shared, Success(1)))[0]) == "BREAKER_OPEN"


async def test_two_workers_share_one_breaker(tool: Tool, time: Time) -> None:
    """Failures seen by one worker keep the other from calling."""
    stored = LocalBreakers()
    one, two = replace(ports(time.clock), breakers=stored), replace(ports(time.clock), breakers=stored)
    await ask(tool, one, failed("TIMEOUT"))
    await ask(tool, two, failed("TIMEOUT"))
    await ask(tool, one, failed("TIMEOUT"))
    assert code_of((await ask(tool, two, Success(1)))[0]) == "BREAKER_OPEN"


class Contended(LocalBreakers):
    """A store in which somebody else always was faster, a few times."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.writes = 0

    async def swap(self, tool: str, old: dict[str, JSON] | None, new: dict[str, JSON]) -> bool:
        self.writes += 1
        if self.refusals:
            self.refusals -= 1
            return False
        return await super().swap(tool, old, new)


async def test_a_lost_race_is_tried_again(tool: Tool, time: Time) -> None:
    """No outcome is lost when another worker changes the state in between."""
    stored = Contended()
    shared = replace(ports(time.clock), breakers=stored)
    for _ in range(3):
        stored.refusals = 2
        await ask(tool, shared, failed("TIMEOUT"))
    assert code_of((await ask(tool, shared, Success(1)))[0]) == "BREAKER_OPEN"


async def test_a_healthy_tool_costs_no_writes(tool: Tool, time: Time) -> None:
    """Once the window is full of successes, another one changes nothing and writes nothing."""
    stored = Contended()
    shared = replace(ports(time.clock), breakers=stored)
    for _ in range(30):
        await ask(tool, shared, Success(1))
    assert stored.writes == 10


async def test_open_tools_are_known_to_a_planner(time: Time) -> None:
    """A tool is left out while its breaker is open and cooling down; unknown names are not."""
    broken, fine = tool_of(lambda: 1, name="broken"), tool_of(lambda: 1, name="fine")
    shared = ports(time.clock)
    for _ in range(3):
        await ask(broken, shared, failed("TIMEOUT"))
    await ask(fine, shared, Success(1))
    tools = {"broken": broken, "fine": fine}
    assert await open_tools(tools, shared) == {"broken"}
    assert await open_tools({"fine": fine}, shared) == frozenset()
    time.now += 60
    assert await open_tools(tools, shared) == frozenset()


@pytest.mark.parametrize("stored", [{"status": "ajar"}, {"window": "x"}, {}, {"later": 1}])
async def test_a_state_that_another_version_wrote_counts_as_closed(
    tool: Tool, time: Time, stored: dict[str, Any]
) -> None:
    """What cannot be read does not keep a tool from being called."""
    shared = ports(time.clock)
    await shared.breakers.swap("t", None, stored)
    assert await ask(tool, shared, Success(1)) == (Success(1), 1)
