"""What was changed about tools while running: read by every call, changed by people, and kept on record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.values import JSON, canonical

FRESH_S = 2.0
"""How old what a worker knows of the settings may be: one query then serves all calls of two seconds."""

Stored = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One change of one tool's settings: all that was changed about the tool before it, and after it."""

    tool: str
    changed_at: datetime
    changed_by: str
    before: Stored
    after: Stored


class PostgresSettings:
    """What was changed about tools, by tool. Another worker's change is seen within two seconds."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._known: dict[str, Stored] = {}
        self._known_until = 0.0
        self._asking = asyncio.Lock()

    async def get(self, tool: str) -> Mapping[str, JSON]:
        """The changes, possibly two seconds old; empty where nothing was changed."""
        if self._monotonic() >= self._known_until:
            async with self._asking:  # one asks for all that wait
                if (asked := self._monotonic()) >= self._known_until:
                    self._known = await self.get_all()
                    self._known_until = asked + FRESH_S
        return self._known.get(tool, {})

    async def get_all(self) -> dict[str, Stored]:
        """All changes by tool, as they are now."""
        return {row["tool"]: row["settings"] for row in await self._database.fetch(QUERIES["tool_settings"])}

    async def change(self, tool: str, change: Callable[[Stored], Stored], by: str) -> tuple[Stored, Stored]:
        """Replace what is stored about a tool by what `change` makes of it; gives it before and after. Where somebody
        else was faster, `change` is asked again about what that one has stored. What it raises changes nothing."""
        while True:
            found = await self._database.fetch(QUERIES["settings_of_tool"], (tool,))
            before: Stored = found[0]["settings"] if found else {}
            after = change(dict(before))
            if canonical(after) == canonical(before):
                return before, after
            asked = {"tool": tool, "old": jsonb(before), "new": jsonb(after), "by": by}
            if await self._database.execute(QUERIES["swap_tool_settings"], asked):
                self._known_until = 0.0
                return before, after

    async def history(self, tool: str | None = None, limit: int | None = None) -> list[ToolChange]:
        """The changes of one tool, or of all, the newest first."""
        rows = await self._database.fetch(QUERIES["tool_changes"], {"tool": tool, "limit": limit})
        return [ToolChange(**row) for row in rows]
