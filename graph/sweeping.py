"""The sweeper: nobody is left waiting. It writes down what was not answered in time, asks others where a question
escalates, tells people, and goes on with runs that nobody drives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from checkpoints.approvals import Approvals
from checkpoints.outbox import Outbox
from checkpoints.resumptions import LeftRun, Resumptions, Why
from checkpoints.runs import RunStatus
from plans.errors import DatabaseUnavailable, RunBusy, SurestepError, VersionTooNew
from plans.plan import MODEL_SOURCES
from plans.principals import Principal
from plans.wording import listed

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from graph.driving import Driver
    from graph.notifying import Notifier
    from nodes.fold import RunFold

AT_ONCE = 4
"""Runs that one sweeper drives at the same time."""
SWEEPER = "sweeper"
"""Who goes on with runs that nobody drives."""
_LOG = logging.getLogger("surestep")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class GoneOn(_Frozen):
    """A run that the sweeper has gone on with: why, and how it stands now."""

    run_id: str
    thread_id: str
    why: Why
    status: RunStatus


class LeftAlone(_Frozen):
    """A run with which nobody goes on, and with which this sweeper could not either."""

    run_id: str
    thread_id: str
    reason: str


class SweepReport(_Frozen):
    """What a sweep has done: `expired` questions became a no, `escalated` ones are for others too, so many messages
    were `delivered`, `not_delivered` says why others were not."""

    expired: int = 0
    escalated: int = 0
    delivered: int = 0
    not_delivered: tuple[str, ...] = ()
    gone_on: tuple[GoneOn, ...] = ()
    left: tuple[LeftAlone, ...] = ()


class Sweeper:
    """Any number of them may sweep one database: each question expires once, each run is resumed by one, each message
    is one sender's at a time. What one has begun and died at, another takes up."""

    def __init__(self, driver: Driver, notifier: Notifier | None) -> None:
        database = driver.engine.database
        self._driver = driver
        self._notifier = notifier
        self._approvals = Approvals(database)
        self._outbox = Outbox(database)
        self._resumptions = Resumptions(database)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[str, asyncio.Task[GoneOn | LeftAlone | None]] = {}

    async def once(self) -> SweepReport:
        """One sweep to its end: also what it has gone on with stands still again, or has ended. Cancelled, what it
        drives is let go in order. Raises DatabaseUnavailable."""
        expired, escalated = await self._approvals.expire(), await self._approvals.escalate()
        first = await self._told()
        try:
            for run in await self._resumptions.left():
                self._begin(run)
            ended = await asyncio.gather(*self._under_way.values())
        finally:
            await self._stop()
        then = await self._told()  # what has come of those runs
        await self._forget()
        return SweepReport(
            expired=len(expired),
            escalated=len(escalated),
            delivered=first[0] + then[0],
            not_delivered=tuple(dict.fromkeys((*first[1], *then[1]))),
            gone_on=tuple(each for each in ended if isinstance(each, GoneOn)),
            left=tuple(each for each in ended if isinstance(each, LeftAlone)),
        )

    async def forever(self, every_s: float, tell: Callable[[str], None] = _LOG.info) -> None:
        """Sweep every so many seconds until cancelled; a run that takes long holds up nothing else. `tell` hears what
        was done, and the log of what went wrong. A database that is away is waited for."""
        said = dict[str, None]()
        try:
            while True:
                try:
                    await self._look(tell, said)
                except DatabaseUnavailable as error:
                    _LOG.warning("nothing is swept for now: %s", error)
                await asyncio.sleep(every_s)
        finally:
            await self._stop()

    async def _look(self, tell: Callable[[str], None], said: dict[str, None]) -> None:
        for request in await self._approvals.expire():
            tell(f"{request.thread_id}: nobody has answered {request.step_id} ({request.tool}) in time, which is a no")
        for request in await self._approvals.escalate():
            tell(f"{request.thread_id}: {request.step_id} ({request.tool}) is for {listed(request.escalates_to)} too")
        for why in (await self._told())[1]:
            _LOG.warning("somebody could not be told, and will be tried again: %s", why)
        for run in await self._resumptions.left():
            if run.run_id not in self._under_way:
                self._begin(run).add_done_callback(lambda task, run=run: self._ended(run, task, tell, said))  # type: ignore[misc]
        await self._forget()

    def _ended(
        self,
        run: LeftRun,
        task: asyncio.Task[GoneOn | LeftAlone | None],
        tell: Callable[[str], None],
        said: dict[str, None],
    ) -> None:
        self._under_way.pop(run.run_id, None)
        if task.cancelled():
            return
        match task.result():
            case GoneOn(thread_id=thread_id, why=why, status=status):
                tell(f"{thread_id}: gone on with ({why}), now {status}")
            case LeftAlone(thread_id=thread_id, reason=reason) if f"{thread_id}: {reason}" not in said:
                said[f"{thread_id}: {reason}"] = None  # once: it is looked at every few seconds
                _LOG.warning("%s: %s", thread_id, reason)

    async def _forget(self) -> None:
        await self._outbox.forget()
        await self._resumptions.forget()

    async def _told(self) -> tuple[int, tuple[str, ...]]:
        if self._notifier is None:
            return 0, ()
        told = await self._notifier.deliver()
        return told.delivered, told.not_delivered

    def _begin(self, run: LeftRun) -> asyncio.Task[GoneOn | LeftAlone | None]:
        task = asyncio.create_task(self._gone_on(run), name=f"sweeping {run.run_id}")
        self._under_way[run.run_id] = task
        return task

    async def _stop(self) -> None:
        """Let go of what is under way, in order."""
        under_way = list(self._under_way.values())
        self._under_way.clear()
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)

    async def _gone_on(self, run: LeftRun) -> GoneOn | LeftAlone | None:
        """Go on with one run. None where it is not this sweeper's to go on with."""
        if run.is_stuck:
            return _left(run, f"was taken up {run.attempts} times in vain, the last time: {run.last_error}")
        if not run.is_due:
            return None
        async with self._places:
            try:
                if reason := await self._out_of_reach(run):
                    return _left(run, reason)
                if not await self._resumptions.claim(run.run_id):
                    return None
                return await self._driven(run)
            except RunBusy:  # somebody else was faster
                await self._resumptions.succeeded(run.run_id)
                return None
            except SurestepError as error:
                await self._resumptions.failed(run.run_id, str(error))
                return _left(run, str(error))

    async def _driven(self, run: LeftRun) -> GoneOn | LeftAlone | None:
        record = await self._record(run)
        if record is None:  # somebody was faster, and is done
            await self._resumptions.succeeded(run.run_id)
            return None
        result = await self._driver_of(run).go_on(record, None)
        if await self._record(run) is not None:
            why = "stands where it stood after somebody has gone on with it"
            await self._resumptions.failed(run.run_id, why)
            return _left(run, why)
        await self._resumptions.succeeded(run.run_id)
        return GoneOn(run_id=run.run_id, thread_id=run.thread_id, why=run.why, status=result.status)

    def _driver_of(self, run: LeftRun) -> Driver:
        """Who sweeps acts for nobody: a run goes on in the role and the tenant that it was begun in."""
        return self._driver.acting_as(Principal(name=SWEEPER, tenant=run.tenant))

    async def _record(self, run: LeftRun) -> RunRecord | None:
        """The run, if it is still one with which nobody goes on."""
        still = await self._resumptions.left(run.run_id)
        return await self._driver.engine.runs.get(run.run_id) if still else None

    async def _out_of_reach(self, run: LeftRun) -> str | None:
        """Why this sweeper had better not go on with the run: it would fail for what is only missing here."""
        record = await self._record(run)
        if record is None or run.why == "cancelled" or await self._driver.goes_on_elsewhere(record):
            return None
        try:
            return self._lacks(await self._driver.picture(run.run_id))
        except VersionTooNew as error:  # rule 23: it waits for a newer worker
            return str(error)

    def _lacks(self, picture: RunFold) -> str | None:
        engine = self._driver.engine
        steps = picture.plan.steps if picture.plan is not None else ()
        if lacking := sorted({step.tool for step in steps if step.tool and step.tool not in engine.registry}):
            return f"needs tools that are not here: {listed(lacking)}; sweep with --toolkit or SURESTEP_TOOLKITS"
        by_model = picture.plan is not None and picture.plan.source in MODEL_SOURCES
        if by_model and engine.planner is None:
            return "was planned by a model, and none is configured here; set SURESTEP_MODEL"
        return None


def _left(run: LeftRun, reason: str) -> LeftAlone:
    return LeftAlone(run_id=run.run_id, thread_id=run.thread_id, reason=reason)
