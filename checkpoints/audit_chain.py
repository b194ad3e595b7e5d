"""The arithmetic of the audit: how entries are linked, how seals cover them, what is wrong with those that are not so.

Pure: it trusts nothing that the database has computed. An entry's hash is SHA-256 over the hash of the entry before it
(32 zero bytes for the first), then chain, seq, microseconds, kind and subject as lines, then the entry's `content`; a
content is SHA-256 over the chain's salt and the text of what it tells of. A seal's hash covers the seal before it and
the ends of all chains that have grown since.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from plans.values import JSON

Code = Literal[
    "edited",
    "deleted",
    "inserted",
    "cut_off",
    "rewritten",
    "chain_missing",
    "not_audited",
    "source_changed",
    "source_missing",
    "salt_missing",
    "seal_broken",
    "signature_wrong",
    "anchor_missing",
]
"""What verification can find, in one word each."""

ORIGIN = bytes(32)
"""What the first entry of a chain, and the first seal, has before it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was written: in which chain (or in the seals), where, and what."""

    code: Code
    message: str
    chain: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a chain. `told` is the text of its details, where it has any; `details` the same, read."""

    chain: str
    seq: int
    at: datetime
    kind: str
    subject: str
    content: bytes
    hash: bytes
    told: str | None = None
    details: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Where a chain ended at some moment: its number of entries, and the hash of the last."""

    chain: str
    length: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """The ends of all chains that had grown, signed if there was a key."""

    seal: int
    at: datetime
    hash: bytes
    key_id: str | None = None
    mac: bytes | None = None


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def content_of(salt: bytes, text: str) -> bytes:
    """What stands in an entry for a text."""
    return hashlib.sha256(salt + text.encode()).digest()


def subject_of(salt: bytes, key: str) -> str:
    """What stands in an entry for the key of a row."""
    return hashlib.sha256(salt + key.encode()).digest()[:16].hex()


def link(before: bytes, entry: Entry) -> bytes:
    """The hash that an entry has behind this one."""
    words = (entry.chain, str(entry.seq), str(micros(entry.at)), entry.kind, entry.subject)
    return hashlib.sha256(before + "\n".join(words).encode() + entry.content).digest()


def seal_hash(before: bytes, seal: int, at: datetime, ends: Sequence[End]) -> bytes:
    """The hash of a seal behind this one, over these ends, which are in the order of their chains."""
    lines = [f"{seal}\n{micros(at)}\n", *(f"{end.chain}\n{end.length}\n{end.head.hex()}\n" for end in ends)]
    return hashlib.sha256(before + "".join(lines).encode()).digest()


def sign(key: bytes, seal: bytes) -> bytes:
    """The signature of a seal's hash."""
    return hmac.digest(key, b"surestep audit seal\n" + seal, "sha256")


def key_id(key: bytes) -> str:
    """A name for a key that does not tell it."""
    return hmac.digest(key, b"surestep audit key", "sha256").hex()[:16]


def check_links(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Whether the entries of one chain, in the order of their numbers, are each the one that was written there."""
    before: bytes | None = ORIGIN
    expected = 1
    for entry in entries:
        if entry.seq != expected:
            gone = f"entry {expected}" if entry.seq == expected + 1 else f"entries {expected} to {entry.seq - 1}"
            yield Finding("deleted", f"{gone} of {entry.chain} were taken away", entry.chain, expected)
            before = None
        if before is not None and link(before, entry) != entry.hash:
            told = f"entry {entry.seq} of {entry.chain} was changed, or stands where another stood"
            yield Finding("edited", told, entry.chain, entry.seq)
        before, expected = entry.hash, entry.seq + 1


def check_end(entries: Sequence[Entry], end: End) -> Iterator[Finding]:
    """Whether a chain ends where its own record says that it does."""
    last = entries[-1] if entries else None
    length, head = (last.seq, last.hash) if last else (0, ORIGIN)
    if length < end.length:
        told = f"{end.chain} ends with entry {length} and had {end.length}: the rest was cut off"
        yield Finding("cut_off", told, end.chain, length)
    elif length > end.length:
        told = f"{end.chain} has entries behind number {end.length}, where its record ends: they were put in"
        yield Finding("inserted", told, end.chain, end.length + 1)
    elif head != end.head:
        told = f"the last entry of {end.chain} is not the one that its record names"
        yield Finding("edited", told, end.chain, length)


def check_sealed(chain: str, entries: Sequence[Entry], ends: Sequence[tuple[int, End]]) -> Iterator[Finding]:
    """Whether a chain still is what each seal has covered of it."""
    hashes = {entry.seq: entry.hash for entry in entries}
    for seal, end in ends:
        found = hashes.get(end.length)
        if found is None:
            told = f"{chain} had {end.length} entries when seal {seal} was made; they are not there any more"
            yield Finding("cut_off", told, chain, end.length)
        elif found != end.head:
            told = f"{chain} was rewritten up to entry {end.length} after seal {seal} was made"
            yield Finding("rewritten", told, chain, end.length)


def check_seals(seals: Sequence[Seal], ends: Mapping[int, Sequence[End]], before: bytes = ORIGIN) -> Iterator[Finding]:
    """Whether seals that follow each other are linked, and cover what they say; `before` is the hash of the one before
    the first."""
    for seal in seals:
        if seal_hash(before, seal.seal, seal.at, ends.get(seal.seal, ())) != seal.hash:
            yield Finding("seal_broken", f"seal {seal.seal}, or what it covers, is not what it was when it was made")
        before = seal.hash


def check_signatures(seals: Sequence[Seal], key: bytes) -> Iterator[Finding]:
    """Whether this key has signed the last seal, and each that names it: by its link a seal speaks for those before."""
    known = key_id(key)
    for seal in seals:
        last = seal is seals[-1]
        if seal.key_id == known and not hmac.compare_digest(seal.mac or b"", sign(key, seal.hash)):
            yield Finding("signature_wrong", f"seal {seal.seal} was not signed with the key that it names")
        elif last and seal.key_id is None:
            yield Finding("signature_wrong", f"seal {seal.seal}, the last one, is not signed, and there is a key")
        elif last and seal.key_id != known:
            told = f"seal {seal.seal}, the last one, was signed with key {seal.key_id}, and this one is {known}"
            yield Finding("signature_wrong", told)
