"""The table of runs: one row per request, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.backlog import stale
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from checkpoints.rows import Row, body_text
from checkpoints.template_uses import TemplateServed, counted
from checkpoints.tombstones import Tombstone, Tombstones
from plans.errors import ThreadBusy, UsageError
from plans.values import JSON, sha256_of

RunStatus = Literal["running", "paused", "done", "failed", "cancelled", "limited"]

Durability = Literal["exit", "async", "sync"]
"""When LangGraph saves checkpoints: where a drive ends, or also between its nodes, behind them or before they go on."""

ENDED = frozenset({"done", "failed", "cancelled", "limited"})
"""Statuses in which a run has ended; a limited one may begin again, by a person with a higher limit."""


OPEN: frozenset[RunStatus] = frozenset({"running", "paused", "limited"})
"""Statuses of a run that may go on. A thread has at most one such run, and with none takes a goal as a new one."""


class RunRecord(BaseModel):
    """A run as the table has it. Times are the database's; an empty `input_sha256` is filled in by `Runs.create`.

    A run that is in the archive has its tombstone in `archived`; goal, input and summary are with its files then.
    """

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
    archived: Tombstone | None = None
    forked_from: str | None = None


@dataclass(frozen=True)
class Inherited:
    """What a fork begins with: its first journal rows, and which results of the run it was made of it refers to."""

    rows: Sequence[Row]
    output_refs: Sequence[str]


class Runs:
    """Runs by id, by thread and by age. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tombstones = Tombstones(database)

    async def create(self, record: RunRecord, inherited: Inherited | None = None) -> RunRecord:
        """Store a new run with its lease row, not driven by anyone yet; gives the row as it is stored.

        Where the tenant's `request_id` is known and its input is the same, that first run is given back and nothing is
        stored, however many callers come at once (rule 16), also long after it was archived. With other input, or when
        that run was erased, or when the thread has another run that has not ended, it is a UsageError (ThreadBusy while
        that one is on its way). What a fork inherits is stored by the same statement: there is never a fork without it
        (rule 18).
        """
        digest = record.input_sha256 or sha256_of({"goal": record.goal, "input": record.input})
        stored = record.model_dump(include={"run_id", "thread_id", "tenant", "request_id", "goal", "status"})
        written = {**stored, "input": jsonb(record.input), "input_sha256": digest, "summary": jsonb(record.summary)}
        if inherited is not None:
            written |= _begins_with(record, inherited)
        statement = QUERIES["create_run" if inherited is None else "create_fork"]
        # The second statement sees what the first one waited for: a statement's snapshot is taken before its waits.
        found = await self._database.fetch(statement, written) or await self._database.fetch(
            QUERIES["run_of_request"], (record.tenant, record.request_id)
        )
        reached("run.created")
        first = _first(found) or await self._buried(record)
        if first.input_sha256 != digest:
            raise UsageError(
                f"the request {record.request_id!r} was already made with another goal or other inputs (run "
                f"{first.run_id}, thread {first.thread_id}: {first.goal[:80]!r}); send the same input to get that "
                "run's answer, or choose another request id"
            )
        return first

    async def _buried(self, record: RunRecord) -> RunRecord:
        """The archived run of a request that has no row any more. Raises UsageError where there is none."""
        stone = await self._tombstones.of_request(record.request_id, record.tenant)
        if stone is None:
            latest = await self._in_the_way(record)
            if latest is not None and latest.status in OPEN:
                refusal = ThreadBusy if latest.status == "running" else UsageError
                raise refusal(
                    f"thread {record.thread_id!r} has a run that is not finished ({latest.run_id}, {latest.status}). "
                    f"Go on with it by `surestep resume {record.thread_id}`, end it by `surestep cancel "
                    f"{record.thread_id}`, or use another thread"
                )
            raise UsageError(f"the request {record.request_id!r} was erased while it was made; make it again")
        if stone.erased_at is not None:
            raise UsageError(
                f"the request {record.request_id!r} was made before, and {stone.epitaph}; choose another request id if "
                "it is to be done again"
            )
        return _of_stone(stone)

    async def _in_the_way(self, record: RunRecord) -> RunRecord | None:
        """The newest run of a thread on which none could begin. Raises UsageError where the thread is another tenant's,
        and says no more of it than that."""
        latest = await self.latest(record.thread_id)
        tenants = {stone.tenant for stone in await self._tombstones.of_thread(record.thread_id)}
        if (tenants | ({latest.tenant} if latest is not None else set())) - {record.tenant}:
            raise UsageError(
                f"the thread id {record.thread_id!r} cannot be used here; choose another, or leave it out to get one"
            )
        return latest

    async def get(self, run_id: str) -> RunRecord | None:
        """The run of this id, be it archived."""
        found = _first(await self._database.fetch(QUERIES["run_by_id"], (run_id,)))
        return found or _living(await self._tombstones.of_run(run_id))

    async def by_request(self, request_id: str, tenant: str = "") -> RunRecord | None:
        """The run that this request began, be it archived."""
        found = _first(await self._database.fetch(QUERIES["run_of_request"], (tenant, request_id)))
        return found or _living(await self._tombstones.of_request(request_id, tenant))

    async def latest(self, thread_id: str) -> RunRecord | None:
        """The newest run of a thread, be it archived."""
        if found := _first(await self._database.fetch(QUERIES["latest_run"], (thread_id,))):
            return found
        stones = await self._tombstones.of_thread(thread_id)
        return next((run for stone in stones if (run := _living(stone)) is not None), None)

    async def forks(self, run_id: str) -> Sequence[RunRecord]:
        """The runs that were forked from this one, and hold its results too; oldest first."""
        return [_record(row) for row in await self._database.fetch(QUERIES["forks_of_run"], (run_id,))]

    async def set_status(
        self,
        run_id: str,
        fence: int,
        status: RunStatus,
        summary: Mapping[str, JSON],
        *,
        served: TemplateServed | None = None,
    ) -> None:
        """Write how the run stands; StaleOwner, and nothing written, when the lease is not this fence's any more.

        A status that ends the run sets `ended_at`, any other clears it. What the end says of the run's template is
        counted in the same commit, once per run.
        """
        written: dict[str, Any] = {
            "run_id": run_id,
            "fence": fence,
            "status": status,
            "summary": jsonb(dict(summary)),
            "ended": status in ENDED,
        }
        statement = QUERIES["set_run_status"]
        if served is not None:
            statement, written = QUERIES["end_run_of_template"], written | counted(served)
        if not await self._database.fetch(statement, written):
            raise stale(run_id, fence)
        reached("run.status_set")

    async def list(self, limit: int = 50, tenant: str | None = None) -> Sequence[RunRecord]:
        """The newest runs, newest first: of one tenant, or of all."""
        wanted = {"limit": limit, "tenant": tenant}
        return [_record(row) for row in await self._database.fetch(QUERIES["newest_runs"], wanted)]


def _begins_with(record: RunRecord, inherited: Inherited) -> dict[str, Any]:
    return {
        "forked_from": record.forked_from,
        "output_refs": list(inherited.output_refs),
        "n": [row.n for row in inherited.rows],
        "kind": [row.kind for row in inherited.rows],
        "body": [body_text(row) for row in inherited.rows],
    }


def _first(rows: Sequence[Mapping[str, Any]]) -> RunRecord | None:
    return _record(rows[0]) if rows else None


def _living(stone: Tombstone | None) -> RunRecord | None:
    """The archived run under a tombstone; None where there is none, or nothing but the tombstone."""
    return _of_stone(stone) if stone is not None and stone.archived_at and not stone.erased_at else None


def _of_stone(stone: Tombstone) -> RunRecord:
    kept = stone.model_dump(include={"run_id", "tenant", "status", "created_at", "ended_at", "forked_from"})
    known = {name: getattr(stone, name) or "" for name in ("thread_id", "request_id", "input_sha256")}
    return RunRecord.model_validate({**kept, **known, "goal": "", "archived": stone})


def _record(row: Mapping[str, Any]) -> RunRecord:
    return RunRecord.model_validate(dict(row))
