"""A run that is stopped and resumed, looked at from outside: what the journal and the ledger say, and what is wrong."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from checkpoints.audit_verify import verify_on
from tests.recovery.child import Order
from tests.recovery.forks import Child, Forks
from tests.recovery.kit import EFFECTS, IRREVERSIBLE
from tests.recovery.ledger import Ledger

NO_CHECKPOINT = None
"""LangGraph's state of a thread whose run has ended before its first checkpoint was written (durability "exit")."""
SURFACED = frozenset({"unknown", "settlement", "decision"})

Row = dict[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Moment:
    """What is known at an instant: the accepted rows in order, the calls that reached the ledger, the bookings."""

    rows: list[Row]
    calls: list[Row]
    bookings: int

    def finished(self) -> dict[str, str]:
        """The step runs whose success is accepted, with what they gave."""
        return {row["step_id"]: output["output_ref"] for row in self.rows if (output := _output(row)) is not None}

    def calls_of(self) -> Counter[str]:
        """How often each step run has called, and how often each question was put to the model."""
        return Counter(call["unit"] or call["args"] for call in self.calls)

    def answered(self) -> set[str]:
        """The model's questions whose answer is accepted."""
        return {row["body"]["prompt"] for row in self.rows if row["kind"] == "model" and "text_ref" in row["body"]}

    def in_doubt(self) -> set[str]:
        """The step runs whose effect may have happened, for all that the journal says."""
        doubted: set[str] = set()
        for row in self.rows:
            if row["kind"] == "intent":
                doubted.add(row["step_id"])
            elif row["kind"] in ("outcome", "settlement") or "settlement" in row["body"]:
                doubted.discard(row["step_id"])
        return doubted


class Trials:
    """Where trials take place: one database, one ledger, one forking process. `expected` is a run without a kill."""

    def __init__(
        self, url: str, folder: Path, forks: Forks, ledger: Ledger, expected: Mapping[str, Any] | None = None
    ) -> None:
        self.url, self.folder, self.forks, self.ledger = url, folder, forks, ledger
        self.expected = expected or self._usual()

    def _usual(self) -> Mapping[str, Any]:
        ended = self.trial().start("clean").ended()
        self.forks.load(ended["modules"])
        return ended

    def trial(self) -> Trial:
        """A run of its own."""
        return Trial(self, f"t{next(_numbers)}")


class Trial:
    """One run, its child processes, and what it has left behind."""

    def __init__(self, trials: Trials, book: str) -> None:
        self.trials, self.book = trials, book
        self.folder = trials.folder / book

    def start(self, name: str, **more: Any) -> Child:
        """A child that starts this run, or goes on with it."""
        place = self.trials
        self.folder.mkdir(exist_ok=True)
        return place.forks.start(Order(place.url, str(self.folder), self.book, place.ledger.port, name=name, **more))

    def moment(self) -> Moment:
        """What is known now."""
        with psycopg.connect(self.trials.url, row_factory=dict_row) as connection:
            rows = connection.execute(
                "SELECT j.fence, j.n, j.kind, j.step_id, j.attempt, j.body FROM surestep.journal j"
                " JOIN surestep.runs USING (run_id) WHERE thread_id = %s ORDER BY fence, n",
                (self.book,),
            ).fetchall()
            found = connection.execute("SELECT count(*) AS n FROM bookings WHERE book = %s", (self.book,)).fetchone()
        return Moment(rows, self.trials.ledger.calls(self.book), found["n"] if found else 0)

    def run_id(self) -> str:
        """The id of the run."""
        with psycopg.connect(self.trials.url) as connection:
            found = connection.execute("SELECT run_id FROM surestep.runs WHERE thread_id = %s", (self.book,)).fetchone()
        assert found is not None
        return str(found[0])

    def violations(self, before: Moment, ended: Mapping[str, Any]) -> list[str]:
        """What must not be, after the run was stopped at `before` and somebody has brought it to its end."""
        after, expected = self.moment(), self.trials.expected
        wrong = [
            f"{name} is {ended[name]!r}, without a stop it is {expected[name]!r}"
            for name in ("status", "answer", "steps", "state", "waiting")
            if ended[name] not in (expected[name], NO_CHECKPOINT if name == "state" else expected[name])
        ]
        wrong += asyncio.run(_not_as_audited(self.trials.url, self.run_id()))
        return [*wrong, *_lost(before, after), *_repeated(before, after), *_counted(after), *_unasked(after)]


async def _not_as_audited(url: str, run_id: str) -> list[str]:
    """Rows without an entry of the audit, entries without their row, and chains with a gap."""
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row, options="-c timezone=UTC") as found:
        return [finding.message for finding in (await verify_on(found, chains=[run_id])).findings]


def _output(row: Row) -> Mapping[str, str] | None:
    """What a row says a step run gave, by its outcome or by its settlement."""
    body = row["body"].get("settlement", row["body"])
    return body.get("output") if row["kind"] in ("outcome", "settlement", "decision") else None


def _lost(before: Moment, after: Moment) -> Iterator[str]:
    """A finished result that is not there any more, or is another."""
    kept = {(row["fence"], row["n"]): row for row in after.rows}
    for row in before.rows:
        if kept.get((row["fence"], row["n"])) != row:
            yield f"row {row['fence']}/{row['n']} ({row['kind']} of {row['step_id']}) was accepted and is lost"
    results = after.finished()
    for unit, output_ref in before.finished().items():
        if results.get(unit) != output_ref:
            yield f"{unit} gave {output_ref}, and now {results.get(unit)}"


def _repeated(before: Moment, after: Moment) -> Iterator[str]:
    """A finished step run, or an answered question, that has called again; two successes of one step run."""
    then, now = before.calls_of(), after.calls_of()
    for what in [*before.finished(), *before.answered()]:
        if then[what] != now[what]:
            yield f"{what} was finished after {then[what]} calls, and there are {now[what]}"
    successes = Counter(row["step_id"] for row in after.rows if _output(row) is not None)
    yield from (f"{unit} has succeeded {times} times" for unit, times in successes.items() if times > 1)


def _counted(after: Moment) -> Iterator[str]:
    """An effect that has not happened exactly once."""
    happened = Counter(call["what"] for call in after.calls if call["new"] and call["tool"] in EFFECTS)
    yield from (f"{what} has happened {times} times" for what, times in happened.items() if times != 1)
    if missing := set(EFFECTS) - {call["tool"] for call in after.calls}:
        yield f"{missing} never happened"
    if after.bookings != 1:
        yield f"there are {after.bookings} bookings"


def _unasked(after: Moment) -> Iterator[str]:
    """An irreversible effect in doubt that was done again without a probe's or a person's word; a key that changed."""
    doubted: dict[str, str] = {}
    for row in after.rows:
        unit, kind = row["step_id"], row["kind"]
        if kind == "intent":
            if unit in IRREVERSIBLE and unit in doubted:
                yield f"{unit} was in doubt and was run again unasked"
            if doubted.setdefault(unit, row["body"]["key"]) != row["body"]["key"]:
                yield f"the key of {unit} has changed"
        elif kind == "outcome" or (kind in SURFACED and unit in IRREVERSIBLE):
            doubted.pop(unit, None)
    if left := after.in_doubt():
        yield f"{left} are in doubt at the end"
