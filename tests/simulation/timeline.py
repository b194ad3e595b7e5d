"""The one clock of a simulated world, and the loops of its processes, which take turns."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

from tests.simulation.virtual_loop import VirtualLoop

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Wall time at virtual time 0."""

T = TypeVar("T")


def chance(*seed: object) -> Random:
    """Chance that is the same for the same seed, on every machine and in every process."""
    return Random(":".join(map(str, seed)))  # noqa: S311 (chance that can be had again is the purpose)


class Stuck(AssertionError):
    """Nothing is due any more, and what was waited for has not come."""


class Timeline:
    """Virtual time in seconds. It passes only when no loop that runs has anything to do at the present instant.

    `on_pass` is asked each time before it does.
    """

    def __init__(self, order: Random | None = None) -> None:
        self.now = 0.0
        self.steps = 0
        self.on_pass: list[Callable[[], None]] = []
        self._order = order
        self._loops: list[VirtualLoop] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = 0

    def wall(self) -> float:
        """Seconds since the epoch."""
        return EPOCH.timestamp() + self.now

    def moment(self) -> datetime:
        """Wall time, as a database gives it."""
        return EPOCH + timedelta(seconds=self.now)

    def run(self, loop: VirtualLoop) -> None:
        """Let this loop take part from now on."""
        self._loops.append(loop)

    def pause(self, loop: VirtualLoop) -> None:
        """Let this loop take part no more, until `run` is called for it again."""
        self._loops.remove(loop)

    def runs(self, loop: VirtualLoop) -> bool:
        """Whether this loop takes part."""
        return loop in self._loops

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Do this at that time, whatever becomes of any process."""
        self._numbers += 1
        heapq.heappush(self._events, (when, self._numbers, act))

    def step(self) -> None:
        """Run one callback of one loop, or let time pass until there is one. Stuck if there never will be."""
        self.steps += 1
        due = [(when, loop) for loop in self._loops if (when := loop.due()) is not None]
        next_event = self._events[0][0] if self._events else None
        times = [when for when, _ in due] + ([next_event] if next_event is not None else [])
        if not times:
            raise Stuck(f"at {self.now:.3f} s nothing is due any more")
        if min(times) > self.now:
            for look in self.on_pass:
                look()
            self.now = min(times)
        if next_event is not None and next_event <= self.now:
            heapq.heappop(self._events)[2]()
            return
        ready = [loop for when, loop in due if when <= self.now]
        loop = ready[0] if self._order is None or len(ready) == 1 else self._order.choice(ready)
        loop.step()

    def complete(self, loop: VirtualLoop, work: Coroutine[Any, Any, T]) -> T:
        """Run until this work on this loop is over."""
        task = loop.create_task(work)
        while not task.done():
            self.step()
        return task.result()


def simulated(work: Coroutine[Any, Any, T], timeline: Timeline | None = None) -> T:
    """Run one piece of work on virtual time, alone in its world."""
    timeline = timeline or Timeline()
    loop = VirtualLoop(timeline)
    timeline.run(loop)
    try:
        return timeline.complete(loop, work)
    finally:
        loop.close()
