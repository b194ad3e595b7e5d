"""One seed, told from beginning to end: processes begin, die, sleep and take over, until the run has ended."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

from langgraph.checkpoint.memory import InMemorySaver

from checkpoints import workers
from checkpoints.approvals import Approvals
from checkpoints.runs import OPEN
from graph.gateway import Agent
from graph.result import RunResult
from nodes import schemas
from plans.errors import ApprovalConflict, DatabaseUnavailable, RunBusy, StaleOwner, UnknownThread
from plans.principals import Principal
from tests.simulation.doors import Gone, MemoryDatabase, Wire
from tests.simulation.laws import check_ended, look_around
from tests.simulation.memory_engine import agent_of, forget, open_memory_engine
from tests.simulation.memory_saver import lose
from tests.simulation.people import ScriptedModel, decision
from tests.simulation.plot import Plot
from tests.simulation.server import Server
from tests.simulation.timeline import Stuck, Timeline
from tests.simulation.toolkit import REGISTRY, stage
from tests.simulation.virtual_loop import VirtualLoop
from tests.simulation.world import World

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.session import Session

THREAD = "t"
MOST_STEPS = 60_000
"""Callbacks after which a run that has not ended is taken for one that never will."""

SEEN = 0.8
"""The share of deaths that others can see at once; else a whole machine is gone, and nobody knows what it does."""

BURIALS = 3
"""How often a dead process is told to end: what is cancelled may begin to clean up, and hang in that."""

Act = Callable[[Agent], Coroutine[Any, Any, RunResult]]


@dataclass(eq=False)
class Process:
    """One worker: its loop, its wire, and whether it still lives."""

    name: str
    worker: str
    loop: VirtualLoop
    wire: Wire
    model: ScriptedModel
    engine: Engine = field(init=False)
    task: asyncio.Task[RunResult] = field(init=False)
    sessions: dict[str, Session] = field(default_factory=dict)
    dead: bool = False
    was_paused: bool = False
    woke_at: float = float("-inf")


class Story:
    """The supervisor: it starts what is to run next, and kills what the plot says."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        self.timeline = Timeline(plot.chance("turns"))
        self.world = World(plot, Server(self.timeline))
        self.tables = InMemorySaver()
        self.living: list[Process] = []
        self.buried: list[Process] = []
        self.crashes = list(plot.crashes)
        self.pauses = [plot.pause] if plot.pause is not None else []
        self.strikes_in_effects = plot.strikes_in_effects
        self.starting = 0
        self.number = 0
        self.person = VirtualLoop(self.timeline)
        self.results: list[RunResult] = []
        self.world.server.on_asked.append(self._asked)
        self.world.server.on_row.append(self._row)
        self.timeline.on_pass.append(lambda: look_around(self.world, self.living))

    def tell(self) -> World:
        """Play it to its end, then check what has become of everything."""
        self.timeline.run(self.person)
        self._start(self._begin)
        self._play_on()
        told = self._told()
        self.crashes, self.pauses = [], []
        self._start(self._go_on)
        self._play_on()
        if self._told() != told:
            self.world.broken("something has happened although the run was over")
        check_ended(self.world, self.results)
        self.world.over = True
        self._bury_all()
        return self.world

    def _play_on(self) -> None:
        while not self.world.wrong and not self._over():
            try:
                self.timeline.step()
            except Stuck:
                self.world.broken("nothing is due any more, and the run has not ended")
            if self.timeline.steps > MOST_STEPS:
                self.world.broken("the run does not end")
            for process in list(self.living):
                self._tend(process)

    def _told(self) -> tuple[int, int]:
        """How many rows there are, and how many calls there were."""
        rows = sum(len(rows) for rows in self.world.server.journal.values())
        return rows, self.world.numbers.total()

    def _over(self) -> bool:
        ended = [run for run in self.world.server.runs.values() if run["status"] not in OPEN | {"limited"}]
        limited = any(run["status"] == "limited" for run in self.world.server.runs.values())
        return bool(ended or limited) and not self.living and not self.starting

    def _start(self, act: Act) -> None:
        self.number += 1
        order = self.plot.chance("order", self.number)
        loop = VirtualLoop(self.timeline, order=order, shuffle=self.plot.shuffle)
        wire = Wire(self.world.server, self.plot.chance("wire", self.number), self.plot.latency_s, self.plot.lost)
        name = f"p{self.number}"
        process = Process(name, workers.name_of_worker(), loop, wire, ScriptedModel(self.world))
        self.world.processes[loop] = process
        self.living.append(process)
        self.timeline.run(loop)
        self.world.say(f"{process.name} begins")
        process.task = loop.create_task(self._life(process, act))

    async def _life(self, process: Process, act: Act) -> RunResult:
        name, worker = process.name, process.worker
        opened = open_memory_engine(process.wire, REGISTRY, owner=name, worker=worker, model=process.model)
        async with opened as process.engine:
            return await act(agent_of(process.engine, process.wire, self.tables))

    async def _begin(self, agent: Agent) -> RunResult:
        limits = {"concurrency": self.plot.concurrency}
        return await agent.run(plan=self.plot.plan, thread_id=THREAD, request_id="request", limits=limits)

    async def _go_on(self, agent: Agent) -> RunResult:
        try:
            return await agent.resume(THREAD)
        except UnknownThread:
            return await self._begin(agent)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self.starting += 1

        def do() -> None:
            self.starting -= 1
            act()

        self.timeline.at(self.timeline.now + seconds, do)

    def _tend(self, process: Process) -> None:
        """After each callback: has this process ended, and is its time up?"""
        if process.task.done():
            self._ended(process)
        elif self.crashes and process.loop.handled >= self.crashes[0] and self._may_strike(process):
            self.crashes.pop(0)
            self._kill(process)
        elif self.pauses and process.loop.handled >= self.pauses[0] and self.timeline.runs(process.loop):
            self.pauses.pop(0)
            self._pause(process)

    def _may_strike(self, process: Process) -> bool:
        return not self.strikes_in_effects or any(request.call.process is process for request in self.world.on_the_wire)

    def _kill(self, process: Process) -> None:
        draw = self.plot.chance("kill", process.name)
        self.world.say(f"{process.name} is killed")
        self._gone(process)
        process.dead = process.wire.cut = True
        is_seen = draw.random() < SEEN
        if is_seen:  # the server sees the session end, and the machine is there to say that the process is gone
            self.world.server.cut(process.wire.session)
            workers._present.discard(process.worker)
        self.world.dies(process, is_seen=is_seen)
        if not self.living:  # what another one may have read already is not lost
            lose(self.tables, THREAD, draw.choice((0, 0, 1, 2, 5)))
        for _ in range(2 if self.plot.twins else 1):
            self._later(draw.choice((0.0, 0.2, 3.0)), lambda: self._start(self._go_on))

    def _gone(self, process: Process) -> None:
        self.living.remove(process)
        self.buried.append(process)
        if self.timeline.runs(process.loop):
            self.timeline.pause(process.loop)

    def _pause(self, process: Process) -> None:
        """The process stops in the middle of everything; another one tries, and gets the run when the lease is over."""
        self.world.say(f"{process.name} stops")
        process.was_paused = True
        self.timeline.pause(process.loop)
        draw = self.plot.chance("pause", process.name)
        self._later(1.0, lambda: self._start(self._go_on))
        self._later(draw.choice((0.5, 20.0, 45.0, 100.0)), lambda: self._continue(process))

    def _continue(self, process: Process) -> None:
        if not process.dead:
            self.world.say(f"{process.name} goes on")
            # What fell due while it slept may all come before the call that it slept in front of.
            process.woke_at = process.loop.handled + process.loop.overdue()
            self.timeline.run(process.loop)

    def _ended(self, process: Process) -> None:
        self._gone(process)
        error = process.task.exception()
        if error is None:
            result = process.task.result()
            self.world.say(f"{process.name} ends: {result.status} {str(result.answer)[:80]!r}")
            self.results.append(result)
        else:
            self.world.say(f"{process.name} ends: {type(error).__name__}: {str(error)[:100]}")
            self._take(process, error)
        self._look_at_what_is_left(process)
        if result_is_open(self.world) and not self.living and not self.starting and error is not None:
            self._later(5.0, lambda: self._start(self._go_on))

    def _try_again(self) -> None:
        """Somebody else had the run; is there still somebody?"""
        if result_is_open(self.world) and not any(self.timeline.runs(process.loop) for process in self.living):
            self._start(self._go_on)

    def _take(self, process: Process, error: BaseException) -> None:
        if isinstance(error, RunBusy):
            self._later(5.0, self._try_again)
        elif isinstance(error, DatabaseUnavailable) and process.was_paused:
            self.world.say("it slept through the time in which its rows had to be stored")
        elif not isinstance(error, StaleOwner | Gone):
            self.world.broken(f"{process.name} fails: {type(error).__name__}: {error}")

    def _look_at_what_is_left(self, process: Process) -> None:
        """Who has ended leaves nothing behind: no work in flight, no error that nobody saw."""
        if left := self.world.running.get(process):
            self.world.broken(f"{process.name} has ended, and in flight are {[call.unit for call in left]}")
        if process.loop.errors and not process.was_paused:
            self.world.broken(f"{process.name} leaves errors that nobody saw: {process.loop.errors}")

    def _asked(self, request: dict[str, Any]) -> None:
        draw = self.plot.chance("answers", request["approval_id"])
        self.world.say(f"asked: {request['kind']} {request['step_id']} {request['reason'][:60]}")
        seconds = draw.choice((0.0, 0.7, 5.0, 60.0))
        self.timeline.at(self.timeline.now + seconds, lambda: void(self.person.create_task(self._answer(request))))

    async def _answer(self, request: dict[str, Any]) -> None:
        """Decide; then, if nobody drives the run, go on with it: that is the rule for everybody who decides."""
        wire = Wire(self.world.server, self.plot.chance("person"))
        said = decision(self.world, request)
        self.world.say(f"the person: {said.type} {request['step_id']}")
        try:
            await Approvals(MemoryDatabase(wire)).decide(
                request["approval_id"], said, Principal(name="ann"), args_sha256=request["args_sha256"]
            )
        except ApprovalConflict as conflict:
            self.world.say(f"the person: {conflict}")
        lease = self.world.server.leases[request["run_id"]]
        if lease.owner is None and result_is_open(self.world):
            self._start(self._go_on)

    def _row(self, row: dict[str, Any]) -> None:
        self.world.say(f"row {row['fence']}.{row['n']} {row['kind']} {row['step_id'] or ''} {row['attempt']}")

    def _bury_all(self) -> None:
        """End what was left hanging, out of reach of the world, so that nothing of it is seen again."""
        for process in [*self.buried, *self.living]:
            process.wire.cut = True
            workers._present.discard(process.worker)
            for _ in range(BURIALS):
                for task in asyncio.all_tasks(process.loop):
                    task.cancel()
                self._run_out(process.loop)
            process.loop.close()
            forget(process.loop)
        self.person.close()

    def _run_out(self, loop: VirtualLoop) -> None:
        """Whatever this loop still wants to do, however late, within reason: its process can change nothing."""
        for _ in range(2_000):
            if (due := loop.due()) is None:
                return
            self.timeline.now = max(self.timeline.now, due)
            loop.step()


def void(_: object) -> None:
    """Nothing."""


def result_is_open(world: World) -> bool:
    """Whether there is still something to be done."""
    return any(run["status"] in OPEN - {"limited"} for run in world.server.runs.values()) or not world.server.runs


class _Calendar(datetime):
    """The time of new ids: always the same, for an id is part of a seed."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Calendar:
        """The beginning."""
        return cls(2026, 1, 1, tzinfo=tz)


@contextmanager
def _same_every_time(chance: Random) -> Iterator[None]:
    """Ids by the seed, and nothing that happens when the collector likes."""
    collected = gc.isenabled()
    gc.disable()
    try:
        with mock.patch("os.urandom", chance.randbytes), mock.patch("nodes.ids.datetime", _Calendar):
            yield
    finally:
        if collected:
            gc.enable()


def play(plot: Plot) -> World:
    """The world after the story of this plot."""
    schemas.load()
    with _same_every_time(plot.chance("ids")):
        story = Story(plot)
        stage.append(story.world)
        try:
            return story.tell()
        finally:
            stage.pop()
