"""Task graphs with a known optimum: the schedule reaches it, and stays within its bound with few workers."""

from __future__ import annotations

import heapq
from typing import Any

import pytest

from plans.moves import Status
from plans.schedule import cycle_in, in_order, ready, remaining_path
from tests.cases.shared import lines, needs

FILE = "asynchow/plans.jsonl"
pytestmark = needs(FILE)


def makespan(edges: dict[str, tuple[str, ...]], duration: dict[str, float], workers: int) -> float:
    """When the last step ends in virtual time, longest remaining path first."""
    priority = remaining_path(edges, duration.__getitem__)
    statuses: dict[str, Status] = {}
    running: list[tuple[float, str]] = []
    now = 0.0
    while len(statuses) < len(edges) or running:
        waiting = sorted(ready(edges, statuses), key=lambda step: -priority[step])
        for step in waiting[: workers - len(running)]:
            statuses[step] = "running"
            heapq.heappush(running, (now + duration[step], step))
        now, ended = heapq.heappop(running)
        statuses[ended] = "done"
    return now


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines(FILE)])
def test_the_schedule_takes_no_longer_than_it_must(case: dict[str, Any]) -> None:
    """With enough workers the optimum exactly; with k, at most path × (1 - 1/k) + work / k."""
    edges = {step["id"]: tuple(step["depends_on"]) for step in case["steps"]}
    duration = {step["id"]: step["duration_s"] for step in case["steps"]}
    optimum, work = case["optimal_makespan_s"], sum(duration.values())
    assert cycle_in(edges) is None
    assert sorted(in_order(edges)) == sorted(edges)
    assert max(remaining_path(edges, duration.__getitem__).values()) == pytest.approx(optimum)
    assert makespan(edges, duration, len(edges)) == pytest.approx(optimum)
    for workers in (1, 2, 3):
        bound = optimum * (1 - 1 / workers) + work / workers
        assert makespan(edges, duration, workers) <= bound * (1 + 1e-9)
