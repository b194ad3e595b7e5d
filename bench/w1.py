"""W1: random DAGs with steps that take time. How much longer does the same work take when every step is journaled?"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.crew import Timed, crew
from bench.figures import Line, Series, percentile, ratios, side_by_side
from bench.recipes import Recipe, Task
from bench.server import Server

SIZES = (20, 60, 100, 140, 200)
OTHERS = ("task", "dbos", "send")
"""Measured once per DAG: what they lose is no question of a few per cent."""


def recipes(sizes: Sequence[int], round_: int) -> Iterator[Recipe]:
    """A DAG per size, another one in each round."""
    for size in sizes:
        yield Recipe(f"w1-{round_}-{size}", "random", size, seed=1_000 * round_ + size)


def measure(server: Server, rounds: int, sizes: Sequence[int] = SIZES, others: Sequence[str] = OTHERS) -> list[Line]:
    """Each DAG by asyncio and by us in turn, without and with failing steps; by the others in the first round."""
    plain, failing, beside = _Pairs(), _Pairs(), {name: list[float]() for name in others}
    with crew(server, ("asyncio", "surestep", *others)) as peers:
        for peer in peers.values():
            peer.run(Recipe("w1-first", "random", 20))
        for round_ in range(rounds):
            for recipe in recipes(sizes, round_):
                limit, ours = (peers[name].run(recipe) for name in ("asyncio", "surestep"))
                plain.add(recipe, limit, ours)
                for name in others if not round_ else ():
                    beside[name].append(peers[name].run(recipe).makespan_s / limit.makespan_s)
                again = replace(recipe, name=f"{recipe.name}-failing", failing=0.1)
                failing.add(again, *(peers[name].run(again) for name in ("asyncio", "surestep")))
    told = side_by_side({name: Series.of(found).told(" ×") for name, found in beside.items()})
    return [
        plain.line("makespan ÷ asyncio's that stores nothing", 1.03, told),
        failing.line("the same, one step in ten failing once and tried again 50 ms later", 1.08, ""),
        plain.delay_line(),
        Line("W1", "whole call ÷ asyncio's, opening and closing the run included", plain.whole().told(" ×", 3)),
    ]


class _Pairs:
    """Runs of asyncio and of ours, of the same recipe one after the other."""

    def __init__(self) -> None:
        self._limit: list[Timed] = []
        self._ours: list[Timed] = []
        self._delays: tuple[list[float], list[float]] = ([], [])

    def add(self, recipe: Recipe, limit: Timed, ours: Timed) -> None:
        for timed, delays in zip((limit, ours), self._delays, strict=True):
            delays.extend(start_delays(recipe.tasks(), timed, recipe.concurrency))
        self._limit.append(limit)
        self._ours.append(ours)

    def line(self, what: str, bound: float, beside: str) -> Line:
        found = ratios([each.makespan_s for each in self._ours], [each.makespan_s for each in self._limit])
        return Line("W1", what, found.told(" ×", 3), found.median, bound, unit=" ×", beside=beside)

    def delay_line(self) -> Line:
        slow, limit = (percentile(delays, 0.99) * 1_000 for delays in reversed(self._delays))
        ours = self._delays[1]
        told = f"{slow:.2f} ms (half within {percentile(ours, 0.5) * 1_000:.2f}; {len(ours):,} starts)"
        what = "a read's start after its last dependency's end, a place being free: 99 of 100 within"
        return Line("W1", what, told, slow, 5.0, unit=" ms", beside=f"asyncio {limit:.2f} ms")

    def whole(self) -> Series:
        return ratios([each.wall_s for each in self._ours], [each.wall_s for each in self._limit])


def start_delays(tasks: Sequence[Task], ours: Timed, places: int) -> list[float]:
    """For each step with dependencies: how long after the last of them its work began, in seconds.

    Only where a place was free all that while, as seen from within the steps: a place that the engine itself still
    holds for a step whose work has ended counts as free.
    """
    began = {number: begin for number, begin, _ in ours.spans}
    ended = {number: end for number, _, end in ours.spans}
    delays = []
    for task in tasks:
        if task.after:
            due = max(ended[number] for number in task.after)
            if _most_at_once(ours, due, began[task.number]) < places:
                delays.append(began[task.number] - due)
    return delays


def _most_at_once(ours: Timed, since: float, until: float) -> int:
    """The most steps whose work was going on at any one moment of an interval that ends before `until`."""
    most, ends = 0, list[float]()
    for _, begin, end in sorted(ours.spans, key=lambda span: span[1]):
        if begin >= until:
            break
        if end > since:
            while ends and ends[0] <= max(begin, since):
                heapq.heappop(ends)
            heapq.heappush(ends, end)
            most = max(most, len(ends))
    return most
