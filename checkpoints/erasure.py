"""Erases a thread everywhere: files of the archive, rows, checkpoints, files of results. Hashes alone are left of it,
those of its audit without the salt that one would need to guess what they are of.

The files of the archive go first, for they are the only part that can be out of reach; then all rows in one statement,
which leaves the tombstones and the list of files; then those files. Killed in between, it is called again and goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from checkpoints.archive_reading import ArchiveReader
from checkpoints.artifacts import ArtifactStore
from checkpoints.background import in_thread
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.jsonb import jsonb
from checkpoints.leases import Lease, Leases
from checkpoints.loose_files import sweep
from checkpoints.places import place_at
from checkpoints.queries import QUERIES
from checkpoints.runs import RunRecord
from checkpoints.tombstones import Tombstone, Tombstones, effects_of, hashed
from plans.errors import RunBusy, UnknownThread, UsageError

OVER = frozenset({"done", "failed", "cancelled"})
"""Statuses of a run that nothing can go on with."""


class ErasureReport(BaseModel):
    """What was erased: `runs` are the ids of all runs that the thread ever had. `files_left` counts files of results
    that another run may be storing at this moment; the next archive deletes them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thread_id: str
    runs: tuple[str, ...]
    archived: int
    files_deleted: int
    files_left: int


@dataclass(frozen=True)
class Erasure:
    """Erases threads of one database and of its archives. `owner` names this process on the leases it takes."""

    database: Database
    journal: Journal
    leases: Leases
    artifacts: ArtifactStore
    archives: ArchiveReader
    owner: str

    async def erase(self, thread_id: str, tenant: str = "") -> ErasureReport:
        """Erase all runs of a tenant's thread; again is no change.

        Raises UnknownThread for a thread that never was, or is another tenant's, UsageError where one of its runs may
        still go on or a fork of one holds its results, RunBusy where somebody drives, forks or archives one,
        StorageUnavailable where files cannot be deleted.
        """
        runs = await self._runs(thread_id, tenant)
        _check_over(runs)
        async with self._held(runs) as leases:
            stones = await self._stones(thread_id, tenant)  # now no archive adds another
            if not runs and not stones:
                raise UnknownThread(f"no run was ever started on thread {thread_id!r}, so there is nothing to erase")
            await self._check_forks(thread_id, [*(run.run_id for run in runs), *(stone.run_id for stone in stones)])
            await self._erase_archives(stones)
            reached("erasure.archives_deleted")
            await self._erase_rows(thread_id, tenant, runs, leases)
            reached("erasure.rows_deleted")
        deleted, left = await sweep(self.database, self.artifacts)
        known = dict.fromkeys([*(stone.run_id for stone in reversed(stones)), *(run.run_id for run in runs)])
        return ErasureReport(
            thread_id=thread_id,
            runs=tuple(known),
            archived=sum(stone.location is not None for stone in stones),
            files_deleted=deleted,
            files_left=left,
        )

    async def _runs(self, thread_id: str, tenant: str) -> list[RunRecord]:
        found = await self.database.fetch(QUERIES["runs_of_thread"], (thread_id,))
        return [RunRecord.model_validate(row) for row in found if row["tenant"] == tenant]

    async def _stones(self, thread_id: str, tenant: str) -> list[Tombstone]:
        return [stone for stone in await Tombstones(self.database).of_thread(thread_id) if stone.tenant == tenant]

    @asynccontextmanager
    async def _held(self, runs: Sequence[RunRecord]) -> AsyncIterator[list[Lease]]:
        """The leases of all runs, in one order, let go at the end."""
        async with AsyncExitStack() as stack:
            leases = []
            for run in sorted(runs, key=lambda each: each.run_id):
                try:
                    lease = await self.leases.acquire(run.run_id, f"{self.owner} (erasure)")
                except UnknownThread:
                    raise RunBusy(f"run {run.run_id} has just been archived or erased; erase again") from None
                stack.push_async_callback(self.leases.release, lease)
                leases.append(lease)
            yield leases

    async def _check_forks(self, thread_id: str, run_ids: Sequence[str]) -> None:
        found = await self.database.fetch(QUERIES["forks_that_hold"], {"thread_id": thread_id, "run_ids": run_ids})
        if found:
            told = ", ".join(f"{fork['thread_id']} (run {fork['run_id']})" for fork in found)
            raise UsageError(
                f"forks of thread {thread_id!r} hold results of it: {told}; erase these threads first, such as with "
                f"`surestep archive --erase {found[0]['thread_id']}`"
            )

    async def _erase_archives(self, stones: Sequence[Tombstone]) -> None:
        """Delete the archived files of all runs, of those too whose archive was only begun."""
        here = place_at(self.archives.url)
        for stone in stones:
            if stone.place is not None and stone.folder is not None:
                await in_thread(self.archives.place_of(stone).remove, stone.folder)
                await in_thread(here.remove, stone.folder)

    async def _erase_rows(
        self, thread_id: str, tenant: str, runs: Sequence[RunRecord], leases: Sequence[Lease]
    ) -> None:
        of = {run.run_id: run for run in runs}
        owned = [of[lease.run_id] for lease in leases]
        wanted = {
            "thread_id": thread_id,
            "thread_sha256": hashed(thread_id),
            "tenant": tenant,
            "run_ids": [lease.run_id for lease in leases],
            "fences": [lease.fence for lease in leases],
            "requests": [hashed(run.request_id) for run in owned],
            "effects": [jsonb(effects_of(await self.journal.read(run.run_id))) for run in owned],
        }
        locks = {"thread_id": thread_id, "requests": sorted(run.tenant + hashed(run.request_id) for run in owned)}
        _, erased, _ = await self.database.together(
            [
                (QUERIES["lock_for_burial"], locks),
                (QUERIES["erase_thread"], wanted),
                (QUERIES["forget_salts"], {"thread_sha256": hashed(thread_id)}),
            ]
        )
        if not erased:
            raise RunBusy(f"thread {thread_id!r} has begun another run meanwhile; nothing of its rows was erased")


def _check_over(runs: Sequence[RunRecord]) -> None:
    open_runs = [run for run in runs if run.status not in OVER]
    if open_runs:
        told = ", ".join(f"{run.run_id} ({run.status})" for run in open_runs)
        raise UsageError(
            f"thread {open_runs[0].thread_id!r} has a run that may still go on: {told}; end it first with `surestep "
            f"cancel {open_runs[0].thread_id}`, then erase"
        )
