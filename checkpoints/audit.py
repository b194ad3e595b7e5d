"""The audit of a database: read, added to where no table is audited, and sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from checkpoints.audit_chain import ORIGIN, End, Entry, Seal, key_id, seal_hash, sign
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from checkpoints.tombstones import hashed
from plans.values import JSON

OF_NO_RUN = ("settings", "logins")
"""Chains of what belongs to no run."""


@dataclass(frozen=True, slots=True)
class ChainOfRun:
    """A run of a thread, and what became of it; `gone` where the archive has it, or nobody."""

    chain: str
    status: str
    created_at: datetime
    gone: bool


class Audit:
    """What was audited. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, chain: str, kind: str, subject: str, told: Mapping[str, JSON]) -> None:
        """Add an entry that no table stands for, such as a login. What it tells is stored as it is and for good: it may
        name people and settings, and never what a run holds."""
        noted = {"chain": chain, "kind": kind, "subject": subject, "told": jsonb(dict(told))}
        await self._database.execute(QUERIES["audit_note"], noted)

    async def settings_used(self, host: str, told: Mapping[str, JSON]) -> None:
        """Add under which settings a process on this host is at work, unless they are what the last one there had."""
        await self._database.execute(QUERIES["audit_settings_used"], {"host": host, "told": jsonb(dict(told))})

    async def runs_of(self, thread_id: str, tenant: str | None = None) -> list[ChainOfRun]:
        """The runs that a thread ever had, of one tenant or of any, the oldest first."""
        wanted = {"thread_id": thread_id, "thread_sha256": hashed(thread_id), "tenant": tenant}
        return [ChainOfRun(**row) for row in await self._database.fetch(QUERIES["chains_of_thread"], wanted)]

    async def entries(self, chains: Sequence[str]) -> list[Entry]:
        """All entries of some chains, each chain's in its order."""
        return [Entry(**row) for row in await self._database.fetch(QUERIES["audit_entries"], {"chains": list(chains)})]

    async def latest(self, chains: Sequence[str], limit: int) -> list[Entry]:
        """So many entries of some chains, the newest first."""
        wanted = {"chains": list(chains), "limit": limit}
        return [Entry(**row) for row in await self._database.fetch(QUERIES["audit_of_no_run"], wanted)]

    async def seal(self, key: bytes | None = None) -> Seal | None:
        """Cover all that was audited since the last seal by a new one, signed if there is a key; gives the last seal,
        which is an older one if nothing was. None where nothing was ever audited.

        Kept somewhere else, a seal shows whether anything that it covers was changed or taken away since.
        """
        while True:
            last, now = await self._last_seal()
            ends = [End(**row) for row in await self._database.fetch(QUERIES["chains_to_seal"])]
            if not ends:
                return last
            made = _sealed(last, now, ends, key)
            if await self._database.fetch(QUERIES["add_seal"], _as_columns(made, ends)):
                return made

    async def _last_seal(self) -> tuple[Seal | None, datetime]:
        (row,) = await self._database.fetch(QUERIES["last_seal"])
        now = row.pop("now")
        return (Seal(**row) if row["seal"] is not None else None), now


def _sealed(last: Seal | None, now: datetime, ends: Sequence[End], key: bytes | None) -> Seal:
    number, before = (last.seal + 1, last.hash) if last else (1, ORIGIN)
    made = seal_hash(before, number, now, ends)
    if key is None:
        return Seal(number, now, made)
    return Seal(number, now, made, key_id(key), sign(key, made))


def _as_columns(seal: Seal, ends: Sequence[End]) -> dict[str, Any]:
    return {
        "seal": seal.seal,
        "at": seal.at,
        "hash": seal.hash,
        "key_id": seal.key_id,
        "mac": seal.mac,
        "chains": [end.chain for end in ends],
        "lengths": [end.length for end in ends],
        "heads": [end.head for end in ends],
    }
