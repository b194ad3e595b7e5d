"""Compares the entries of a chain with the rows that they tell of, as far as these are still there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from checkpoints.audit_chain import Entry, Finding, content_of, subject_of
from checkpoints.audited import TABLES

KEPT = frozenset(table.what for table in TABLES if table.kept)


@dataclass(frozen=True)
class Standing:
    """What there is of a chain beside its entries: its salt, what became of its run, and the rows by table and key."""

    chain: str
    salt: bytes | None
    recorded: bool
    stored: bool
    archived: bool
    erased: bool
    rows: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


def check_sources(entries: Sequence[Entry], standing: Standing) -> Iterator[Finding]:
    """Whether every row has its entry and is what was audited last of it, and every entry its row.

    Of a run that was erased nothing can be compared, and of one in the archive only what stays in the database.
    """
    if standing.salt is None:
        if standing.recorded and not standing.erased:
            told = f"the salt of {standing.chain} is gone, and it was not erased: its contents cannot be compared"
            yield Finding("salt_missing", told, standing.chain)
        return
    yield from _check_run(entries, standing)
    yield from _check_journal(entries, standing, standing.salt)
    yield from _check_notes(entries, standing.salt)
    by_subject = _newest(entries)
    for table in TABLES:
        if table.what != "journal":
            yield from _check_rows(table.what, by_subject[table.what], standing, standing.salt)


def _check_run(entries: Sequence[Entry], standing: Standing) -> Iterator[Finding]:
    """A run goes to the archive, or is erased; else it stays."""
    began = any(entry.kind.startswith("run.") for entry in entries)
    if began and not (standing.stored or standing.archived or standing.erased):
        told = f"run {standing.chain} is gone, and was neither archived nor erased"
        yield Finding("source_missing", told, standing.chain)


def _check_journal(entries: Sequence[Entry], standing: Standing, salt: bytes) -> Iterator[Finding]:
    """Each row of the journal has one entry, and each entry its row."""
    rows, chain = standing.rows["journal"], standing.chain
    seen: set[str] = set()
    for entry in entries:
        if not entry.kind.startswith("journal."):
            continue
        where = f"row {entry.subject} of the journal of {chain}"
        if entry.subject in seen:
            yield Finding("inserted", f"{where} has a second entry", chain, entry.seq)
        elif entry.subject in rows:
            if content_of(salt, rows[entry.subject]) != entry.content:
                yield Finding("source_changed", f"{where} is not what was audited", chain, entry.seq)
        elif standing.stored:
            yield Finding("source_missing", f"{where} is gone", chain, entry.seq)
        seen.add(entry.subject)
    for key in rows.keys() - seen:
        yield Finding("not_audited", f"row {key} of the journal of {chain} has no entry", chain)


def _check_notes(entries: Sequence[Entry], salt: bytes) -> Iterator[Finding]:
    for entry in entries:
        if entry.told is not None and content_of(salt, entry.told) != entry.content:
            told = f"what entry {entry.seq} of {entry.chain} tells is not what was audited"
            yield Finding("edited", told, entry.chain, entry.seq)


def _newest(entries: Sequence[Entry]) -> Mapping[str, dict[str, Entry]]:
    """The last entry of each row, by table and subject."""
    found: dict[str, dict[str, Entry]] = defaultdict(dict)
    for entry in entries:
        if entry.told is None:
            found[entry.kind.partition(".")[0]][entry.subject] = entry
    return found


def _check_rows(what: str, newest: Mapping[str, Entry], standing: Standing, salt: bytes) -> Iterator[Finding]:
    chain = standing.chain
    found = {subject_of(salt, key): (key, text) for key, text in standing.rows[what].items()}
    for subject, (key, text) in found.items():
        entry = newest.get(subject)
        if entry is None:
            yield Finding("not_audited", f"{what} {key} of {chain} has no entry", chain)
        elif entry.content != content_of(salt, text):
            told = f"{what} {key} of {chain} is not what was audited last ({entry.kind})"
            yield Finding("source_changed", told, chain, entry.seq)
    if standing.stored or what in KEPT:
        for subject in newest.keys() - found.keys():
            entry = newest[subject]
            told = f"what entry {entry.seq} of {chain} tells of ({entry.kind}) is gone"
            yield Finding("source_missing", told, chain, entry.seq)
