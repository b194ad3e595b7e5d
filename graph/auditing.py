"""The audit for people and programs: a thread's entries in words, exports, seals, and what verification can say."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from checkpoints.audit import OF_NO_RUN, Audit, ChainOfRun
from checkpoints.audit_chain import Entry, Seal, subject_of
from checkpoints.audit_verify import Anchor, Verified, verify
from checkpoints.database import Database
from checkpoints.queries import QUERIES
from graph.audit_lines import what, who
from plans.errors import InvalidInput, UnknownThread
from plans.values import JSON
from plans.wording import counted


class AuditEvent(BaseModel):
    """One entry: its place in its chain, and what it tells as far as that is still there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chain: str
    seq: int
    at: datetime
    kind: str
    step: str | None = None
    attempt: int | None = None
    by: str | None = None
    told: str = ""
    details: dict[str, JSON] | None = None
    content: str
    hash: str


class AuditReport(BaseModel):
    """What verification has looked at and found. `unseen` says what it cannot see, as it was asked here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ok: bool
    findings: tuple[dict[str, JSON], ...]
    chains: int
    entries: int
    rows: int
    seals: int
    sealed_at: datetime | None
    signed: bool
    anchored: bool
    unseen: tuple[str, ...]


@dataclass(frozen=True)
class AuditTrail:
    """The audit of a database, as one tenant may see it: threads of its own, and all else too where it is nobody's.
    `key` signs and checks seals."""

    database: Database
    key: bytes | None = None
    tenant: str = ""

    async def of_thread(self, thread_id: str) -> list[AuditEvent]:
        """What was audited of a thread's runs, the oldest first. Raises UnknownThread."""
        found: list[AuditEvent] = []
        for run in await self._runs(thread_id):
            found += await self._events(run.chain)
        return found

    async def of_no_run(self, limit: int = 200) -> list[AuditEvent]:
        """The latest changes of settings and logins, the oldest of them first; of logins those of this tenant."""
        entries = await Audit(self.database).latest(OF_NO_RUN, limit)
        changes = {row["key"]: row for row in await self.database.fetch(QUERIES["audit_changes"])}
        salt = await self._salt("settings")
        by_subject = {subject_of(salt or b"", key): row for key, row in changes.items()}
        seen = [entry for entry in reversed(entries) if self._sees(entry)]
        return [_of_no_run(entry, by_subject.get(entry.subject)) for entry in seen]

    def _sees(self, entry: Entry) -> bool:
        if not self.tenant or entry.details is None:
            return True
        return entry.details.get("tenant") in (None, self.tenant)

    async def verified(self, thread_id: str | None = None, anchors: Sequence[Anchor] = ()) -> AuditReport:
        """Verify a thread's chains, or everything. Raises UnknownThread."""
        chains = [run.chain for run in await self._runs(thread_id)] if thread_id is not None else None
        found = await verify(self.database, chains=chains, key=self.key, anchors=anchors)
        return _report(found, whole=chains is None)

    async def sealed(self) -> Seal | None:
        """Seal what was audited; gives the last seal."""
        return await Audit(self.database).seal(self.key)

    async def exported(self, thread_id: str | None = None) -> AsyncGenerator[str, None]:
        """Lines of JSON: every entry of a thread's chains, or of all that this tenant may see, chain by chain; with all
        of them the seals."""
        if thread_id is not None:
            chains = [run.chain for run in await self._runs(thread_id)]
        else:
            known = await self.database.fetch(QUERIES["audit_chains"], {"chains": None})
            chains = [row["chain"] for row in known if not self.tenant or row["tenant"] in (None, self.tenant)]
        for chain in chains:
            for entry in await Audit(self.database).entries([chain]):
                if self._sees(entry):
                    yield json.dumps({"entry": _exported(entry)}, ensure_ascii=False)
        if thread_id is None and not self.tenant:
            for row in await self.database.fetch(QUERIES["audit_seals"]):
                yield json.dumps({"seal": kept(Seal(**row))}, ensure_ascii=False)

    async def _runs(self, thread_id: str) -> list[ChainOfRun]:
        runs = await Audit(self.database).runs_of(thread_id, self.tenant)
        if not runs:
            raise UnknownThread(
                f"no run was ever started on thread {thread_id!r}; `surestep runs` lists those there are"
            )
        return runs

    async def _salt(self, chain: str) -> bytes | None:
        found = await self.database.fetch(QUERIES["audit_salt"], (chain,))
        return found[0]["salt"] if found else None

    async def _events(self, run_id: str) -> list[AuditEvent]:
        rows = {
            f"{row['fence']}/{row['n']}": row for row in await self.database.fetch(QUERIES["read_journal"], (run_id,))
        }
        salt = await self._salt(run_id)
        words = await self.database.fetch(QUERIES["audit_words"], {"run_id": run_id}) if salt else []
        said = {(word["what"], subject_of(salt or b"", word["key"])): word for word in words}
        return [
            _of_run(entry, rows.get(entry.subject), said.get((entry.kind.partition(".")[0], entry.subject)))
            for entry in await Audit(self.database).entries([run_id])
        ]


