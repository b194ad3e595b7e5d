"""Taking a run: first its lease, then the picture of what has happened, which no one else adds to any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.doubt import leave_alone
from nodes.fold import fold_journal
from nodes.policing import note_policy
from nodes.reopening import look_again
from nodes.session import Session
from nodes.versions import JOURNAL_VERSION
from plans.errors import SurestepError

if TYPE_CHECKING:
    from checkpoints.leases import Lease
    from nodes.engine import Engine


async def take_run(engine: Engine, run_id: str) -> Session:
    """The session of a run that this process drives from now on; its checkpoints carry the lease's fence.

    Raises RunBusy, UnknownThread for no such run, or ConfigurationError for a policy that cannot be used.
    """
    with engine.fences.taking(run_id):
        lease = await engine.leases.acquire(run_id, engine.owner)
        try:
            session = await _pictured(engine, lease)
            engine.fences.enter(session.head.thread_id, run_id, lease.fence)
        except BaseException:
            await engine.leases.release(lease)
            raise
        return session


async def _pictured(engine: Engine, lease: Lease) -> Session:
    rows = await engine.journal.read(lease.run_id)
    picture = fold_journal(rows, engine.options.plan_versions)
    picture.left_off = rows[-1].kind if rows else None
    known = {unit for unit in picture.steps if picture.is_over(unit)}
    session = Session(engine, lease, picture, began=engine.clock.monotonic(), known=known)
    if picture.head is not None:
        await leave_alone(session)
        await look_again(session, rows)
        await note_policy(session)
        return session
    record = await engine.runs.get(lease.run_id)
    if record is None:
        raise SurestepError(f"the run {lease.run_id} has no stored request; start the goal again")
    await session.record("run", body={"head": record.input, "journal_version": JOURNAL_VERSION})
    session.stood(record.status)
    await note_policy(session)
    return session
