"""Starts every step run the moment its own dependencies and limits allow, the most urgent first. No waves, no barriers.

Work in flight belongs to the run, not to the node that started it: `drive` returns as soon as a decision is needed and
leaves the rest running; the next `drive` picks it up again. While the decision is made what becomes ready and changes
nothing in the world starts all the same; effects wait for it, for it may end or change the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nodes.answers import take_decisions
from nodes.attempt import gather, run_unit
from nodes.frontier import Frontier
from nodes.pacing import Pacing
from nodes.recording import record_failure
from nodes.step_run import base_id
from plans.failure import Failure
from plans.plan import Plan, highest_risk

if TYPE_CHECKING:
    from nodes.session import Session

DECISIONS_EVERY_S = 1.0
"""How often the table of approvals is looked at while something runs and somebody is asked."""
STORING_S = 10.0
"""How long after its deadline an effect's end may take to be stored when a drive ends."""


class Scheduler:
    """The step runs of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._plan: Plan | None = None
        self._frontier: Frontier | None = None
        self._open: dict[str, set[str]] = {}
        self._wake = asyncio.Event()
        self._broken: list[BaseException] = []
        self._stopping = False
        self._deciding = False
        self._look_at = session.clock.monotonic() + DECISIONS_EVERY_S
        self._watches: dict[asyncio.Event, asyncio.Task[None]] = {}
        self.pacing = Pacing(session.clock.monotonic, session.engine.registry)

    @property
    def frontier(self) -> Frontier:
        """The ready step runs of the current revision."""
        if self._frontier is None or self._plan is not self.session.plan:
            self._plan = self.session.plan
            self._frontier = Frontier(self._plan, self.session.fold, self.tasks, self.session.unchecked)
            self.pacing.forget()
            self._open = {}
            for step_id, elements in self.session.fold.expansions.items():
                self.expanded(step_id, len(elements))
        return self._frontier

    def expanded(self, step_id: str, count: int) -> None:
        """A `for_each` step has become this many children."""
        if self.session.fold.status(step_id) != "running" or step_id in self.tasks:
            return
        units = [f"{step_id}[{index}]" for index in range(count)]
        self._open[step_id] = {unit for unit in units if not self.session.fold.is_over(unit)}
        for unit in units:
            self.frontier.push(unit)
        self._gather_if_complete(step_id)

    def moved(self, unit: str) -> None:
        """Something has changed about this step run: it may start again, or its dependents may."""
        self.frontier.push(unit)
        step_id = base_id(unit)
        if unit == step_id:
            self.frontier.resolved(unit)
        elif step_id in self._open and self.session.fold.is_over(unit):
            self._open[step_id].discard(unit)
            self._gather_if_complete(step_id)
        self._wake.set()

    def park(self, unit: str) -> None:
        """This step run waits for a person: it does not ask again until something is decided."""
        self.frontier.parked.add(unit)

    def unpark(self, unit: str) -> None:
        """A person has decided: the step run may ask again."""
        self.frontier.parked.discard(unit)
        self.moved(unit)

    def replaced_by(self, plan: Plan) -> None:
        """A new revision is about to count: reads of steps that it drops or changes end here, and give no result."""
        now = {step.id: step for step in plan.steps}
        for unit, task in self.tasks.items():
            step_id = base_id(unit)
            if unit not in self.session.acting and now.get(step_id) != self.session.step(step_id):
                task.cancel()

    @property
    def idle(self) -> bool:
        """Whether nothing runs, nothing is ready and nothing waits for its time. Nothing is ready while a person is to
        look at the plan."""
        if self._may_not_start:
            return not self.tasks
        return not self.tasks and self.frontier.next_at() is None and not self.pacing.is_holding

    @property
    def _may_not_start(self) -> bool:
        """Whether a person is to look at the plan before anything else of it starts."""
        return self.session.fold.in_review is not None

    async def drive(self) -> None:
        """Start and collect until a decision is needed or nothing is left to run."""
        self._deciding = False
        self._listen()
        while True:
            self._raise_if_broken()
            if self.session.fold.asked:
                await self._look_for_decisions()
            if self.session.fold.is_edited or self.session.cancelled or self.session.lease.told.is_set():
                return  # what was said may change the plan: nothing starts before it is taken
            if self.session.decision_needed:
                self._deciding = True
                self._start_meanwhile()
                return
            self._start_ready()
            if self.idle:
                return
            await self._something()

    def _listen(self) -> None:
        """Be woken by whoever cancels the run or says something to it."""
        lease = self.session.lease
        for event in (lease.cancel, lease.told):
            if (watch := self._watches.get(event)) is None or watch.done():
                self._watches[event] = asyncio.create_task(self._wake_on(event))

    def _start_ready(self, may: Callable[[str], bool] = lambda _: True) -> None:
        """Start what is ready, as far as there is room; what may not start now stays ready."""
        if self._may_not_start:
            return
        limit = self.session.head.limits.concurrency
        left = []
        for freed in self.pacing.free():
            self.frontier.push(freed)
        while len(self.tasks) < limit and (unit := self.frontier.pop(self.session.clock.wall())) is not None:
            if not may(unit):
                left.append(unit)
            elif not self._waits_for_its_tool(unit):
                self._launch(unit, run_unit(self.session, unit))
        for unit in left:
            self.frontier.push(unit)

    def _waits_for_its_tool(self, unit: str) -> bool:
        """Whether it stays ready because of its tool's limits; one that may have to ask a person asks at once."""
        run, step = self.session.fold.run(unit), self.session.step(base_id(unit))
        tool = self.session.engine.registry.get(run.tool or step.tool or "")
        if tool is None or run.status == "done" or (step.for_each is not None and unit == step.id):
            return False
        asks = step.require_approval or highest_risk(step.risk, tool.risk) == "high"
        if not asks and run.in_doubt is None and self.pacing.holds(unit, tool.name):
            return True
        self.pacing.started(unit, tool.name)
        return False

    def _start_meanwhile(self) -> None:
        """Between two drives: what changes nothing in the world need not wait for a verdict on something else, unless
        it is already said that the plan ends or is written anew. Where only a sub-goal is being planned nothing waits:
        that changes no other step."""
        over = any(verdict.verdict in ("finish", "global_replan") for verdict in self.session.fold.queue)
        ends = (
            over or self._stopping or bool(self._broken) or self.session.cancelled or self.session.lease.told.is_set()
        )
        if self._deciding and not ends:
            waits = self.session.fold.undecided or self.session.fold.queue
            self._start_ready(self._only_reads if waits else lambda _: True)

    def _only_reads(self, unit: str) -> bool:
        run, step = self.session.fold.run(unit), self.session.step(base_id(unit))
        tool = self.session.engine.registry.get(run.tool or step.tool or "")
        return run.in_doubt is None and (run.status == "done" or tool is None or tool.effect == "read")

    def _ended(self, unit: str, task: asyncio.Task[None]) -> None:
        self.tasks.pop(unit, None)
        self.pacing.ended(unit)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken.append(error)
        elif not self._stopping and unit in self.session.fold.expansions and not self.session.fold.is_over(unit):
            self.expanded(unit, len(self.session.fold.expansions[unit]))
        elif not self._stopping:
            self.moved(unit)
        self._wake.set()
        self._start_meanwhile()

    def _gather_if_complete(self, step_id: str) -> None:
        if not self._open[step_id]:
            del self._open[step_id]
            self._launch(step_id, gather(self.session, step_id))

    def _launch(self, unit: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"{self.session.head_run_id} {unit}")
        self.tasks[unit] = task
        task.add_done_callback(lambda done: self._ended(unit, done))

    async def _something(self) -> None:
        """Wait until something has ended, or the next waiting step run's time has come."""
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._longest_wait_s()):
                await self._wake.wait()

    def _longest_wait_s(self) -> float | None:
        """Until the next waiting step run's time, or the next look at what people have decided."""
        clock = self.session.clock
        waits = []
        if len(self.tasks) < self.session.head.limits.concurrency and not self._may_not_start:
            due, turn = self.frontier.next_at(), self.pacing.next_at()
            waits += [] if due is None else [due - clock.wall()]
            waits += [] if turn is None else [turn - clock.monotonic()]
        if self.session.fold.asked:
            waits.append(self._look_at - clock.monotonic())
        return max(0.0, min(waits)) if waits else None

    async def _look_for_decisions(self) -> None:
        """A decision that comes while other branches run needs no interrupt."""
        now = self.session.clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + DECISIONS_EVERY_S
            await take_decisions(self.session)

    async def _wake_on(self, event: asyncio.Event) -> None:
        await event.wait()
        self._wake.set()

    def _raise_if_broken(self) -> None:
        """A bug or a lost lease in a step's task is the node's to raise: nothing is swallowed."""
        if self._broken:
            raise self._broken.pop(0)

    async def settle(self) -> None:
        """Wait for everything in flight; nothing new starts."""
        self._deciding = False
        while self.tasks:
            await asyncio.wait(list(self.tasks.values()))
            await asyncio.sleep(0)
        self._raise_if_broken()

    async def stop(self) -> None:
        """End what is in flight: reads are cancelled, effects that have begun are awaited to their deadline and, where
        their end could not be stored by then, recorded as unknown."""
        self._stopping = True
        for watch in self._watches.values():
            watch.cancel()
        for unit, task in list(self.tasks.items()):
            if unit not in self.session.acting:
                task.cancel()
        acting = {unit: task for unit, task in self.tasks.items() if unit in self.session.acting}
        due = max((self.session.acting[unit] for unit in acting), default=0.0) + STORING_S
        if self.tasks:
            await asyncio.wait(list(self.tasks.values()), timeout=max(0.0, due - self.session.clock.monotonic()))
        for unit, task in acting.items():
            if not task.done():
                await self._give_up(unit, task)

    async def _give_up(self, unit: str, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=STORING_S)
        run = self.session.fold.run(unit)
        if run.in_doubt is not None and run.failure is None:
            tool = run.in_doubt["tool"]
            message = f"whether {tool} has happened is not known: what it gave could not be stored when the run stopped"
            failure = Failure(code="UNKNOWN_OUTCOME", message=message, step_id=unit, tool=tool, attempt=run.attempt)
            await record_failure(self.session, unit, failure)
