"""Looks whether what was audited is what was written, and whether the tables still say what was audited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from checkpoints.audit_chain import (
    ORIGIN,
    End,
    Entry,
    Finding,
    Seal,
    check_end,
    check_links,
    check_sealed,
    check_seals,
    check_signatures,
)
from checkpoints.audit_sources import Standing, check_sources
from checkpoints.audited import TABLES
from checkpoints.database import Database
from checkpoints.queries import QUERIES

if TYPE_CHECKING:
    from psycopg import AsyncConnection

PAGE_ENTRIES = 20_000
"""About as many entries are held at a time."""
PAGE_SEALS = 500


@dataclass(frozen=True, slots=True)
class Anchor:
    """A seal that was kept elsewhere."""

    seal: int
    hash: bytes


@dataclass
class Verified:
    """What was looked at, and what was found. `unsealed` counts entries that no seal covers, `archived` and `erased`
    runs whose rows cannot be compared."""

    findings: list[Finding] = field(default_factory=list)
    chains: int = 0
    entries: int = 0
    rows: int = 0
    seals: int = 0
    sealed_at: datetime | None = None
    signed: bool = False
    anchored: bool = False
    unsealed: int = 0
    archived: int = 0
    erased: int = 0


async def verify(
    database: Database,
    *,
    chains: Sequence[str] | None = None,
    key: bytes | None = None,
    anchors: Sequence[Anchor] = (),
) -> Verified:
    """Verify some chains, or all of them and the seals, as they are at one moment. Nothing is changed or waited for."""
    async with _snapshot(database) as connection:
        return await verify_on(connection, chains=chains, key=key, anchors=anchors)


async def verify_on(
    connection: AsyncConnection[Any],
    *,
    chains: Sequence[str] | None = None,
    key: bytes | None = None,
    anchors: Sequence[Anchor] = (),
) -> Verified:
    """The same as this transaction sees it. Its time zone must be UTC."""
    found = Verified()
    known = await _rows(connection, "audit_chains", {"chains": None if chains is None else list(chains)})
    if chains is None:
        await _verify_seals(connection, found, key, anchors)
    for page in _pages(known):
        await _verify_chains(connection, found, page)
    return found


async def _verify_seals(
    connection: AsyncConnection[Any], found: Verified, key: bytes | None, anchors: Sequence[Anchor]
) -> None:
    seals = [Seal(**row) for row in await _rows(connection, "audit_seals", {})]
    before = ORIGIN
    for start in range(0, len(seals), PAGE_SEALS):
        page = seals[start : start + PAGE_SEALS]
        ends: dict[int, list[End]] = defaultdict(list)
        for row in await _rows(connection, "sealed_by", {"first": page[0].seal, "last": page[-1].seal}):
            ends[row["seal"]].append(End(row["chain"], row["length"], row["head"]))
        found.findings += check_seals(page, ends, before)
        before = page[-1].hash
    found.findings += _check_numbers(seals)
    if key is not None and seals:
        found.findings += check_signatures(seals, key)
        found.signed = True
    for anchor in anchors:
        found.findings += _check_anchor(seals, anchor)
        found.anchored = True
    found.seals, found.sealed_at = len(seals), seals[-1].at if seals else None


def _check_numbers(seals: Sequence[Seal]) -> Iterator[Finding]:
    for expected, seal in enumerate(seals, start=1):
        if seal.seal != expected:
            yield Finding("seal_broken", f"seal {expected} was taken away: seal {seal.seal} stands in its place")
            return


def _check_anchor(seals: Sequence[Seal], anchor: Anchor) -> Iterator[Finding]:
    found = next((seal for seal in seals if seal.seal == anchor.seal), None)
    if found is None:
        yield Finding("anchor_missing", f"seal {anchor.seal}, which was kept, is not there: what it covers was cut off")
    elif found.hash != anchor.hash:
        yield Finding("rewritten", f"seal {anchor.seal} is not the one that was kept: what it covers was rewritten")


async def _verify_chains(connection: AsyncConnection[Any], found: Verified, page: Sequence[Mapping[str, Any]]) -> None:
    wanted: dict[str, Any] = {"chains": [row["chain"] for row in page]}
    entries: dict[str, list[Entry]] = defaultdict(list)
    for entry in await _rows(connection, "audit_entries", wanted):
        entries[entry["chain"]].append(Entry(**entry))
    ends: dict[str, list[tuple[int, End]]] = defaultdict(list)
    for end in await _rows(connection, "sealed_ends", wanted):
        ends[end["chain"]].append((end["seal"], End(end["chain"], end["length"], end["head"])))
    standings = {row["chain"]: _standing(row) for row in page}
    for table in TABLES:
        for found_row in await _rows(connection, table.query, wanted):
            standings[found_row["chain"]].rows[table.what][found_row["key"]] = found_row["content"]
    for row in page:
        chain = str(row["chain"])
        found.findings += _check_chain(row, entries[chain], ends[chain], standings[chain])
        _count(found, row, entries[chain], ends[chain], standings[chain])


def _check_chain(
    row: Mapping[str, Any], entries: Sequence[Entry], ends: Sequence[tuple[int, End]], standing: Standing
) -> Iterator[Finding]:
    yield from check_links(entries)
    if row["head"] is None:
        yield Finding("chain_missing", f"the record of chain {row['chain']} is not there", row["chain"])
    else:
        yield from check_end(entries, End(row["chain"], row["length"], row["head"]))
    yield from check_sealed(row["chain"], entries, ends)
    yield from check_sources(entries, standing)


def _count(
    found: Verified,
    row: Mapping[str, Any],
    entries: Sequence[Entry],
    ends: Sequence[tuple[int, End]],
    standing: Standing,
) -> None:
    found.chains += 1
    found.entries += len(entries)
    found.rows += sum(map(len, standing.rows.values()))
    found.unsealed += max(0, len(entries) - (ends[-1][1].length if ends else 0))
    found.erased += row["erased"]
    found.archived += row["archived"] and not row["erased"]


def _standing(row: Mapping[str, Any]) -> Standing:
    return Standing(
        chain=row["chain"],
        salt=row["salt"],
        recorded=row["head"] is not None,
        stored=row["stored"],
        archived=row["archived"],
        erased=row["erased"],
    )


def _pages(known: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    page: list[Mapping[str, Any]] = []
    entries = 0
    for row in known:
        page.append(row)
        entries += row["length"] + 1
        if entries >= PAGE_ENTRIES:
            yield page
            page, entries = [], 0
    if page:
        yield page


@asynccontextmanager
async def _snapshot(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    """One moment of the database, with times as they are hashed."""
    async with database.pool.connection() as connection, connection.transaction():
        await connection.execute(QUERIES["audit_moment"])
        await connection.execute(QUERIES["audit_timezone"])
        yield connection


async def _rows(connection: AsyncConnection[Any], query: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await (await connection.execute(QUERIES[query], params or None)).fetchall()
    return found
