"""A table as the tools see it: every cell as text, every row with its line, every column with its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from tools.tabular.arguments import Reading
from tools.tabular.conventions import Conventions, Votes, conventions, settle, total, votes
from tools.tabular.kinds import Column, Kind, guess, sample_of, texts
from tools.tabular.layout import LINE
from tools.tabular.nearest import require
from tools.tabular.pace import Pace
from tools.tabular.phrases import Note, note
from tools.tabular.results import Ragged

SHOWN = 10
"""How many places of a fault are named."""


class Source(NamedTuple):
    """Where a table comes from and how it was read."""

    path: Path
    format: str
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    header_line: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """`frame` holds the named columns as text and LINE. Two tables are the same only if they are one object."""

    source: Source
    frame: pl.LazyFrame
    rows: int
    columns: tuple[Column, ...]
    rules: Conventions
    ragged: Ragged
    ragged_lines: pl.Series
    notes: tuple[Note, ...]

    @property
    def name(self) -> str:
        """The file's name."""
        return self.source.path.name

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """What there is to tell about the table and its columns."""
        return (*self.notes, *(told for column in self.columns for told in column.notes))

    def column(self, name: str) -> Column:
        """The column of this name; ToolFailure INVALID_ARGS names those that exist."""
        self.require([name])
        return self.columns[self.names.index(name)]

    def require(self, names: Iterable[str]) -> None:
        """ToolFailure INVALID_ARGS for every name that no column has."""
        require(names, self.names, self.name)

    def texts(self, name: str, kind: Kind | None = None) -> pl.Series:
        """A column as stripped texts, null where missing."""
        return texts(self.frame, name, kind or self.column(name).kind)

    def lines(self) -> pl.Series:
        """The line of every row."""
        return self.frame.select(LINE).collect().to_series()


class Body(NamedTuple):
    """The rows of a table before its columns are understood."""

    names: tuple[str, ...]
    frame: pl.LazyFrame
    rows: int
    ragged: Ragged
    ragged_lines: pl.Series
    notes: tuple[Note, ...]


def understood(source: Source, body: Body, said: Reading, declared: dict[str, Kind], pace: Pace) -> Table:
    """The table with its columns' kinds. `declared` are kinds that the file itself states."""
    kinds: dict[str, tuple[Kind, bool]] = {}
    proofs: list[Votes] = []
    for place, name in enumerate(body.names):
        pace.part(0.0, 0.4).tick(place / len(body.names), f"looking at {name}")
        kinds[name] = (declared[name], False) if name in declared else guess(name, sample_of(texts(body.frame, name)))
        if name not in declared:
            proofs.append(votes(texts(body.frame, name, kinds[name][0]), kinds[name][0]))
    rules = conventions(total(proofs), said, source.delimiter)
    columns = tuple(_settled(body, kinds, rules, pace.part(0.4, 1.0)))
    return Table(source, body.frame, body.rows, columns, rules, body.ragged, body.ragged_lines, body.notes)


def _settled(body: Body, kinds: dict[str, tuple[Kind, bool]], rules: Conventions, pace: Pace) -> Iterator[Column]:
    for place, (name, (kind, compact)) in enumerate(kinds.items()):
        pace.tick(place / len(kinds), f"reading {name}")
        column = settle(texts(body.frame, name, kind), kind, rules, compact=compact)
        yield column if column.bad <= _FEW_GOOD * (body.rows - column.missing) else _as_text(body, column)


_FEW_GOOD = 0.5


def _as_text(body: Body, column: Column) -> Column:
    """Where the sample misled and most values are bad, the column is text, and mixed."""
    values = texts(body.frame, column.name)
    return Column(
        column.name, "text", values.null_count(), notes=(note("mixed", column=column.name, kind=column.kind),)
    )
