"""Moves runs that are over out of PostgreSQL into files. Killed anywhere, it is run again and ends with the same.

For each run: take its lease, write down where its files will be, write them, the manifest last, look whether all of
them are there, and only then delete its rows, in one statement that holds the lease row and leaves the tombstone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from checkpoints import archive_files as layout
from checkpoints.artifacts import ArtifactStore
from checkpoints.audit_verify import verify
from checkpoints.background import in_thread
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.jsonb import jsonb
from checkpoints.leases import Lease, Leases
from checkpoints.loose_files import sweep
from checkpoints.places import Place, name_of, place_at
from checkpoints.queries import QUERIES
from checkpoints.rows import Row
from checkpoints.runs import RunRecord
from checkpoints.tombstones import effects_of, hashed
from checkpoints.trimming import trim
from plans.errors import ArtifactMissing, RunBusy, StorageUnavailable, UnknownThread
from plans.values import JSON

WARM_S = 7 * 86_400.0
"""How long after its end a run stays in the database, unless the caller says otherwise."""

_NOT_AS_AUDITED = (
    "it is not as it was audited ({found}), and in the archive nobody could compare it any more; look at "
    "`surestep audit verify --thread {thread}`"
)

Told = Callable[[RunRecord, Sequence[Row]], Mapping[str, JSON]]
"""The result of a run, as a program gets it, from its rows: what only the rooms above can read out of a journal."""


Clean = Callable[[str, bytes], bytes]
"""What may be archived of a file, by its path and its bytes: without personal data."""


def as_it_is(_path: str, body: bytes) -> bytes:
    """The file as it is."""
    return body


class ArchivedRun(BaseModel):
    """One run that was archived, or would be. `size` is in bytes, of all its files; 0 where nothing was written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    thread_id: str
    status: str
    location: str
    size: int = 0


class LeftRun(BaseModel):
    """A run that was left where it is, and why. `busy`: by itself it will go another time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    thread_id: str
    why: str
    busy: bool


class ArchiveReport(BaseModel):
    """What an archive did: runs moved and left, threads whose checkpoints were trimmed, artifact files deleted and
    left for later."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str
    dry_run: bool = False
    archived: tuple[ArchivedRun, ...] = ()
    left: tuple[LeftRun, ...] = ()
    threads_trimmed: int = 0
    files_deleted: int = 0
    files_left: int = 0


