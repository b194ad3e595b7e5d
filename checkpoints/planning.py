"""How well plans are written, and by whom: counted from the journal, for the runs that are still in the database."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from checkpoints.database import Database
from checkpoints.queries import QUERIES


@dataclass(frozen=True, slots=True)
class PlannerRecord:
    """What one author of plans has done: a model under one prompt in one mode, or whatever `source` says where no model
    was asked (those are None then).

    Of the plans it was `asked` for, `at_first` were valid as they came first; `redrafts` are the tries after a first
    one, `refused` all drafts that could not be used, `repaired` those whose syntax was. Tokens and cost are those of
    its questions, failed requests and lost answers included.
    """

    model: str | None
    prompt_sha256: str | None
    mode: str | None
    source: str
    asked: int
    at_first: int
    redrafts: int
    refused: int
    repaired: int
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int
    cost: float

    @property
    def valid_at_first(self) -> float | None:
        """Plans valid at first try per plan asked for; None where none was."""
        return self.at_first / self.asked if self.asked else None


async def planner_records(
    database: Database, since: datetime | None = None, tenant: str | None = None
) -> list[PlannerRecord]:
    """One record per author, by name, of a tenant's runs or of all; with `since`, of drafts judged from then on."""
    names = [field.name for field in fields(PlannerRecord)]
    rows = await database.fetch(QUERIES["planner_records"], {"since": since, "tenant": tenant})
    return [PlannerRecord(**{name: row[name] for name in names}) for row in rows]