def kept(seal: Seal) -> dict[str, JSON]:
    """A seal as it is kept elsewhere."""
    mac = seal.mac.hex() if seal.mac else None
    return {"seal": seal.seal, "at": seal.at.isoformat(), "hash": seal.hash.hex(), "key_id": seal.key_id, "mac": mac}


def anchors_in(text: str) -> list[Anchor]:
    """The seals that were kept, one in each line. Raises InvalidInput."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InvalidInput("the file of kept seals is empty; `surestep audit seal >> FILE` adds one to it")
    return [_anchor(number, line) for number, line in lines]


def _anchor(number: int, line: str) -> Anchor:
    try:
        read = json.loads(line)
        read = read.get("seal") if isinstance(read.get("seal"), dict) else read
        found = Anchor(int(read["seal"]), bytes.fromhex(read["hash"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(
            f"line {number} of the kept seals is none; expected what `surestep audit seal` prints: "
            '{"seal": 7, …, "hash": "…"}'
        ) from None
    return found


def _exported(entry: Entry) -> dict[str, Any]:
    return {
        "chain": entry.chain,
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "kind": entry.kind,
        "subject": entry.subject,
        "content": entry.content.hex(),
        "details": entry.details,
        "hash": entry.hash.hex(),
    }


def _event(entry: Entry, **more: Any) -> AuditEvent:
    return AuditEvent(
        chain=entry.chain,
        seq=entry.seq,
        at=entry.at,
        kind=entry.kind,
        details=dict(entry.details) if entry.details is not None else None,
        content=entry.content.hex(),
        hash=entry.hash.hex(),
        **more,
    )


def _of_no_run(entry: Entry, change: Mapping[str, Any] | None) -> AuditEvent:
    if change is not None:
        return _event(entry, by=change["changed_by"], told=change["tool"])
    words = [f"{name}={value}" for name, value in (entry.details or {}).items() if value not in ("", [], None)]
    return _event(entry, by=entry.subject or None, told=" ".join(words))


def _of_run(entry: Entry, row: Mapping[str, Any] | None, said: Mapping[str, Any] | None) -> AuditEvent:
    if row is not None and entry.kind.startswith("journal."):
        by, told = who(row["kind"], row["body"]), what(row["kind"], row["body"])
        return _event(entry, step=row["step_id"], attempt=row["attempt"] or None, by=by, told=told)
    if said is not None and entry.kind.startswith("run."):
        return _event(entry, by=said["decided_by"] if entry.seq == 1 else None)  # who has started it
    if said is not None and entry.kind in ("approval.pending", "approval.withdrawn"):
        return _event(entry, step=said["step_id"], told=said["tool"] or "")  # what was said came later
    if said is not None:
        words = (said["tool"], said["said"], f"via {said['via']}" if said["via"] else None)
        return _event(entry, step=said["step_id"], by=said["decided_by"], told=" ".join(filter(None, words)))
    return _event(entry)


def _report(found: Verified, *, whole: bool) -> AuditReport:
    return AuditReport(
        ok=not found.findings,
        findings=tuple(
            {"code": each.code, "chain": each.chain, "seq": each.seq, "message": each.message}
            for each in found.findings
        ),
        chains=found.chains,
        entries=found.entries,
        rows=found.rows,
        seals=found.seals,
        sealed_at=found.sealed_at,
        signed=found.signed,
        anchored=found.anchored,
        unseen=tuple(_unseen(found, whole=whole)),
    )


def _unseen(found: Verified, *, whole: bool) -> Iterator[str]:
    """What this verification says nothing about."""
    if not whole:
        yield "only this thread was verified: whether the seals are whole is seen by `surestep audit verify` alone"
    elif not found.signed:
        yield (
            "without a key (SURESTEP_AUDIT_KEY) whoever may write everything in the database can make entries and "
            "seals anew, and it would not be seen"
        )
    if whole and not found.anchored:
        yield (
            "without a seal that was kept elsewhere (--anchor) it is not seen if the newest seals were cut off with "
            "all that they cover"
        )
    if found.unsealed:
        yield (
            f"{counted(found.unsealed, 'newest event')} no seal covers yet; whoever may write everything can make them "
            "anew"
        )
    if found.archived:
        yield f"the files of {counted(found.archived, 'archived run')} are not compared, only their entries"
    if found.erased:
        yield f"of {counted(found.erased, 'erased run')} nothing is left that entries could be compared with"
