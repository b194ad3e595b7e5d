"""The outbox: what somebody is to be told, written by the statement that made it true, and delivered at least once."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.queries import QUERIES
from plans.decisions import ApprovalRequest

EventKind = Literal[
    "approval_requested",
    "approval_escalated",
    "approval_expired",
    "outcome_unknown",
    "run_failed",
    "run_limited",
    "run_stuck",
]
GIVE_UP_AFTER_S = 24 * 3600.0
"""How old an event may grow before it is not delivered any more: what nobody could be told for a day is in `doctor`."""
KEPT_S = 7 * 24 * 3600.0
"""How long an event that is over stays to be looked at."""
HOLD_S = 60.0
"""How long whoever takes an event has to deliver it before another may."""


class OutboxEvent(BaseModel):
    """Something to tell. `event_id` is the same however often it is delivered; `attempts` counts this one too. What is
    about a question has its `request`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    event_id: str
    kind: EventKind
    run_id: str
    thread_id: str
    tenant: str
    code: str | None = None
    message: str | None = None
    at: datetime
    attempts: int
    request: ApprovalRequest | None = None


class OutboxStanding(BaseModel):
    """How many events wait, how many of them could not be delivered so far, and how many never were."""

    model_config = ConfigDict(frozen=True)

    waiting: int
    failing: int
    given_up: int
    oldest: datetime | None = None
    last_error: str | None = None


class Outbox:
    """Events that are due, and what became of them. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, most: int = 20, *, run_id: str | None = None) -> list[OutboxEvent]:
        """Up to so many events that are due now, of one run or of all, each for this caller alone for a minute.

        A question that was answered meanwhile is not told any more, and neither is what is older than a day.
        """
        wish = {"most": most, "run_id": run_id, "give_up_after_s": GIVE_UP_AFTER_S, "hold_s": HOLD_S}
        claimed = await self._database.fetch(QUERIES["claim_events"], wish)
        reached("outbox.claimed")
        return [OutboxEvent.model_validate(row) for row in claimed if row["ended"] is None]

    async def delivered(self, event: OutboxEvent) -> None:
        """It has arrived."""
        reached("outbox.sent")
        await self._database.execute(QUERIES["event_delivered"], {"event_id": event.event_id})

    async def not_delivered(self, event: OutboxEvent, error: str, again_in_s: float) -> None:
        """It has not, and is due again then."""
        failed = {"event_id": event.event_id, "error": error, "again_in_s": again_in_s}
        await self._database.execute(QUERIES["event_not_delivered"], failed)

    async def forget(self) -> int:
        """Delete what was over a week ago, a bounded part of it at a time; gives how many events."""
        return await self._database.execute(QUERIES["forget_events"], {"older_than_s": KEPT_S})

    async def standing(self) -> OutboxStanding:
        """What waits, and what could not be told."""
        return OutboxStanding.model_validate((await self._database.fetch(QUERIES["standing_of_outbox"]))[0])
