"""Stories of a breaker: overlapping calls of two workers through the layer itself, told again by a plain rule."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.timeline import simulated
from tests.tools.calls import a_call, code_of, failed, ports, tool_of
from tools.breaker import PROBE_GRACE_S, break_circuit
from tools.local import LocalBreakers
from tools.outcome import Call, Outcome, Success
from tools.ports import Clock, Ports
from tools.spec import BreakerPolicy

Signal = Literal["success", "failure", "answered", "none"]

OUTCOMES: dict[str, tuple[Outcome, Signal]] = {
    "well": (Success(1), "success"),
    "down": (failed("UNAVAILABLE"), "failure"),
    "late": (failed("TIMEOUT"), "failure"),
    "wrong": (failed("NOT_FOUND"), "answered"),
    "full": (failed("POOL_FULL", called=False), "none"),
}
TIMEOUT_S = 4.0
POLICIES = (
    BreakerPolicy(window=4, min_calls=3, failure_rate=0.5, in_a_row=2, cooldown_s=10.0),
    BreakerPolicy(window=6, min_calls=4, failure_rate=0.3, in_a_row=4, cooldown_s=3.0),
    BreakerPolicy(),
)


@dataclass(frozen=True)
class Ask:
    """A call: how long after the one before it comes, how long it takes, how it ends ("cancelled" is one way), which
    worker makes it, and what the breaker's policy is by then."""

    gap: float
    lasts: float
    ends: str
    worker: int
    policy: int


ASKS = st.builds(
    Ask,
    gap=st.sampled_from([0.0, 0.5, 1.0, 3.0, 12.0]),
    lasts=st.sampled_from([0.1, 0.4, 2.0, 6.0, 14.0]),
    ends=st.sampled_from(["well", "well", "down", "down", "down", "late", "wrong", "full", "cancelled"]),
    worker=st.integers(0, 1),
    policy=st.sampled_from([0, 0, 0, 1, 2]),
)


@dataclass(frozen=True)
class Event:
    """A call asks or ends. `at` is when; a call that asks says nothing yet."""

    at: float
    call: int
    policy: BreakerPolicy
    signal: Signal | None = None


@dataclass
class Told:
    """What happened: events in their order, which calls reached the tool, and how many of them at once."""

    events: list[Event] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    codes: dict[int, str] = field(default_factory=dict)


@dataclass
class Rule:
    """Which calls may be made, as one would say it to a person.

    While it is closed all may, and of those that began since it closed the last results count. Too many failures open
    it. When it has been open for the cooldown the next call is the probe, and nobody else may, until the probe has told
    or is so late that it must be lost. A probe that came through closes it, a failed one opens it anew, and one that
    says nothing leaves its place to the next.
    """

    members: set[int] = field(default_factory=set)
    results: list[bool] = field(default_factory=list)
    opened_at: float | None = None
    probe: Event | None = None

    def lets_through(self, asks: Event) -> bool:
        """Whether this call may be made."""
        if self.probe is not None:
            may = asks.at >= self.probe.at + TIMEOUT_S + PROBE_GRACE_S
        else:
            may = self.opened_at is None or asks.at >= self.opened_at + asks.policy.cooldown_s
        if may and (self.probe is not None or self.opened_at is not None):
            self.probe, self.opened_at = asks, None
        elif may:
            self.members.add(asks.call)
        return may

    def hears(self, ends: Event) -> None:
        """A call has ended."""
        if self.probe is not None and ends.call == self.probe.call:
            self._turned({"failure": ends.at, "none": ends.at - ends.policy.cooldown_s}.get(ends.signal or ""))
        elif ends.call in self.members and ends.signal in ("success", "failure"):
            self.results = [*self.results, ends.signal == "success"][-ends.policy.window :]
            if self._is_too_much(ends.policy):
                self._turned(ends.at)

    def _turned(self, opened_at: float | None) -> None:
        self.opened_at, self.probe, self.members, self.results = opened_at, None, set(), []

    def _is_too_much(self, policy: BreakerPolicy) -> bool:
        last, bad = self.results[-policy.in_a_row :], self.results.count(False)
        in_a_row = len(last) == policy.in_a_row and not any(last)
        return in_a_row or (len(self.results) >= policy.min_calls and bad > policy.failure_rate * len(self.results))


def would_reach(events: Sequence[Event]) -> list[int]:
    """The calls that the rule lets through, of these events."""
    rule, reached = Rule(), list[int]()
    for event in events:
        if event.signal is not None:
            rule.hears(event)
        elif rule.lets_through(event):
            reached.append(event.call)
    return reached


async def played(asks: Sequence[Ask]) -> Told:
    """Let the calls come, each at an instant of its own."""
    loop, told, stored = asyncio.get_running_loop(), Told(), LocalBreakers()
    clock = Clock(monotonic=loop.time, wall=loop.time)
    workers = [replace(ports(clock), breakers=stored) for _ in range(2)]
    tasks: list[asyncio.Task[None]] = []
    for number, ask in enumerate(asks):
        await asyncio.sleep(ask.gap + 0.01)
        tasks.append(asyncio.create_task(_one(told, workers[ask.worker], number, ask)))
    await asyncio.gather(*tasks, return_exceptions=True)
    return told


async def _one(told: Told, on: Ports, number: int, ask: Ask) -> None:
    loop, policy = asyncio.get_running_loop(), POLICIES[ask.policy]
    tool = tool_of(lambda: 1, name="t", breaker=policy.model_dump(), timeout_s=TIMEOUT_S)
    outcome, signal = OUTCOMES.get(ask.ends, (Success(1), "none"))

    async def work(_: Call) -> Outcome:
        told.reached.append(number)
        await asyncio.sleep(ask.lasts + (number + 1) * 1e-5)
        told.events.append(Event(loop.time(), number, policy, signal))
        if ask.ends == "cancelled":
            raise asyncio.CancelledError
        return outcome

    told.events.append(Event(loop.time(), number, policy))
    call = replace(a_call(tool, clock=on.clock), ports=on)
    told.codes[number] = code_of(await break_circuit(call, work))


@settings(max_examples=60)
@given(asks=st.lists(ASKS, min_size=1, max_size=40))
def test_a_breaker_lets_through_exactly_whom_the_rule_lets_through(asks: list[Ask]) -> None:
    """Two workers, calls that overlap and end in any order, are cancelled or never reach the tool, policies that change
    in the middle: who reaches the tool is who should, and all others are told BREAKER_OPEN."""
    told = simulated(played(asks))
    assert told.reached == would_reach(told.events)
    refused = {number for number, code in told.codes.items() if code == "BREAKER_OPEN"}
    assert refused == set(range(len(asks))) - set(told.reached)


@pytest.mark.parametrize("probe", ["well", "down", "wrong", "full", "cancelled"])
def test_the_stories_reach_every_turn_of_a_breaker(probe: str) -> None:
    """Open after two failures, one probe after the cooldown while another call is refused, then what the probe said."""
    asks = [Ask(0.0, 0.1, "down", 0, 0)] * 2 + [Ask(11.0, 1.0, probe, 1, 0), Ask(0.2, 0.1, "well", 0, 0)]
    told = simulated(played([*asks, Ask(2.0, 0.1, "well", 0, 0)]))
    refused = [number for number, code in told.codes.items() if code == "BREAKER_OPEN"]
    assert told.reached == would_reach(told.events)
    assert refused == ([3, 4] if probe == "down" else [3])
