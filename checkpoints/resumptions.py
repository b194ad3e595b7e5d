"""Runs with which nobody goes on by himself, and whose turn it is to try: one sweeper's at a time, and not for ever."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.queries import QUERIES
from checkpoints.runs import RunStatus

Why = Literal["decided", "expired", "told", "cancelled", "lost", "stopped"]
MOST_ATTEMPTS = 6
"""How often a run is taken up without getting anywhere before it is left alone for a day; the last time it is told."""
PAUSE_S = 30.0
"""How long a run that was taken up in vain is left alone, doubled each time, at most an hour."""


class LeftRun(BaseModel):
    """A run that may go on and that nobody drives: why, and until when (in seconds from now) it is another sweeper's.
    `attempts` is how often one has tried."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    thread_id: str
    tenant: str
    status: RunStatus
    why: Why
    attempts: int | None = None
    last_error: str | None = None
    left_to_s: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether a sweeper may try now. What somebody has stopped in order is his."""
        tried = self.attempts is not None and (self.attempts >= MOST_ATTEMPTS or (self.left_to_s or 0.0) > 0)
        return self.why != "stopped" and not tried

    @property
    def is_stuck(self) -> bool:
        """Whether no sweeper tries any more."""
        return self.why != "stopped" and (self.attempts or 0) >= MOST_ATTEMPTS


class Resumptions:
    """Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def left(self, run_id: str | None = None) -> list[LeftRun]:
        """Runs with which nobody goes on by himself, the oldest first; only this one, where it is named."""
        found = await self._database.fetch(QUERIES["runs_left_behind"], {"run_id": run_id})
        return [LeftRun.model_validate(row) for row in found]

    async def claim(self, run_id: str) -> bool:
        """Whether the run is this caller's to resume; then nobody else tries for a while, also if he dies."""
        wish = {"run_id": run_id, "pause_s": PAUSE_S, "most": MOST_ATTEMPTS}
        claimed = await self._database.fetch(QUERIES["claim_resumption"], wish)
        reached("sweep.claimed")
        return bool(claimed)

    async def failed(self, run_id: str, error: str) -> None:
        """It did not get anywhere, for this reason."""
        await self._database.execute(QUERIES["resumption_failed"], {"run_id": run_id, "error": error})

    async def succeeded(self, run_id: str) -> None:
        """It went on; if it is left behind again, that is another time."""
        reached("sweep.resumed")
        await self._database.execute(QUERIES["forget_resumption"], {"run_id": run_id})

    async def forget(self) -> int:
        """Delete attempts that are a day old, which count for nothing any more; gives how many."""
        return await self._database.execute(QUERIES["forget_resumptions"])