@dataclass(frozen=True)
class Archive:
    """Archives the runs of one database to the place at `url`. `owner` names this process on the leases it takes."""

    database: Database
    journal: Journal
    leases: Leases
    artifacts: ArtifactStore
    owner: str
    url: str
    told: Told
    clean: Clean = as_it_is

    async def run(
        self,
        *,
        older_than_s: float = WARM_S,
        thread_id: str | None = None,
        tenant: str | None = None,
        dry_run: bool = False,
    ) -> ArchiveReport:
        """Archive the runs of one tenant, or of all, that ended so long ago, and delete what nobody needs once they are
        gone.

        A run that somebody drives or archives, and a thread with a run that may go on, are left alone. So is a run
        that cannot be archived whole, and one whose rows are not what was audited of them. StorageUnavailable when the
        place cannot be written: of the run that it was about nothing is deleted then, and those before it are archived.
        """
        due = await self._due(older_than_s, thread_id, tenant)
        if dry_run:
            would = tuple(self._as_archived(record, 0) for record in due)
            return ArchiveReport(place=name_of(self.url), dry_run=True, archived=would)
        outcomes = [outcome for record in due if (outcome := await self._archived(record, older_than_s)) is not None]
        trimmed = await trim(self.database, older_than_s, thread_id, tenant)
        await self.database.execute(QUERIES["forget_lost_secrets"])
        deleted, left = await sweep(self.database, self.artifacts)
        return ArchiveReport(
            place=name_of(self.url),
            archived=tuple(each for each in outcomes if isinstance(each, ArchivedRun)),
            left=tuple(each for each in outcomes if isinstance(each, LeftRun)),
            threads_trimmed=trimmed,
            files_deleted=deleted,
            files_left=left,
        )

    async def _due(self, older_than_s: float, thread_id: str | None, tenant: str | None) -> list[RunRecord]:
        asked = {"older_than_s": older_than_s, "thread_id": thread_id, "tenant": tenant}
        return [RunRecord.model_validate(row) for row in await self.database.fetch(QUERIES["runs_to_archive"], asked)]

    async def _archived(self, record: RunRecord, older_than_s: float) -> ArchivedRun | LeftRun | None:
        """Archive one run; None when another archive was faster."""
        try:
            lease = await self.leases.acquire(record.run_id, f"{self.owner} (archive)")
        except RunBusy as busy:
            return _left(record, str(busy), busy=True)
        except UnknownThread:
            return None
        try:
            if found := (await verify(self.database, chains=[record.run_id])).findings:
                return _left(
                    record, _NOT_AS_AUDITED.format(thread=record.thread_id, found=found[0].message), busy=False
                )
            return await self._moved(record, lease, older_than_s)
        except ArtifactMissing as missing:
            return _left(record, str(missing), busy=False)
        finally:
            await self.leases.release(lease)

    async def _moved(self, record: RunRecord, lease: Lease, older_than_s: float) -> ArchivedRun | LeftRun:
        place, folder = place_at(self.url), layout.folder_of(record)
        await self._begin(record, folder)
        rows = await self.journal.read(record.run_id)
        files: dict[str, tuple[int, str]] = {}
        async for path, written in self.contents(record, rows):
            body = await asyncio.to_thread(self.clean, path, written)
            await in_thread(place.write, f"{folder}/{path}", body)
            files[path] = layout.measured(body)
            reached("archive.file_written")
        await _seal(place, folder, record.run_id, files)
        reached("archive.manifest_written")
        if not await self._buried(record, lease, rows, older_than_s):
            return _left(record, f"thread {record.thread_id} has begun another run meanwhile", busy=True)
        reached("archive.rows_deleted")
        return self._as_archived(record, sum(size for size, _ in files.values()))

    async def _begin(self, record: RunRecord, folder: str) -> None:
        """Write down where the files will be, after what an attempt elsewhere has left is deleted there.

        A place that cannot be reached any more is given up: it may never have been one.
        """
        planned = {
            "run_id": record.run_id,
            "request_sha256": hashed(record.request_id),
            "thread_sha256": hashed(record.thread_id),
            "place": name_of(self.url),
            "folder": folder,
        }
        for before in await self.database.fetch(QUERIES["begun_archive"], (record.run_id,)):
            if before["place"] != planned["place"]:
                with suppress(StorageUnavailable):
                    await in_thread(place_at(before["place"]).remove, before["folder"])
        await self.database.execute(QUERIES["begin_archive"], planned)
        reached("archive.begun")

    async def contents(self, record: RunRecord, rows: Sequence[Row]) -> AsyncIterator[tuple[str, bytes]]:
        """Every file of the run but the manifest; the body of one artifact at a time is in memory."""
        artifacts = await self.database.fetch(QUERIES["artifacts_of_run"], (record.run_id,))
        for artifact in artifacts:
            body = await self.artifacts.get(record.run_id, artifact["output_ref"])
            yield layout.artifact_path(artifact["output_ref"]), body
        yield "artifacts.jsonl", layout.lines(artifacts)
        approvals = await self.database.fetch(QUERIES["approval_rows_of_run"], (record.run_id,))
        yield "approvals.jsonl", layout.lines(approvals)
        yield "plans.jsonl", await asyncio.to_thread(layout.plans_file, rows)
        yield "journal.jsonl", await asyncio.to_thread(layout.journal_file, rows)
        yield "run.json", layout.run_file(record, self.told(record, rows))

    async def _buried(self, record: RunRecord, lease: Lease, rows: Sequence[Row], older_than_s: float) -> bool:
        """Delete the run's rows, and with the last of a thread its checkpoints; the tombstone stays.

        False, and nothing has changed, when that may not be.
        """
        thread = {"thread_id": record.thread_id}
        wanted: dict[str, Any] = {
            **thread,
            "run_id": record.run_id,
            "fence": lease.fence,
            "effects": jsonb(effects_of(rows)),
        }
        locks = {**thread, "requests": [record.tenant + hashed(record.request_id)]}
        _, gone, _ = await self.database.together(
            [
                (QUERIES["lock_for_burial"], locks),
                (QUERIES["bury_run"], wanted),
                (QUERIES["forget_checkpoints"], {**thread, "older_than_s": older_than_s}),
            ]
        )
        return bool(gone)

    def _as_archived(self, record: RunRecord, size: int) -> ArchivedRun:
        return ArchivedRun(
            run_id=record.run_id,
            thread_id=record.thread_id,
            status=record.status,
            location=f"{name_of(self.url)}/{layout.folder_of(record)}",
            size=size,
        )


async def _seal(place: Place, folder: str, run_id: str, files: Mapping[str, tuple[int, str]]) -> None:
    """Write the manifest, and look whether everything is there as it was written. Raises StorageUnavailable."""
    manifest = layout.manifest(run_id, files)
    await in_thread(place.write, f"{folder}/{layout.MANIFEST}", manifest)
    sizes = [(path, size) for path, (size, _) in files.items()]
    try:
        missing = await asyncio.to_thread(layout.missing_of, place, folder, manifest, sizes)
    except ArtifactMissing:
        missing = [layout.MANIFEST]
    if missing:
        raise StorageUnavailable(
            f"what was written to the archive {folder} is not all there: {', '.join(missing)}; nothing was deleted "
            "from the database, so look at the place and archive again"
        )


def _left(record: RunRecord, why: str, *, busy: bool) -> LeftRun:
    return LeftRun(run_id=record.run_id, thread_id=record.thread_id, why=why, busy=busy)
