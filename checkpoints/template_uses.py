"""How often templates were used and have served, added up over all workers, and which of them are set aside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from checkpoints.database import Database
from checkpoints.queries import QUERIES

WINDOW = 10
AT_LEAST = 5
SHARE = 0.6
"""Of its last WINDOW runs that say something, at least AT_LEAST, less than this share has succeeded: set aside. The
figures are those of a tool's breaker."""

FRESH_S = 2.0
"""How old what a worker knows of templates that are set aside may be."""


@dataclass(frozen=True, slots=True)
class TemplateServed:
    """What the end of a run says of the template its plan was made of: it has served, it has failed with this code, or
    (None) nothing."""

    template: str
    sha256: str
    succeeded: bool | None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a template has served. `recent` is how its last runs have ended, the newest first."""

    used: int = 0
    succeeded: int = 0
    failed: int = 0
    recent: tuple[bool, ...] = ()
    last_failure: str | None = None
    last_used_at: datetime | None = None
    set_aside_at: datetime | None = None

    @property
    def success_rate(self) -> float | None:
        """Of the runs that say something, the share that has succeeded; None where none does."""
        said = self.succeeded + self.failed
        return self.succeeded / said if said else None

    @property
    def because(self) -> str | None:
        """Why it is set aside; None where it is not."""
        if self.set_aside_at is None:
            return None
        return (
            f"{sum(self.recent)} of its last {len(self.recent)} runs succeeded; the last failure: {self.last_failure}"
        )


class TemplateUses:
    """Counts by template and hash of its content; a template whose content has changed starts anew."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._aside: frozenset[tuple[str, str]] = frozenset()
        self._known_until = 0.0
        self._asking = asyncio.Lock()

    async def aside(self) -> frozenset[tuple[str, str]]:
        """Names and hashes of the templates that are set aside, possibly as it was two seconds ago."""
        if self._monotonic() >= self._known_until:
            async with self._asking:  # one asks for all that wait
                if (asked := self._monotonic()) >= self._known_until:
                    rows = await self._database.fetch(QUERIES["templates_aside"])
                    self._aside = frozenset((row["template"], row["sha256"]) for row in rows)
                    self._known_until = asked + FRESH_S
        return self._aside

    async def standing(self) -> Mapping[tuple[str, str], Standing]:
        """Every template that was ever used, by name and hash."""
        return {
            (row["template"], row["sha256"]): Standing(
                used=row["used"],
                succeeded=row["succeeded"],
                failed=row["failed"],
                recent=tuple(row["recent"]),
                last_failure=row["last_failure"],
                last_used_at=row["last_used_at"],
                set_aside_at=row["set_aside_at"],
            )
            for row in await self._database.fetch(QUERIES["template_standing"])
        }

    async def restore(self, template: str, sha256: str) -> bool:
        """Have a template matched again, and judged by what comes from now on; False if it was not set aside."""
        changed = await self._database.execute(QUERIES["restore_template"], {"template": template, "sha256": sha256})
        self._known_until = 0.0
        return bool(changed)


def counted(served: TemplateServed) -> dict[str, object]:
    """What the statement that ends a run is given about its template."""
    return {
        "template": served.template,
        "sha256": served.sha256,
        "succeeded": served.succeeded,
        "code": served.code,
        "window": WINDOW,
        "at_least": AT_LEAST,
        "share": SHARE,
    }
