"""Tombstones: what stays in the database of a run that was archived or erased: its request never runs again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from checkpoints.database import Database
from checkpoints.queries import QUERIES
from checkpoints.rows import Row


class Tombstone(BaseModel):
    """What is still known of a run. Its files are in `folder` of the place named `place`.

    Of an erased run nothing is left that names a person or what was asked: no ids of the caller's but as hashes.
    `effects` holds the idempotency keys under which the run may have acted, and the calls that people have rejected.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    tenant: str
    request_sha256: str
    thread_sha256: str
    request_id: str | None
    thread_id: str | None
    input_sha256: str | None
    status: str
    effects: dict[str, list[str]]
    place: str | None
    folder: str | None
    created_at: datetime
    ended_at: datetime | None
    archived_at: datetime | None
    erased_at: datetime | None
    forked_from: str | None

    @property
    def location(self) -> str | None:
        """Where the run's files are, for people."""
        return f"{self.place}/{self.folder}" if self.place and self.archived_at and not self.erased_at else None

    @property
    def epitaph(self) -> str:
        """That it was erased, and when, as the end of a sentence."""
        when = f"{self.erased_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if self.erased_at else "not"
        return f"that run ({self.run_id}, {self.status}) was erased on {when}, on request, and nothing is left of it"


class Tombstones:
    """Tombstones by run, request and thread. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_run(self, run_id: str) -> Tombstone | None:
        """What stays of this run, if it was archived or erased."""
        return _first(await self._database.fetch(QUERIES["tombstone_of_run"], (run_id,)))

    async def of_request(self, request_id: str, tenant: str = "") -> Tombstone | None:
        """What stays of the run that this request began."""
        return _first(await self._database.fetch(QUERIES["tombstone_of_request"], (tenant, hashed(request_id))))

    async def of_thread(self, thread_id: str) -> list[Tombstone]:
        """What stays of a thread's runs, the newest first; runs whose archive was begun and not ended among them."""
        found = await self._database.fetch(QUERIES["tombstones_of_thread"], (hashed(thread_id),))
        return [Tombstone.model_validate(row) for row in found]

    async def archived(self) -> int:
        """How many runs are in the archive."""
        return int((await self._database.fetch(QUERIES["count_archived"]))[0]["n"])


def hashed(given: str) -> str:
    """Hex SHA-256 of an id that a caller has chosen, and that may name a person."""
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def effects_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """What must outlive a run's journal: keys under which it may have acted, and calls that a person has rejected."""
    keys = {row.body["key"] for row in rows if row.kind == "intent" and row.body.get("key")}
    rejected = {row.body["call"] for row in rows if row.kind == "decision" and _is_rejection(row.body)}
    return {"keys": sorted(keys), "rejected": sorted(rejected)}


def _is_rejection(body: Mapping[str, Any]) -> bool:
    return bool((body.get("decision") or {}).get("type") == "reject" and body.get("kind") == "risk")


def _first(rows: Sequence[Mapping[str, Any]]) -> Tombstone | None:
    return Tombstone.model_validate(dict(rows[0])) if rows else None
