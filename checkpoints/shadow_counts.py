"""How often candidates have agreed with the tools that they shadow, added up over all workers. Fits the tools' port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.shadowing import KEPT_DIFFERENCES, Agreement, Difference, Pair
from plans.values import JSON


@dataclass(frozen=True, slots=True)
class NotedDifference:
    """A difference, and when it was stored."""

    noted_at: datetime
    difference: Difference

    def as_json(self) -> dict[str, JSON]:
        """The same for programs."""
        return {
            "at": self.noted_at.isoformat(),
            "args_sha256": self.difference.args_sha256,
            "places": list(self.difference.places),
        }


class PostgresShadows:
    """Counts by pair. Calls of several workers count one after the other as they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, counted: Mapping[Pair, Agreement]) -> None:
        """Add to what is stored, all of it or nothing; in one order, so that no two workers wait in a ring."""
        statements = [each for pair in sorted(counted) for each in _statements(pair, counted[pair])]
        await self._database.together(statements)

    async def counts(self) -> dict[Pair, Agreement]:
        """What is stored, by pair; differences apart."""
        rows = await self._database.fetch(QUERIES["shadow_counts"])
        return {
            Pair(row["tool"], row["candidate"], row["edition"]): Agreement(
                row["agreed"], row["differed"], row["failed"], row["in_a_row"]
            )
            for row in rows
        }

    async def differences(self, tool: str, candidate: str) -> list[NotedDifference]:
        """The last differences of a pair, the newest first."""
        rows = await self._database.fetch(QUERIES["shadow_differences"], (tool, candidate))
        return [NotedDifference(row["noted_at"], Difference(row["args_sha256"], tuple(row["places"]))) for row in rows]

    async def break_row(self, pair: Pair) -> None:
        """From here on the candidate has to agree anew."""
        await self._database.execute(QUERIES["break_row"], (pair.tool, pair.candidate, pair.edition))


def _statements(pair: Pair, found: Agreement) -> list[tuple[str, dict[str, object]]]:
    named: dict[str, object] = {"tool": pair.tool, "candidate": pair.candidate, "edition": pair.edition}
    counts = {name: getattr(found, name) for name in ("agreed", "differed", "failed", "in_a_row", "broken")}
    statements: list[tuple[str, dict[str, object]]] = [(QUERIES["add_to_shadow_counts"], named | counts)]
    for difference in found.differences:
        given = {"args_sha256": difference.args_sha256, "places": jsonb(list(difference.places))}
        statements.append((QUERIES["note_difference"], named | given))
    if found.differences:
        statements.append((QUERIES["prune_differences"], named | {"kept": KEPT_DIFFERENCES}))
    return statements
