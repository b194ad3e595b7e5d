"""Leases: one owner per run, by a fence that only grows; taken over when its time is up or its session is gone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from checkpoints.background import stop
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.presence import Presence
from checkpoints.queries import QUERIES
from checkpoints.workers import known_dead
from plans.errors import DatabaseUnavailable, RunBusy, UnknownThread

LEASE_S = 30.0
"""Length of a lease. Long enough for a restart of the database, short enough to wait for a dead worker."""

_RENEWALS_PER_LEASE = 3
_RETRIES_PER_RENEWAL = 10


@dataclass(slots=True, eq=False)
class Lease:
    """A run that this process drives, for as long as it is `alive`. Live: renewals move the bound.

    `valid_until` is on this process's monotonic clock and counts from when the last renewal was *sent*, so it ends
    before the database's own expiry does (rule 4); `expires_at` is that expiry, and `taken_at` when the lease was
    taken, both in the database's time (seconds since the epoch). `taken_from` names the owner that was replaced, if one
    was. `cancel` is set once somebody asked to cancel the run, `told` while somebody may have said something to it.
    """

    run_id: str
    fence: int
    owner: str
    valid_until: float
    taken_from: str | None = None
    expires_at: float = 0.0
    taken_at: float = 0.0
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def alive(self, now_monotonic: float) -> bool:
        """Whether this owner may still start things at this instant of `time.monotonic()`."""
        return now_monotonic < self.valid_until


class Leases:
    """The leases of one process, renewed by a task of their own while `async with` lasts.

    They name a database session that lives as long: when it is gone, another worker need not wait for the expiry,
    except within one lease length of a start of the server, which ends every session (rule 4). Nor need it wait where
    `worker`, the name in `checkpoints/workers.py` that a lease keeps, is known to be dead. `direct_url` is the server's
    own address where `database` goes through a pgbouncer.
    """

    def __init__(
        self,
        database: Database,
        *,
        length_s: float = LEASE_S,
        direct_url: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        worker: str | None = None,
    ) -> None:
        self._database = database
        self._worker = worker
        self._length_s = length_s
        self._monotonic = monotonic
        self._held: dict[str, Lease] = {}
        self._claiming: set[str] = set()
        self._presence = Presence(
            direct_url or database.url, on_cancel=self._told_to_cancel, on_instruction=self._told_something
        )
        self._renewals: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._presence.open()
        self._renewals = asyncio.create_task(self._keep_renewing(), name="lease renewals")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of what is still held. Where the database is gone, the leases expire by themselves."""
        try:
            await stop(self._renewals)
            for lease in list(self._held.values()):
                await self.release(lease)
        except DatabaseUnavailable:
            self._held.clear()
        finally:
            await self._presence.close()

    async def acquire(self, run_id: str, owner: str) -> Lease:
        """Become the run's owner: the fence is raised, and that committed, before this returns.

        Read the journal afterwards, in a new statement: no row of an earlier owner can follow then (rule 1). `owner`
        tells people who it is, such as "host:pid". Raises RunBusy while another owner lives (also one in this process),
        UnknownThread for a run that does not exist.
        """
        if run_id in self._held or run_id in self._claiming:
            raise RunBusy(f"run {run_id} is already being driven by this process ({owner}); wait for it, or cancel it")
        self._claiming.add(run_id)
        try:
            return await self._claim(run_id, owner)
        finally:
            self._claiming.discard(run_id)

    async def renew(self) -> None:
        """Renew all leases held, in one statement. One that another worker took is no longer alive afterwards."""
        held = list(self._held.values())
        if not held:
            return
        session = await self._presence.session()
        sent = self._monotonic()
        renewed = await self._database.fetch(
            QUERIES["renew_leases"],
            {
                "run_id": [lease.run_id for lease in held],
                "fence": [lease.fence for lease in held],
                "length_s": self._length_s,
                **session,
            },
        )
        reached("lease.renewed")
        answers = {(row["run_id"], row["fence"]): row for row in renewed}
        for lease in held:
            self._renewed(lease, sent, answers.get((lease.run_id, lease.fence)))

    async def release(self, lease: Lease, *, unless_decided: Sequence[str] = ()) -> bool:
        """Stop owning the run; True when nobody is owner now or somebody else is.

        An owner that pauses names the approvals it waits for: if one of them is decided (or withdrawn) it stays owner
        and gets False, in the statement that would have released. So a decision finds either an owner that goes on by
        itself or none (rule 20): who decides looks for the owner after the decision is committed. When the database
        cannot be reached the lease ends here all the same, and there by expiry.
        """
        wish = {"run_id": lease.run_id, "fence": lease.fence, "unless_decided": list(unless_decided)}
        released = True
        reached("lease.before_release")
        try:
            if answer := await self._database.fetch(QUERIES["release_lease"], wish):
                released = answer[0]["released"]
            reached("lease.released")
        finally:
            # Also without an answer: a lease that nobody drives must not be renewed for ever.
            if released:
                self._lost(lease)
        return released

    async def request_cancel(self, run_id: str) -> str | None:
        """Ask whoever drives the run to cancel it; the owner who was told, or None when nobody drives it.

        The wish stays on the lease row: an owner learns of it at once, by its next journal row or by its next renewal,
        and whoever drives the run next sees it too. UnknownThread for no such run.
        """
        if not (answer := await self._database.fetch(QUERIES["request_cancel"], {"run_id": run_id})):
            raise _unknown(run_id)
        owner: str | None = answer[0]["owner"]
        return owner

    async def cancel_wanted(self, run_id: str) -> bool:
        """Whether somebody has asked to cancel the run, whoever drives it."""
        found = await self._database.fetch(QUERIES["lease_state"], {"run_id": run_id})
        return bool(found and found[0]["cancel_requested"])

    async def _claim(self, run_id: str, owner: str) -> Lease:
        session = await self._presence.session()
        sent = self._monotonic()
        claim = {"run_id": run_id, "owner": owner, "worker": self._worker, "length_s": self._length_s, **session}
        taken = await self._database.fetch(QUERIES["acquire_lease"], {**claim, "dead_worker": None})
        if not taken:
            found = await self._database.fetch(QUERIES["lease_state"], {"run_id": run_id})
            if (dead := await self._dead_worker(found)) is not None:
                sent = self._monotonic()
                taken = await self._database.fetch(QUERIES["acquire_lease"], {**claim, "dead_worker": dead})
            if not taken:
                raise _busy(run_id, found)
        answer = taken[0]
        told = {name: answer[name] for name in ("taken_from", "expires_at", "taken_at")}
        lease = Lease(run_id, answer["fence"], owner, sent + self._length_s, **told)
        if answer["cancel_requested"]:
            lease.cancel.set()
        self._held[run_id] = lease
        reached("lease.acquired")
        return lease

    async def _dead_worker(self, found: Sequence[Mapping[str, Any]]) -> str | None:
        """The worker that holds the run, if it is known to be dead: then its session says nothing that matters."""
        worker: str | None = found[0]["worker"] if found else None
        return worker if worker and worker != self._worker and await asyncio.to_thread(known_dead, worker) else None

    async def _keep_renewing(self) -> None:
        import psycopg

        usual = pause = self._length_s / _RENEWALS_PER_LEASE
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._presence.renewed.wait()
            self._presence.renewed.clear()
            try:
                await self.renew()
                pause = usual
            except (DatabaseUnavailable, psycopg.Error):
                pause = usual / _RETRIES_PER_RENEWAL

    def _renewed(self, lease: Lease, sent: float, answer: Mapping[str, Any] | None) -> None:
        """Take the answer to a renewal in; None: the lease is not this owner's any more."""
        if answer is None:
            self._lost(lease)
        elif self._held.get(lease.run_id) is lease:  # it was not released while the answer was on its way
            lease.valid_until, lease.expires_at = sent + self._length_s, answer["expires_at"]
            if answer["cancel_requested"]:
                lease.cancel.set()

    def _lost(self, lease: Lease) -> None:
        lease.valid_until = -math.inf
        if self._held.get(lease.run_id) is lease:
            del self._held[lease.run_id]

    def _told_to_cancel(self, run_id: str) -> None:
        if (lease := self._held.get(run_id)) is not None:
            lease.cancel.set()

    def _told_something(self, run_id: str) -> None:
        if (lease := self._held.get(run_id)) is not None:
            lease.told.set()


def _busy(run_id: str, found: Sequence[Mapping[str, Any]]) -> Exception:
    if not found:
        return _unknown(run_id)
    left = math.ceil(max(found[0]["left_s"] or 0.0, 0.0))
    return RunBusy(
        f"run {run_id} is being driven by {found[0]['owner'] or 'a worker that has just stopped'}; if that worker "
        f"is dead, the run can be taken over in {left} s at the latest, so wait or try again then"
    )


def _unknown(run_id: str) -> UnknownThread:
    return UnknownThread(f"there is no run {run_id}; `surestep runs` lists those there are")
