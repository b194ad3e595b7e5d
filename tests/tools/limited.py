"""A story of calls that meet one limiter, on virtual time: when each comes, how long it works, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.simulation.timeline import simulated
from tests.tools.calls import a_call, failed, tool_of
from tools.limiter import limit
from tools.outcome import Call, CallFailure, Outcome, Success
from tools.ports import Clock

PER_S = 2.0
NEVER = 999.0
TIMES = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Ask:
    """One call: how long after the one before it comes, how long it works, how it ends, what the limits are then, and
    after how long it is cancelled."""

    at: float = 0.0
    lasts: float = 0.0
    ends: str = "well"
    most: int | None = None
    calls: int | None = None
    cancelled_after: float = NEVER


@dataclass(frozen=True)
class Start:
    """A call that began to work: when, which, how many worked then, and how many may have."""

    at: float
    number: int
    running: int
    most: int | None


def stories(most: st.SearchStrategy[int | None], calls: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[Ask]]:
    """Up to thirty calls, some of which fail, raise, hang on or are cancelled, while waiting or while working."""
    ends = st.sampled_from(["well", "well", "badly", "raising", "late"])
    after = st.sampled_from([NEVER, NEVER, 0.0, 0.3, 2.5])
    one = st.builds(Ask, at=TIMES, lasts=TIMES, ends=ends, most=most, calls=calls, cancelled_after=after)
    return st.lists(one, min_size=1, max_size=30)


@dataclass
class Story:
    """Plays the calls and keeps what they came to."""

    asks: Sequence[Ask]
    seconds: float = 10_000.0
    starts: list[Start] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    running: int = 0
    newest: int | None = None

    @classmethod
    def of(cls, asks: Sequence[Ask], seconds: float = 10_000.0) -> Story:
        """The story, played to its end."""
        story = cls(asks, seconds)
        simulated(story._play())
        return story

    @property
    def refusals(self) -> list[CallFailure]:
        """The calls that the limiter has not let through."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, CallFailure) and not outcome.called]

    async def _play(self) -> None:
        tasks = []
        for number, ask in enumerate(self.asks):
            await asyncio.sleep(ask.at)
            tasks.append(asyncio.create_task(self._one(number, ask)))
            asyncio.get_running_loop().call_later(ask.cancelled_after, tasks[-1].cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(10)

    async def _one(self, number: int, ask: Ask) -> None:
        loop = asyncio.get_running_loop()
        declared: dict[str, Any] = {"concurrency": ask.most}
        if ask.calls is not None:
            declared["rate_limit"] = {"calls": ask.calls, "per_s": PER_S}
        self.newest = ask.most
        clock = Clock(monotonic=loop.time, wall=loop.time, uniform=lambda low, _: low)
        call = a_call(tool_of(lambda: 1, name="t", **declared), clock=clock, seconds=self.seconds)
        with suppress(ZeroDivisionError):
            outcome = await limit(replace(call, asked_at=loop.time()), lambda call: self._work(number, ask, call))
            self.outcomes.append(outcome)

    async def _work(self, number: int, ask: Ask, call: Call) -> Outcome:
        loop = asyncio.get_running_loop()
        self.running += 1
        self.starts.append(Start(loop.time(), number, self.running, self.newest))
        try:
            await asyncio.sleep(ask.lasts)
            if ask.ends == "raising":
                raise ZeroDivisionError
        finally:  # where the answer is late it is given up, and the work goes on
            loop.call_later(1.0 if ask.ends == "late" else 0.0, self._finish, call)
        return Success(1) if ask.ends == "well" else failed("UNAVAILABLE")

    def _finish(self, call: Call) -> None:
        self.running -= 1
        call.ended()
