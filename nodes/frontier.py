"""Which step runs may start, the one with the longest path ahead of it first; kept up to date step by step.

A step is ready when each of its dependencies is resolved: done, skipped, or failed for good. Whether it then runs, is
skipped or runs with what there is, `admit` says.
"""

from __future__ import annotations

import heapq

from nodes.fold import RunFold, StepRun, base_id
from plans.plan import Plan
from plans.schedule import dependents_of, edges_of, remaining_path


class Frontier:
    """The ready step runs of one plan revision. Building it is linear; each settled step costs its dependents."""

    def __init__(self, plan: Plan, fold: RunFold) -> None:
        self._fold = fold
        self._edges = edges_of(plan.steps)
        self._dependents = dependents_of(self._edges)
        self._remaining = remaining_path(self._edges)
        self._position = {step.id: place for place, step in enumerate(plan.steps)}
        self._resolved = {step_id for step_id in self._edges if fold.is_over(step_id)}
        self._waiting = {s: sum(d not in self._resolved for d in needed) for s, needed in self._edges.items()}
        self._heap: list[tuple[float, int, str]] = []
        self._queued: set[str] = set()
        self.parked: set[str] = {request.step_id for request in fold.asked.values() if request.kind == "risk"}
        for step_id, waiting in self._waiting.items():
            if waiting == 0:
                self.push(step_id)
        for unit in fold.steps:
            if unit not in self._edges and base_id(unit) in self._edges:
                self.push(unit)

    def push(self, unit: str) -> None:
        """Let a step run ask to start, if it still may; more than once does no harm."""
        if unit not in self._queued and self._may_start(unit):
            step_id = base_id(unit)
            heapq.heappush(self._heap, (-self._remaining[step_id], self._position[step_id], unit))
            self._queued.add(unit)

    def pop(self, now: float) -> str | None:
        """The most urgent step run that may start at this wall time; None if there is none."""
        later: list[tuple[float, int, str]] = []
        found = None
        while self._heap and found is None:
            entry = heapq.heappop(self._heap)
            unit = entry[2]
            if not self._may_start(unit):
                self._queued.discard(unit)
            elif (self._fold.run(unit).not_before or 0.0) > now:
                later.append(entry)
            else:
                self._queued.discard(unit)
                found = unit
        for entry in later:
            heapq.heappush(self._heap, entry)
        return found

    def next_at(self) -> float | None:
        """The earliest wall time at which a waiting step run may start; None if none waits."""
        times = [self._fold.run(unit).not_before or 0.0 for _, _, unit in self._heap if self._may_start(unit)]
        return min(times, default=None)

    def resolved(self, step_id: str) -> None:
        """A step is settled for good: its dependents may be ready now."""
        if step_id in self._resolved or step_id not in self._edges or not self._fold.is_over(step_id):
            return
        self._resolved.add(step_id)
        for dependent in self._dependents[step_id]:
            self._waiting[dependent] -= 1
            if self._waiting[dependent] == 0:
                self.push(dependent)

    def _may_start(self, unit: str) -> bool:
        run = self._fold.steps.get(unit, _PENDING)
        if run.status == "pending":
            return self._waiting.get(base_id(unit), 1) == 0 and unit not in self.parked
        return run.status == "running" and run.in_doubt is not None and not (run.failure and not run.resend)


_PENDING = StepRun()
