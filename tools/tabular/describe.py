"""describe_table: what a file holds, column by column."""

from __future__ import annotations

from typing import Any

import polars as pl

from tools.context import ToolContext
from tools.tabular.arguments import Language, Reading
from tools.tabular.cells import moment, number, shown
from tools.tabular.kinds import DATED, NUMERIC, Column
from tools.tabular.opening import open_table
from tools.tabular.pace import Pace
from tools.tabular.phrases import assumptions, note, say, warnings
from tools.tabular.results import ColumnProfile, Number, TableDescription
from tools.tabular.table import Table

_EXAMPLES = 3


def describe(
    ctx: ToolContext, path: str, sheet: str | None, reading: Reading | None, language: Language
) -> TableDescription:
    """The table's description; failures as open_table has them."""
    pace = Pace.of(ctx)
    table = open_table(ctx, path, sheet, reading, pace.part(0.0, 0.7))
    profiles = []
    for place, column in enumerate(table.columns):
        pace.part(0.7, 1.0).tick(place / len(table.columns), f"describing {column.name}")
        profiles.append(_profile(table, column))
    told = (
        *table.all_notes,
        *(note("bad_values", column=c.name, kind=c.kind, count=c.bad) for c in table.columns if c.bad),
    )
    source = table.source
    return TableDescription(
        summary=say(language, "described", file=table.name, rows=table.rows, columns=len(table.columns)),
        file=table.name, format=source.format, encoding=source.encoding, delimiter=source.delimiter, sheet=source.sheet,
        sheets=source.sheets, header_line=source.header_line, rows=table.rows, columns=tuple(profiles),
        ragged=table.ragged, assumptions=assumptions(told, language), warnings=warnings(told, language),
    )  # fmt: skip


def _profile(table: Table, column: Column) -> ColumnProfile:
    texts = table.texts(column.name)
    values = column.values(texts)
    low, high = _extremes(column, values)
    examples = texts.drop_nulls().head(1000).unique(maintain_order=True).head(_EXAMPLES)
    return ColumnProfile(
        name=column.name, type=column.kind, missing=column.missing, distinct=texts.drop_nulls().n_unique(),
        bad=column.bad, min=low, max=high, examples=tuple(text for text in map(shown, examples) if text),
    )  # fmt: skip


def _extremes(column: Column, values: pl.Series) -> tuple[Number | None, Number | None]:
    """The smallest and the largest value; of texts and truth values there is none."""
    low: Any = values.min() if column.kind in NUMERIC + DATED else None
    high: Any = values.max() if column.kind in NUMERIC + DATED else None
    if column.kind in DATED:
        return (
            moment(low, timed=column.timed, zoned=column.zoned),
            moment(high, timed=column.timed, zoned=column.zoned),
        )
    return number(low), number(high)
