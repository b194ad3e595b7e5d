"""What the database knows of a run, cut back to the moment after any one of its journal rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from checkpoints.database import Database

TABLES = (
    "surestep.runs", "surestep.leases", "surestep.journal", "surestep.artifacts", "surestep.approvals",
    "public.checkpoints", "public.checkpoint_blobs", "public.checkpoint_writes", "public.bookings",
)  # fmt: skip
ALL = 1_000
"""More checkpoints than any run here has."""


@dataclass(frozen=True)
class Past:
    """A row of the journal, and when it was accepted."""

    kind: str
    step_id: str | None
    attempt: int
    body: dict[str, Any]
    at: datetime


class History:
    """The tables of a finished run, set aside so that they can be brought back again and again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.rows: list[Past] = []

    async def keep(self) -> None:
        """Set everything aside, in place of what was set aside before."""
        await self._database.execute("DROP SCHEMA IF EXISTS kept CASCADE")
        await self._database.execute("CREATE SCHEMA kept")
        for table in TABLES:
            await self._database.execute(f"CREATE TABLE kept.{_bare(table)} AS TABLE {table}")
        found = await self._database.fetch(
            "SELECT kind, step_id, attempt, body, at FROM surestep.journal ORDER BY fence, n"
        )
        self.rows = [Past(**row) for row in found]

    async def cut_after(self, count: int, lost: int) -> None:
        """Bring back what was known when the first so many rows had been accepted, and nothing else.

        LangGraph's checkpoints are written in the background: so many of the last ones were lost.
        """
        for table in reversed(TABLES):
            await self._database.execute(f"TRUNCATE {table} CASCADE")
        for table in TABLES:
            await self._database.execute(f"INSERT INTO {table} TABLE kept.{_bare(table)}")
        last = self.rows[count - 1].at
        await self._cut_journal(count)
        await self._cut_approvals(last)
        await self._cut_checkpoints(last, lost)
        if not any(row.kind == "outcome" and row.step_id == "book" for row in self.rows[:count]):
            await self._database.execute("DELETE FROM bookings")

    async def _cut_journal(self, count: int) -> None:
        await self._database.execute(
            "DELETE FROM surestep.journal WHERE (fence, n) NOT IN"
            " (SELECT fence, n FROM surestep.journal ORDER BY fence, n LIMIT %s)",
            (count,),
        )
        await self._database.execute("UPDATE surestep.runs SET status = 'running', ended_at = NULL")
        await self._database.execute("UPDATE surestep.leases SET owner = NULL, backend_pid = NULL, expires_at = NULL")

    async def _cut_approvals(self, last: datetime) -> None:
        tables = ("surestep.approvals", "surestep.decisions")
        for table in tables:  # else an answer stays
            await self._database.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        await self._database.execute("DELETE FROM surestep.approvals WHERE created_at > %s", (last,))
        await self._database.execute("DELETE FROM surestep.decisions WHERE decided_at > %s", (last,))
        await self._database.execute(
            "UPDATE surestep.approvals SET status = 'pending', decision = NULL, decided_by = NULL, decided_at = NULL,"
            " voters = '{}' WHERE decided_at > %s OR status = 'withdrawn'",
            (last,),
        )
        for table in tables:
            await self._database.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    async def _cut_checkpoints(self, last: datetime, lost: int) -> None:
        found = await self._database.fetch(
            "SELECT checkpoint_id FROM checkpoints WHERE (checkpoint ->> 'ts')::timestamptz <= %s"
            " ORDER BY checkpoint_id",
            (last,),
        )
        kept = [row["checkpoint_id"] for row in found][: max(0, len(found) - lost)]
        await self._database.execute("DELETE FROM checkpoints WHERE checkpoint_id <> ALL (%s)", (kept,))
        await self._database.execute("DELETE FROM checkpoint_writes WHERE checkpoint_id <> ALL (%s)", (kept[:-1],))


def _bare(table: str) -> str:
    return table.partition(".")[2]
