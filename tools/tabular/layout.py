"""Where a table starts in a list of records: delimiter, preamble, header, and names that can be told apart."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tools.tabular.numerals import parse_number
from tools.tabular.phrases import Note, note

DELIMITERS = (",", ";", "\t", "|")
LINE = "\x1fline"
"""The column that holds each row's place in its source. No header can hold this character."""

_LONGEST_NAME = 120
_LONGEST_PREAMBLE = 50
_DATE_LIKE = re.compile(r"^\d{1,4}[-/.年]\d{1,2}[-/.月]\d{1,4}")
_UNSEEN = re.compile("[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

Record = tuple[int, list[str]]
"""The line (1 is the first) where a record starts in its source, and its cells as written."""


class Layout(NamedTuple):
    """How the records of one source are to be read: `first_row` is the index of the first record that is a row."""

    names: tuple[str, ...]
    header_line: int
    first_row: int
    notes: tuple[Note, ...]


def delimiter_of(lines: Sequence[str]) -> str:
    """The delimiter under which most records have the same number of fields, and more than one; a comma if none has."""
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        widths = Counter(len(record) for record in csv.reader(lines, delimiter=delimiter) if record)
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(0, 0))
        score = count / max(widths.total(), 1) + min(width, 50) / 1000
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def layout_of(records: Sequence[Record], header_line: int | None = None) -> Layout:
    """Finds the header among the first records. `header_line` names it instead; 0 says that there is none."""
    filled = [index for index, (_, cells) in enumerate(records) if any(cell.strip() for cell in cells)]
    if not filled:
        return Layout((), 0, 0, ())
    width = _usual_width([records[index][1] for index in filled])
    if header_line == 0:
        return _without_header(filled[0], width)
    if header_line is None:
        header = next(
            (index for index in filled[:_LONGEST_PREAMBLE] if not _is_preamble(records[index][1], width)), filled[0]
        )
        if _is_row([records[index][1] for index in filled if index >= header]):
            return _without_header(header, width)
    else:
        header = next((index for index, (line, _) in enumerate(records) if line >= header_line), filled[0])
    line, cells = records[header]
    names, notes = unique_names(cells, _width(cells, [records[index][1] for index in filled if index > header]))
    if skipped := [records[index][0] for index in filled if index < header]:
        notes = (note("assumed_preamble", count=len(skipped), lines=_span(skipped), header=line), *notes)
    return Layout(names, line, header + 1, notes)


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    return max(Counter(map(len, rows)).items(), key=lambda item: (item[0] > 1, item[1], item[0]))[0]


def _width(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The number of columns: that of the header, without empty ends, or of the rows where most of them are longer."""
    named = max((place for place, cell in enumerate(header, start=1) if cell.strip()), default=0)
    longer = Counter(len(row) for row in rows if len(row) > named)
    width, count = longer.most_common(1)[0] if longer else (named, 0)
    return width if count > len(rows) / 2 else named


def _is_preamble(cells: Sequence[str], width: int) -> bool:
    """A title or a remark above the table fills one cell, or no more than half of them, or is short and holds a value
    (`Generated;2026-01-31`)."""
    filled = sum(bool(cell.strip()) for cell in cells)
    return width > 1 and (filled <= max(1, width // 2) or (len(cells) < width and any(map(_typed, cells))))


def _is_row(rows: Sequence[Sequence[str]]) -> bool:
    """The first record is data and not a header when it holds a number or date above others of the same kind.

    A year is no sign of this: tables have years as headers.
    """
    first, rest = rows[0], rows[1:20]
    columns = [[row[place] for row in rest if place < len(row)] for place in range(len(first))]
    return any(_typed(cell) and below and all(map(_typed, below)) for cell, below in zip(first, columns, strict=True))


def _typed(cell: str) -> bool:
    """A number or a date, but not a year."""
    value = parse_number(cell) or parse_number(cell, ",")
    return bool(_DATE_LIKE.match(cell)) or (value is not None and not (1900 <= value <= 2100))


def _without_header(first: int, width: int) -> Layout:
    names = tuple(f"column_{place}" for place in range(1, width + 1))
    return Layout(names, 0, first, (note("assumed_no_header", names=f"column_1 … column_{width}"),))


def unique_names(cells: Sequence[str], width: int) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """Clean names, all different: `amount`, `amount_2`; `column_3` for an empty one."""
    trimmed = [_clean(cell) for cell in cells[:width]]
    trimmed += [""] * (width - len(trimmed))
    taken = set(filter(None, trimmed))
    names: list[str] = []
    notes: list[Note] = []
    for place, name in enumerate(trimmed, start=1):
        unique = name or _free(f"column_{place}", taken | set(names))
        if unique in names:
            unique = _free(f"{name}_{names.count(name) + 1}", taken | set(names))
            notes.append(note("duplicate_name", name=name, place=place, unique=unique))
        elif not name:
            notes.append(note("empty_name", place=place, unique=unique))
        names.append(unique)
    return tuple(names), tuple(notes)


def _clean(cell: str) -> str:
    return " ".join(_UNSEEN.sub(" ", cell).split())[:_LONGEST_NAME]


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else next(f"{name}_{n}" for n in range(2, 10_000) if f"{name}_{n}" not in taken)


def _span(lines: Sequence[int]) -> str:
    return str(lines[0]) if lines[0] == lines[-1] else f"{lines[0]}–{lines[-1]}"
