"""The rules of find_anomalies, each a function from a table to the rows that break it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tools.tabular.arguments import (
    AllowedValues,
    BadValues,
    DuplicateIds,
    FieldType,
    Missing,
    NegativeAmount,
    Outliers,
    Rule,
    TimeOrder,
)  # fmt: skip
from tools.tabular.cells import number, shown
from tools.tabular.check import as_type
from tools.tabular.outliers import histogram, on_scale, scores, spread
from tools.tabular.results import Bin, Number
from tools.tabular.table import Table

TOLD = 20
"""How many rows of a rule are described in words."""


@dataclass(frozen=True)
class Hits:
    """The rows that break one rule: positions in the table, ascending, and what there is to say of the first TOLD.
    `column` holds the offending cell."""

    rule: str
    columns: tuple[str, ...]
    column: str
    places: pl.Series
    facts: list[dict[str, Any]]
    figures: dict[str, Number] = field(default_factory=dict)
    histogram: tuple[Bin, ...] = ()


def hits(table: Table, rule: Rule) -> Hits:
    """Applies one rule. ToolFailure INVALID_ARGS when it names a column that is not there."""
    match rule:
        case NegativeAmount():
            return _negative(table, rule)
        case TimeOrder():
            return _backwards(table, rule)
        case DuplicateIds():
            return _repeated(table, rule)
        case AllowedValues():
            return _outside(table, rule)
        case Outliers():
            return _far(table, rule)
        case Missing():
            return _missing(table, rule)
        case BadValues():
            return _bad(table, rule)


def ragged(table: Table) -> Hits:
    """Rows with another number of fields than the header has; always looked for."""
    places = table.lines().is_in(table.ragged_lines.implode()).arg_true() if table.ragged.count else _none()
    facts = [{"fields": line.fields, "expected": line.expected, "value": None} for line in table.ragged.first]
    return Hits("ragged", (), "", places, facts)


def _none() -> pl.Series:
    return pl.Series([], dtype=pl.UInt32)


def _negative(table: Table, rule: NegativeAmount) -> Hits:
    texts, values = _read(table, rule.column, "number")
    places = (values < 0).arg_true()
    return Hits(rule.rule, (rule.column,), rule.column, places, _facts(places, texts))


def _backwards(table: Table, rule: TimeOrder) -> Hits:
    columns = [as_type(table, name, "date") for name in (rule.earlier, rule.later)]
    texts = [table.texts(column.name, column.kind) for column in columns]
    first, second = (column.values(text) for column, text in zip(columns, texts, strict=True))
    if not all(column.timed for column in columns):
        first, second = first.dt.truncate("1d"), second.dt.truncate("1d")
    places = (second < first).arg_true()
    return Hits(rule.rule, (rule.earlier, rule.later), rule.later, places, _facts(places, texts[1], earlier=texts[0]))


def _repeated(table: Table, rule: DuplicateIds) -> Hits:
    texts = table.texts(rule.column)
    places = (texts.is_not_null() & texts.is_duplicated() & ~texts.is_first_distinct()).arg_true()
    told, lines = _facts(places, texts), table.lines()
    for fact in told:
        fact["line"] = lines[int((texts == fact["raw"]).arg_max() or 0)]
    return Hits(rule.rule, (rule.column,), rule.column, places, told)


def _outside(table: Table, rule: AllowedValues) -> Hits:
    texts = table.texts(rule.column)
    places = (texts.is_not_null() & ~texts.is_in(pl.Series(rule.values).implode())).arg_true()
    return Hits(rule.rule, (rule.column,), rule.column, places, _facts(places, texts))


def _far(table: Table, rule: Outliers) -> Hits:
    texts, values = _read(table, rule.column, "number")
    compared = on_scale(values, rule.scale)
    around = spread(compared)
    away = scores(compared, around)
    places = (away.abs() > rule.threshold).arg_true()
    original = math.exp if rule.scale == "log" else float
    figures: dict[str, Number] = {"values": compared.len() - compared.null_count(), "threshold": rule.threshold}
    if around.unit:
        limits = {"median": 0.0, "low": -rule.threshold, "high": rule.threshold}
        figures |= {name: _rounded(original(around.median + z * around.unit)) for name, z in limits.items()}
    bins = tuple(
        Bin(start=_rounded(original(b.start)), end=_rounded(original(b.end)), count=b.rows) for b in histogram(compared)
    )
    told = _facts(places, texts, score=away)
    return Hits(rule.rule, (rule.column,), rule.column, places, told, figures, bins)


def _rounded(value: float) -> Number:
    """Six significant digits: limits are no measurements."""
    return number(float(f"{value:.6g}")) or 0


def _missing(table: Table, rule: Missing) -> Hits:
    texts = table.texts(rule.column)
    places = texts.is_null().arg_true()
    return Hits(rule.rule, (rule.column,), rule.column, places, _facts(places, texts))


def _bad(table: Table, rule: BadValues) -> Hits:
    texts, values = _read(table, rule.column, rule.type)
    places = (texts.is_not_null() & values.is_null()).arg_true()
    told = _facts(places, texts)
    for fact in told:
        fact["kind"] = rule.type
    return Hits(rule.rule, (rule.column,), rule.column, places, told)


def _read(table: Table, name: str, wanted: FieldType) -> tuple[pl.Series, pl.Series]:
    column = as_type(table, name, wanted)
    texts = table.texts(name, column.kind)
    return texts, column.values(texts)


def _facts(places: pl.Series, texts: pl.Series, **others: pl.Series) -> list[dict[str, Any]]:
    """The first offending cells, and what belongs to them."""
    first = places.head(TOLD)
    told = {name: series.gather(first).to_list() for name, series in {"raw": texts, **others}.items()}
    rows = [dict(zip(told, values, strict=True)) for values in zip(*told.values(), strict=True)]
    return [{**row, "value": shown(row["raw"])} for row in rows]
