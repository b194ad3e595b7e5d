"""Stored results: small ones in PostgreSQL, large ones in files, each known by the hash of its bytes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict

from checkpoints.artifact_files import files_at, place_of
from checkpoints.crash_points import reached
from checkpoints.queries import QUERIES
from plans.errors import ArtifactMissing

if TYPE_CHECKING:
    from checkpoints.database import Database

INLINE_BYTES = 16 * 1024
"""The largest body that is kept in the database itself."""
REF_OF = "sha256-"
"""What the name of a result begins with; its hash is the rest."""

_THREADS = 4

T = TypeVar("T")


class Artifact(BaseModel):
    """What is known about a stored result without reading it. `size` in bytes, `sha256` in hex."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output_ref: str
    size: int
    sha256: str
    media_type: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> Artifact:
        """The artifact that these bytes make: the same bytes always have the same `output_ref`."""
        sha256 = hashlib.sha256(body).hexdigest()
        return cls(output_ref=REF_OF + sha256, size=len(body), sha256=sha256, media_type=media_type)

    @property
    def inline(self) -> bool:
        """Whether the body is kept in the database itself."""
        return self.size <= INLINE_BYTES


class ArtifactStore:
    """The artifacts of all runs. Bodies above 16 KiB are below `folder_url`, a path or any URL fsspec knows."""

    def __init__(self, database: Database, folder_url: str) -> None:
        self._database = database
        self._files = files_at(folder_url)
        # Threads of our own: a disk or bucket that hangs must not take those that everything else shares.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="artifacts")

    @staticmethod
    def describe(body: bytes, media_type: str) -> Artifact:
        """The artifact that `put` would make of these bytes; stores nothing."""
        return Artifact.of(body, media_type)

    async def put(self, run_id: str, body: bytes, media_type: str) -> Artifact:
        """Store a result of a run; when this returns, it survives a crash.

        Storing the same bytes again is no change; the media type stays that of the first time. StorageUnavailable when
        the folder is full, read-only or not reachable: then nothing is recorded.
        """
        if len(body) <= INLINE_BYTES:
            artifact = Artifact.of(body, media_type)
            await self._record(run_id, artifact, body=body, location=None)
            return artifact
        reached("artifact.before_write")
        artifact = await self._in_thread(lambda: self._write(body, media_type))
        reached("artifact.written")
        await self._record(run_id, artifact, body=None, location=place_of(artifact.sha256))
        return artifact

    async def get(self, run_id: str, output_ref: str) -> bytes:
        """The bytes of a run's result. ArtifactMissing when they are gone or are not what was stored."""
        rows = await self._database.fetch(QUERIES["artifact"], (run_id, output_ref))
        if not rows:
            raise ArtifactMissing(f"run {run_id} has no result {output_ref!r}")
        sha256, body = rows[0]["sha256"], rows[0]["body"]
        if output_ref != REF_OF + sha256:
            raise ArtifactMissing(f"the stored result {output_ref!r} of run {run_id} was changed: it has another hash")
        if body is None:
            body = await self._in_thread(lambda: self._files.read(sha256))
        found = await self._in_thread(lambda: hashlib.sha256(body).hexdigest())
        if found != sha256:
            raise ArtifactMissing(
                f"the stored result {output_ref!r} of run {run_id} was changed: its bytes have SHA-256 {found}"
            )
        return bytes(body)

    async def missing(self, run_id: str, output_refs: Collection[str]) -> set[str]:
        """Which of these results are not recorded as the run's."""
        found = await self._database.fetch(QUERIES["artifacts_among"], (run_id, list(output_refs)))
        return set(output_refs) - {row["output_ref"] for row in found}

    async def written_at(self, location: str) -> float | None:
        """When the file at a row's `location` was last written, in seconds since 1970; None when there is none."""
        return await self._in_thread(lambda: self._files.written_at(location.rpartition("/")[2]))

    async def remove(self, location: str) -> None:
        """Delete the file at a row's `location`, which nothing may refer to. StorageUnavailable when it cannot be."""
        await self._in_thread(lambda: self._files.remove(location.rpartition("/")[2]))

    def _write(self, body: bytes, media_type: str) -> Artifact:
        artifact = Artifact.of(body, media_type)
        self._files.write(artifact.sha256, body)
        return artifact

    async def _record(self, run_id: str, artifact: Artifact, *, body: bytes | None, location: str | None) -> None:
        known = artifact.model_dump()
        await self._database.execute(
            QUERIES["record_artifact"], {**known, "run_id": run_id, "body": body, "location": location}
        )
        reached("artifact.recorded")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
