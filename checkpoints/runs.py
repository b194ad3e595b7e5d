"""The table of runs: one row per request, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.backlog import stale
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.errors import UsageError
from plans.values import JSON, sha256_of

RunStatus = Literal["running", "paused", "done", "failed", "cancelled", "limited"]

ENDED = frozenset({"done", "failed", "cancelled", "limited"})
"""Statuses in which a run has ended; a limited one may begin again, by a person with a higher limit."""


class RunRecord(BaseModel):
    """A run as the table has it. Times are the database's; an empty `input_sha256` is filled in by `Runs.create`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    thread_id: str
    request_id: str
    goal: str
    tenant: str = ""
    input: dict[str, JSON] = {}
    input_sha256: str = ""
    status: RunStatus = "running"
    summary: dict[str, JSON] = {}
    created_at: datetime | None = None
    ended_at: datetime | None = None


class Runs:
    """Runs by id, by thread and by age. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, record: RunRecord) -> RunRecord:
        """Store a new run with its lease row, not driven by anyone yet; gives the row as it is stored.

        Where the tenant's `request_id` is known and its input is the same, that first run is given back and nothing is
        stored, however many callers come at once (rule 16). With other input it is a UsageError.
        """
        digest = record.input_sha256 or sha256_of({"goal": record.goal, "input": record.input})
        stored = record.model_dump(include={"run_id", "thread_id", "tenant", "request_id", "goal", "status"})
        written = {**stored, "input": jsonb(record.input), "input_sha256": digest, "summary": jsonb(record.summary)}
        # The second statement sees what the first one waited for: a statement's snapshot is taken before its waits.
        found = await self._database.fetch(QUERIES["create_run"], written) or await self._database.fetch(
            QUERIES["run_of_request"], (record.tenant, record.request_id)
        )
        reached("run.created")
        first = _record(found[0])
        if first.input_sha256 != digest:
            raise UsageError(
                f"the request {record.request_id!r} was already made with another goal or other inputs (run "
                f"{first.run_id}, thread {first.thread_id}: {first.goal[:80]!r}); send the same input to get that "
                "run's answer, or choose another request id"
            )
        return first

    async def get(self, run_id: str) -> RunRecord | None:
        """The run of this id."""
        return _first(await self._database.fetch(QUERIES["run_by_id"], (run_id,)))

    async def by_request(self, request_id: str, tenant: str = "") -> RunRecord | None:
        """The run that this request began."""
        return _first(await self._database.fetch(QUERIES["run_of_request"], (tenant, request_id)))

    async def latest(self, thread_id: str) -> RunRecord | None:
        """The newest run of a thread."""
        return _first(await self._database.fetch(QUERIES["latest_run"], (thread_id,)))

    async def set_status(self, run_id: str, fence: int, status: RunStatus, summary: Mapping[str, JSON]) -> None:
        """Write how the run stands; StaleOwner, and nothing written, when the lease is not this fence's any more.

        A status that ends the run sets `ended_at`, any other clears it.
        """
        written = {
            "run_id": run_id,
            "fence": fence,
            "status": status,
            "summary": jsonb(dict(summary)),
            "ended": status in ENDED,
        }
        if not await self._database.fetch(QUERIES["set_run_status"], written):
            raise stale(run_id, fence)
        reached("run.status_set")

    async def list(self, limit: int = 50) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        return [_record(row) for row in await self._database.fetch(QUERIES["newest_runs"], (limit,))]


def _first(rows: Sequence[Mapping[str, Any]]) -> RunRecord | None:
    return _record(rows[0]) if rows else None


def _record(row: Mapping[str, Any]) -> RunRecord:
    return RunRecord.model_validate(dict(row))
