"""Records become columns, batch by batch: header found, short and long rows kept and told, empty ones counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from plans.failure import ToolFailure
from tools.tabular.layout import LINE, Layout, Record, layout_of
from tools.tabular.pace import Pace
from tools.tabular.phrases import note
from tools.tabular.results import Ragged, RaggedLine
from tools.tabular.spool import Spool
from tools.tabular.table import SHOWN, Body

_HEAD = 200
_BATCH_CELLS = 1_000_000
_BATCH_BYTES = 32 << 20
_STRIDE = 500
MOST_COLUMNS = 2_000


class Progress(NamedTuple):
    """How many bytes of a source were read, and which part of the whole that is."""

    position: int = 0
    fraction: float = 0.0


ReadSoFar = Callable[[], Progress]


@dataclass
class _Seen:
    """What is noted while rows go by."""

    ragged: list[int] = field(default_factory=list)
    first_ragged: list[RaggedLine] = field(default_factory=list)
    empty: int = 0


def body_of(
    records: Iterator[Record], name: str, header_line: int | None, scratch: Path, read: ReadSoFar, pace: Pace
) -> tuple[Body, int]:
    """The rows under the header and the header's line. ToolFailure INVALID_INPUT when there is no table at all."""
    head = list(islice(records, _HEAD))
    layout = layout_of(head, header_line)
    if not layout.names:
        raise ToolFailure("INVALID_INPUT", f"{name} is empty: it holds no header and no rows")
    if len(layout.names) > MOST_COLUMNS:
        raise ToolFailure("INVALID_INPUT", f"{name} has {len(layout.names):,} columns; at most {MOST_COLUMNS:,} are "
                          "read. If it has fewer, name its delimiter: reading={'delimiter': ';'}")  # fmt: skip
    schema = pl.Schema({LINE: pl.Int64, **dict.fromkeys(layout.names, pl.String)})
    spool, seen = Spool(scratch, schema), _Seen()
    for batch in _batches(chain(head[layout.first_row :], records), len(layout.names), read):
        spool.add(_frame(batch, schema, seen))
        pace.tick(read().fraction, f"reading {name}")
    return _body(layout, spool, seen), layout.header_line


def _body(layout: Layout, spool: Spool, seen: _Seen) -> Body:
    notes = list(layout.notes)
    if seen.ragged:
        notes.append(note("ragged", count=len(seen.ragged), first=seen.first_ragged[0].line))
    if seen.empty:
        notes.append(note("empty_rows", count=seen.empty))
    if len(layout.names) == 1:
        notes.append(note("one_column", name=layout.names[0]))
    if not spool.rows:
        notes.append(note("no_rows"))
    ragged = Ragged(count=len(seen.ragged), first=tuple(seen.first_ragged))
    return Body(layout.names, spool.frame(), spool.rows, ragged, pl.Series(LINE, seen.ragged, pl.Int64), tuple(notes))


def _batches(records: Iterator[Record], width: int, read: ReadSoFar) -> Iterator[list[Record]]:
    """Lists of records that are small in cells and in bytes."""
    most = max(_STRIDE, _BATCH_CELLS // width)
    batch: list[Record] = []
    start = read().position
    while some := list(islice(records, _STRIDE)):
        batch += some
        if len(batch) >= most or read().position - start >= _BATCH_BYTES:
            yield batch
            batch, start = [], read().position
    if batch:
        yield batch


def _frame(batch: Sequence[Record], schema: pl.Schema, seen: _Seen) -> pl.DataFrame:
    """One batch as text columns; fields beyond the header are left out, fields that lack are null."""
    width = len(schema) - 1
    filled = [(line, cells) for line, cells in batch if cells[0].strip() or any(map(str.strip, cells))]
    seen.empty += len(batch) - len(filled)
    fitted: Iterable[Sequence[str | None]] = (cells for _, cells in filled)
    if set(map(len, (cells for _, cells in filled))) - {width}:
        fitted = (_fitted(line, cells, width, seen) for line, cells in filled)
    columns = list(zip(*fitted, strict=True)) if filled else [()] * width
    lines = pl.Series(LINE, [line for line, _ in filled], pl.Int64)
    names = [name for name in schema if name != LINE]
    return pl.DataFrame([lines, *(pl.Series(n, c, pl.String) for n, c in zip(names, columns, strict=True))])


def _fitted(line: int, cells: list[str], width: int, seen: _Seen) -> list[str | None]:
    fields = len(cells)
    if fields == width:
        return list(cells)
    if fields > width and not any(cells[width:]):
        return list(cells[:width])
    seen.ragged.append(line)
    if len(seen.first_ragged) < SHOWN:
        seen.first_ragged.append(RaggedLine(line=line, fields=fields, expected=width))
    return [*cells[:width], *[None] * (width - fields)]
