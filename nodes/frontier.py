"""Which step runs may start, the one with the longest path ahead of it first; kept up to date step by step.

A step is ready when each of its dependencies is resolved: done, skipped, or failed for good. Whether it then runs, is
skipped or runs with what there is, `admit` says.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container

from nodes.fold import RunFold
from nodes.step_run import StepRun, base_id
from plans.plan import Plan
from plans.schedule import dependents_of, edges_of, remaining_path

_PENDING = StepRun()
PARKED = ("risk", "clarification")
"""What a step asks before it starts, and waits for."""


class Frontier:
    """The ready step runs of one plan revision. Building it is linear; each settled step costs its dependents.

    `in_flight` names those that have started: of a read that runs the picture knows nothing before it ends. `unchecked`
    says of a finished step that the plan is to be asked first whether it still holds: it starts for that once more, and
    what depends on it waits.
    """

    def __init__(
        self,
        plan: Plan,
        fold: RunFold,
        in_flight: Container[str] = (),
        unchecked: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._fold = fold
        self._unchecked = unchecked
        self._in_flight = in_flight
        self._edges = edges_of(plan.steps)
        self._dependents = dependents_of(self._edges)
        self._remaining = remaining_path(self._edges)
        self._position = {step.id: place for place, step in enumerate(plan.steps)}
        self._resolved = {step_id for step_id in self._edges if fold.is_over(step_id) and not unchecked(step_id)}
        self._waiting = {s: sum(d not in self._resolved for d in needed) for s, needed in self._edges.items()}
        self._ready: list[tuple[float, int, str]] = []
        self._timed: list[tuple[float, str]] = []
        self._queued: set[str] = set()
        self.parked: set[str] = {request.step_id for request in fold.asked.values() if request.kind in PARKED}
        for step_id, waiting in self._waiting.items():
            if waiting == 0 or unchecked(step_id):
                self.push(step_id)
        for unit, run in fold.steps.items():  # what is in doubt waits for nothing: its arguments are stored
            if base_id(unit) in self._edges and (unit not in self._edges or run.in_doubt is not None):
                self.push(unit)

    def push(self, unit: str) -> None:
        """Let a step run ask to start, if it still may; more than once does no harm."""
        if unit in self._queued or not self._may_start(unit):
            return
        self._queued.add(unit)
        not_before = self._fold.steps.get(unit, _PENDING).not_before
        if not_before is None:
            self._push_ready(unit)
        else:
            heapq.heappush(self._timed, (not_before, unit))

    def pop(self, now: float) -> str | None:
        """The most urgent step run that may start at this wall time; None if there is none."""
        while self._timed and self._timed[0][0] <= now:
            self._push_ready(heapq.heappop(self._timed)[1])
        while self._ready:
            unit = heapq.heappop(self._ready)[2]
            self._queued.discard(unit)
            if self._may_start(unit):
                return unit
        return None

    def next_at(self) -> float | None:
        """The earliest wall time at which a waiting step run may start; None if none waits."""
        while self._ready and not self._may_start(self._ready[0][2]):
            self._queued.discard(heapq.heappop(self._ready)[2])
        if self._ready:
            return 0.0
        while self._timed and not self._may_start(self._timed[0][1]):
            self._queued.discard(heapq.heappop(self._timed)[1])
        return self._timed[0][0] if self._timed else None

    def resolved(self, step_id: str) -> None:
        """A step is settled for good: its dependents may be ready now."""
        if step_id in self._resolved or step_id not in self._edges or not self._fold.is_over(step_id):
            return
        if self._unchecked(step_id):
            return
        self._resolved.add(step_id)
        for dependent in self._dependents[step_id]:
            self._waiting[dependent] -= 1
            if self._waiting[dependent] == 0:
                self.push(dependent)

    def _push_ready(self, unit: str) -> None:
        step_id = base_id(unit)
        heapq.heappush(self._ready, (-self._remaining[step_id], self._position[step_id], unit))

    def _may_start(self, unit: str) -> bool:
        if unit in self._in_flight or unit in self._fold.reached:
            return False
        run = self._fold.steps.get(unit, _PENDING)
        if run.status == "pending":
            step_id = base_id(unit)
            is_due = self._waiting.get(step_id, 1) == 0 and unit not in self.parked
            return is_due and (unit == step_id or self._fold.status(step_id) == "running")
        if run.status == "done":
            return unit in self._edges and self._unchecked(unit)
        return run.status == "running" and run.in_doubt is not None and not (run.failure and not run.resend)
