"""Runs the graph for one run until it stops: from its request, or from wherever its checkpoints and its journal are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from langgraph.types import StateSnapshot

from checkpoints.backlog import stale
from checkpoints.runs import OPEN
from graph.archived import archived_picture, unknown
from graph.given import check_id
from graph.result import RunResult
from graph.result_of import result_of
from graph.served import Server, is_served
from graph.standing import standing
from graph.threads import config_of, going_on_from, place_of, request_of
from nodes.acting import acting
from nodes.beginning import LOOK_EVERY_S
from nodes.engine import Engine
from nodes.events import Event
from nodes.fold import RunFold, fold_journal
from nodes.instructions import look_for_instructions
from nodes.versions import readable_state
from plans.errors import RunBusy, StaleOwner

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from checkpoints.runs import RunRecord, RunStatus
    from nodes.session import Session
    from nodes.state import AgentInput, AgentOutput, AgentState, Context
    from plans.principals import Principal

OnEvent = Callable[[Event], None]


class _Overtaken(Exception):
    """Between a look at the checkpoints and the lease somebody else has driven the run."""


class Driver:
    """Drives runs, and tells how they stand. No two drives of one thread at once, and nothing outlives its drive."""

    def __init__(
        self,
        engine: Engine,
        graph: CompiledStateGraph[AgentState, Context, AgentInput, AgentOutput],
        principal: Principal,
        driving: dict[str, str] | None = None,
        server: Server | None = None,
    ) -> None:
        self.engine = engine
        self.graph = graph
        self.principal = principal
        self._driving = driving if driving is not None else {}  # run by thread
        self._server = server

    def acting_as(self, principal: Principal) -> Driver:
        """The same driver for another principal: it knows what this one drives."""
        return Driver(self.engine, self.graph, principal, self._driving, self._server)

    async def answer(
        self, record: RunRecord, on_event: OnEvent | None, *, is_new: bool, on_new_thread: bool
    ) -> RunResult:
        """The one answer of a request, however often and wherever it was made (rule 16).

        Whoever drives its run is waited for, as long as it lives; if it dies, the run goes on here.
        """
        try:
            if not is_new:
                return await self.go_on(record, on_event)
            return await self.begin(record, on_event, on_new_thread=on_new_thread)
        except RunBusy as busy:
            if self._driving.get(record.thread_id, record.run_id) != record.run_id:  # another request's run
                raise
            if on_event is not None:
                on_event(Event(kind="notice", message=f"this request was made before and is waited for: {busy}"))
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            with suppress(RunBusy):
                return await self.go_on(await self.as_it_is(record), on_event)

    async def begin(self, record: RunRecord, on_event: OnEvent | None, *, on_new_thread: bool = False) -> RunResult:
        """From the stored request."""
        if not on_new_thread:
            await self._say_the_end(record)
        try:
            return await self.drive(record, request_of(record), on_event, first=True)
        except _Overtaken:
            return await self.go_on(await self.as_it_is(record), on_event)

    async def go_on(self, record: RunRecord, on_event: OnEvent | None) -> RunResult:
        """From where the thread's checkpoints are: none of this run, an interrupt, in the middle, or at an end."""
        while True:
            try:
                return await self._from_here(record, on_event)
            except _Overtaken:
                record = await self.as_it_is(record)

    async def _from_here(self, record: RunRecord, on_event: OnEvent | None) -> RunResult:
        if record.status not in OPEN:
            with suppress(RunBusy):  # the lease of who has ended it, and died at that: the result is there all the same
                await self._say_the_end(record)
            return result_of(await self.picture(record.run_id), record.status)
        state = await self.graph.aget_state(config_of(record))
        head = readable_state(state.values).get("run")
        if head is None or head.run_id != record.run_id:
            await self._say_the_end(record)
            return await self.drive(record, request_of(record), on_event, seen=state)
        server = self._server_of(record, state)
        # it was let go before its question was written down
        if state.next == ("approve",) and not state.interrupts and server is None:
            await self.drive(record, None, on_event, seen=state)
            state = await self.graph.aget_state(config_of(record))
        if state.interrupts and record.status == "paused" and not await self._anything_new(record):
            return await self._standing(record, on_event)
        if server is not None:
            await server.go_on(record.thread_id, state, self.principal)
            return await self._standing(await self.as_it_is(record), on_event)
        if state.interrupts:
            return await self.drive(record, going_on_from(state.interrupts), on_event, seen=state)
        in_the_middle = state.next and record.status != "limited"
        return await self.drive(record, None if in_the_middle else {"inputs": None}, on_event, seen=state)

    async def _standing(self, record: RunRecord, on_event: OnEvent | None) -> RunResult:
        picture = await self.picture(record.run_id)
        _tell(picture, on_event)
        return result_of(picture, record.status)

    async def goes_on_elsewhere(self, record: RunRecord) -> bool:
        """Whether the run is gone on with by a server, with that server's tools and models."""
        return self._server_of(record, await self.graph.aget_state(config_of(record))) is not None

    def _server_of(self, record: RunRecord, state: StateSnapshot) -> Server | None:
        """The server by which a run goes on that stands in the middle there. What a caller says for his own drive, he
        drives."""
        own = record.run_id in self.engine.limits or record.run_id in self.engine.approve
        return self._server if state.next and is_served(state) and not own else None

    async def drive(
        self,
        record: RunRecord,
        given: Any,
        on_event: OnEvent | None,
        *,
        first: bool = False,
        seen: StateSnapshot | None = None,
    ) -> RunResult:
        """Run the graph until it stops. However that ends, nothing of the run goes on afterwards. Raises RunBusy.

        `seen` is the state for which `given` was chosen, `first` that nobody had driven the run then. _Overtaken where
        another worker has done so since: there the goal, sent once more, would be taken for an instruction.
        """
        async with self._only_driver(record) as session:
            if await self._ended_meanwhile(record, session):
                return result_of(session.fold, await self._status(record))
            if not first:
                await look_for_instructions(session)
            await self._look_again(record, session, first=first, seen=seen)  # last: who waits after it may be overtaken
            _tell(session.fold, on_event)
            try:
                await self._stream(record, given, on_event)
            except (StaleOwner, RunBusy):
                if session.ended_as is None:
                    raise
                # It had ended by itself and was let go. Somebody has answered it at once and gone on, so that only its
                # last checkpoint was refused: how it stands now is in the journal.
            else:
                if session.ended_as is not None:
                    return result_of(session.fold, session.ended_as)
        return result_of(await self.picture(record.run_id), await self._status(record))

    async def _look_again(
        self, record: RunRecord, session: Session, *, first: bool, seen: StateSnapshot | None
    ) -> None:
        """Whether what was decided before the lease was taken still holds. Raises _Overtaken or StaleOwner."""
        if first and session.lease.fence > 1:
            raise _Overtaken
        if seen is not None and place_of(seen) != place_of(await self.graph.aget_state(config_of(record))):
            raise _Overtaken
        if not session.lease.alive(session.clock.monotonic()):  # its first checkpoint would go onto another's last
            raise stale(record.run_id, session.lease.fence)

    async def _stream(self, record: RunRecord, given: Any, on_event: OnEvent | None) -> None:
        saved = self.engine.options.durability
        if on_event is None:  # events that nobody reads cost more than the steps that they are about
            await self.graph.ainvoke(given, config_of(record), stream_mode="updates", durability=saved)
            return
        async for said in self.graph.astream(given, config_of(record), stream_mode="custom", durability=saved):
            on_event(Event.model_validate(said))

    async def _say_the_end(self, record: RunRecord) -> None:
        """Bring the thread's checkpoints to the end of a run that has ended, where a process died between the two: they
        would take the thread's next goal for a word to that run."""
        state = await self.graph.aget_state(config_of(record))
        head = state.values.get("run")
        # By `tasks`: a task whose writes are stored is not in `next`, even where no checkpoint has taken them in yet.
        if head is None or not state.tasks:
            return
        run = record if head.run_id == record.run_id else await self.engine.runs.get(head.run_id)
        going_on = going_on_from(state.interrupts)
        if run is not None and run.archived is not None:  # the nodes find that out, and lead to the end
            with acting(self.principal):
                await self.graph.ainvoke(going_on, config_of(record))
        elif run is not None and run.status not in OPEN:
            async with self._only_driver(run):
                await self._stream(run, going_on, None)

    async def latest(self, thread_id: str) -> RunRecord:
        """The newest run of a thread. Raises UnknownThread, also for a thread of another tenant."""
        record = await self.engine.runs.latest(check_id(thread_id, "the thread id"))
        if record is None or record.tenant != self.principal.tenant:
            raise await unknown(self.engine, thread_id, self.principal.tenant)
        return record

    async def as_it_is(self, record: RunRecord) -> RunRecord:
        """The run's record as it is stored now."""
        return await self.engine.runs.get(record.run_id) or record

    async def picture(self, run_id: str) -> RunFold:
        """What the journal knows of a run; before its first row, what its stored request says."""
        picture = fold_journal(await self.engine.journal.read(run_id), self.engine.options.plan_versions)
        if picture.head is None:
            record = await self.engine.runs.get(run_id)
            if record is None or record.archived is not None:
                return await archived_picture(self.engine, run_id)
            picture.apply("run", None, 0, {"head": record.input})
        return picture

    async def _ended_meanwhile(self, record: RunRecord, session: Session) -> bool:
        """Whether another worker has brought the run to its end since its record was read: then the thread would take
        what it is given as a new goal."""
        return session.fold.finished is not None and await self._status(record) not in OPEN

    async def _status(self, record: RunRecord) -> RunStatus:
        return (await self.as_it_is(record)).status

    async def _anything_new(self, record: RunRecord) -> bool:
        """Whether a paused run has something to go on for: an answer, or that somebody wants it to end."""
        asked = (await self.picture(record.run_id)).asked
        stored = await self.engine.approvals.of_run(record.run_id)
        answered = [each for each in stored if each.decision or each.status == "expired"]
        if await self.engine.instructions.waiting(record.run_id):
            return True
        if not asked or any(each.request.approval_id in asked for each in answered):
            return True
        return await self.engine.leases.cancel_wanted(record.run_id)

    @asynccontextmanager
    async def _only_driver(self, record: RunRecord) -> AsyncIterator[Session]:
        if record.thread_id in self._driving:
            raise RunBusy(f"thread {record.thread_id!r} is being run by this program already; wait for it to end")
        self._driving[record.thread_id] = record.run_id
        try:
            with (
                self.engine.fences.held(record.thread_id),
                self.engine.attendance.of(record.run_id),
                acting(self.principal),
            ):
                # a run that somebody else drives is left alone, checkpoints too
                yield await self.engine.session(record.run_id)
        finally:
            del self._driving[record.thread_id]
            await self.engine.close_session(record.run_id)
            self.engine.approve.pop(record.run_id, None)
            self.engine.limits.pop(record.run_id, None)


def _tell(picture: RunFold, on_event: OnEvent | None) -> None:
    """Where a run stands, for whoever begins to watch in its middle."""
    if on_event is not None:
        for event in standing(picture):
            on_event(event)
