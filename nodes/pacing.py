"""Step runs that would only wait for their tool: they stay ready, and take none of the run's places meanwhile.

A tool that takes one call at a time would else fill a run with steps that wait for it, each with its deadline running.
The tool's limiter still has the last word: other runs call the same tool.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from tools.spec import ToolSpec
from tools.tool import Tool


@dataclass
class Pacing:
    """What one run has under way of each tool. `monotonic` tells the time of `next_at`."""

    monotonic: Callable[[], float]
    tools: Mapping[str, Tool]
    _specs: dict[str, ToolSpec] = field(default_factory=dict)
    _running: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _starts: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _held: defaultdict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def follow(self, name: str, spec: ToolSpec) -> None:
        """Take over what was changed about a tool while running."""
        self._specs[name] = spec

    def holds(self, unit: str, name: str) -> bool:
        """Whether this step run has to wait for its tool; it is then kept until `free` gives it back."""
        if self._room(name) > 0:
            return False
        self._held[name][unit] = None
        return True

    def started(self, unit: str, name: str) -> None:
        """This step run is about to call the tool."""
        self._running[name].add(unit)
        if (rate := self._spec(name).rate_limit) is not None:
            starts = self._starts[name]
            starts.append(self.monotonic())
            while len(starts) > rate.calls:
                starts.popleft()

    def ended(self, unit: str) -> None:
        """This step run's attempt is over."""
        for units in self._running.values():
            units.discard(unit)

    def free(self) -> list[str]:
        """Those that were held and for which there is room now, in the order in which they came."""
        freed: list[str] = []
        for name in [name for name, units in self._held.items() if units]:
            units, room = self._held[name], self._room(name)
            taken = list(units) if room == math.inf else list(islice(units, max(0, int(room))))
            for unit in taken:
                del units[unit]
            freed += taken
        return freed

    def forget(self) -> None:
        """The plan is another one: whoever is still ready asks again."""
        self._held.clear()

    @property
    def is_holding(self) -> bool:
        """Whether somebody waits."""
        return any(self._held.values())

    def next_at(self) -> float | None:
        """The earliest instant at which a rate lets somebody go who waits for nothing else; None if there is none."""
        waits = [self._turn(name) for name, units in self._held.items() if units and self._slots(name) > 0]
        return min(waits, default=None)

    def _room(self, name: str) -> float:
        return min(self._slots(name), self._starts_left(name))

    def _slots(self, name: str) -> float:
        return (self._spec(name).concurrency or math.inf) - len(self._running[name])

    def _starts_left(self, name: str) -> float:
        rate = self._spec(name).rate_limit
        if rate is None:
            return math.inf
        now, starts = self.monotonic(), self._starts[name]
        while starts and starts[0] + rate.per_s <= now:
            starts.popleft()
        return rate.calls - len(starts)

    def _turn(self, name: str) -> float:
        rate, starts = self._spec(name).rate_limit, self._starts[name]
        return starts[-rate.calls] + rate.per_s if rate is not None and len(starts) >= rate.calls else self.monotonic()

    def _spec(self, name: str) -> ToolSpec:
        return self._specs.get(name) or self.tools[name].spec
