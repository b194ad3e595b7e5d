"""Rules for a table that nobody has given any: from its columns' names and types, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

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
from tools.tabular.kinds import DATED, NUMERIC, Column
from tools.tabular.names import is_amount, is_id, is_list, is_quantity, stage
from tools.tabular.outliers import on_scale
from tools.tabular.pace import Pace
from tools.tabular.phrases import Note, note
from tools.tabular.table import Table

_MOST_NEGATIVE = 0.2
_DISTINCT_ID = 0.95
_FEWEST_ROWS = 10
_RARELY_MISSING = 0.05
_HARDLY_MISSING = 0.02
_FEWEST_LISTED = 50
_MOST_LISTED = 30
_RARE = 0.01
_ALL_RARE = 0.03
_FEWEST_SPREAD = 30
_FEWEST_DISTINCT = 8
_SKEWED = 0.1


_RANK = (NegativeAmount, TimeOrder, DuplicateIds, AllowedValues, Outliers, Missing, BadValues)


class Inferred(NamedTuple):
    """A rule and why it is applied."""

    rule: Rule
    why: Note


def infer(table: Table, pace: Pace) -> list[Inferred]:
    """Sensible rules for this table, in the order of the columns within each kind of rule."""
    columns = table.columns if table.rows else ()
    found: list[Inferred] = []
    for place, column in enumerate(columns):
        pace.tick(place / len(columns), f"choosing rules for {column.name}")
        found += _of_column(table, column)
    found += _duplicates(table, columns)
    found += _orders(columns)
    return sorted(found, key=lambda inferred: _RANK.index(type(inferred.rule)))


def _of_column(table: Table, column: Column) -> Iterator[Inferred]:
    name = column.name
    if column.kind in NUMERIC and (is_amount(name) or is_quantity(name)):
        yield from _amount_rules(table, column)
    if column.kind == "text" and is_list(name):
        yield from _list_rule(table, column)
    if column.kind in NUMERIC + DATED:
        wanted: FieldType = "number" if column.kind in NUMERIC else "date"
        yield Inferred(BadValues(column=name, type=wanted), note("why_bad_values", column=name, kind=wanted))
    yield from _missing_rule(table, column)


def _amount_rules(table: Table, column: Column) -> Iterator[Inferred]:
    name = column.name
    values = column.values(table.texts(name)).drop_nulls()
    if not values.len():
        return
    if (values < 0).sum() <= _MOST_NEGATIVE * values.len():
        yield Inferred(NegativeAmount(column=name), note("why_negative_amount", column=name))
    positive = values.filter(values > 0)
    if positive.len() < _FEWEST_SPREAD or positive.n_unique() < _FEWEST_DISTINCT:
        return
    if _is_skewed(positive):
        yield Inferred(Outliers(column=name, scale="log"), note("why_outliers_log", column=name))
    else:
        yield Inferred(Outliers(column=name), note("why_outliers", column=name))


def _is_skewed(positive: pl.Series) -> bool:
    """Whether the values lean to the right and their logarithms lean less, as amounts of money do."""
    leaning = _skew(positive)
    return leaning > _SKEWED and abs(_skew(on_scale(positive, "log"))) < leaning


def _skew(values: pl.Series) -> float:
    """Kelly's coefficient of skewness, from -1 to 1: where the median lies between the outer deciles."""
    low, middle, high = (float(values.quantile(q) or 0.0) for q in (0.1, 0.5, 0.9))
    return (high + low - 2 * middle) / (high - low) if high > low else 0.0


def _list_rule(table: Table, column: Column) -> Iterator[Inferred]:
    """The list is what the column itself uses often; applied only where what it uses seldom is little."""
    present = table.texts(column.name).drop_nulls()
    if present.len() < _FEWEST_LISTED:
        return
    counted = present.value_counts(sort=True, name="rows")
    usual = counted.filter(pl.col("rows") >= _RARE * present.len())
    rare = present.len() - int(usual["rows"].sum())
    if 0 < usual.height <= _MOST_LISTED and rare <= _ALL_RARE * present.len():
        values = tuple(sorted(usual[column.name]))
        why = note("why_allowed_values", column=column.name, values=", ".join(values))
        yield Inferred(AllowedValues(column=column.name, values=values), why)


def _missing_rule(table: Table, column: Column) -> Iterator[Inferred]:
    name, share = column.name, column.missing / table.rows
    key = is_id(name) or is_amount(name) or is_quantity(name) or is_list(name) or column.kind in DATED
    if (key and share <= _RARELY_MISSING) or 0 < share <= _HARDLY_MISSING:
        why = note("why_missing", column=name, count=column.missing, rows=table.rows)
        yield Inferred(Missing(column=name), why)


def _duplicates(table: Table, columns: tuple[Column, ...]) -> Iterator[Inferred]:
    """The first column that names rows: an id by name and, nearly always, by content."""
    for column in columns:
        present = table.rows - column.missing
        if not is_id(column.name) or present < _FEWEST_ROWS:
            continue
        distinct = table.texts(column.name).drop_nulls().n_unique()
        if distinct >= _DISTINCT_ID * present:
            why = note("why_duplicate_ids", column=column.name, distinct=distinct, present=present)
            yield Inferred(DuplicateIds(column=column.name), why)
            return


def _orders(columns: tuple[Column, ...]) -> Iterator[Inferred]:
    """Each stage against the next one that the table has."""
    staged = {place: c.name for c in reversed(columns) if c.kind in DATED and (place := stage(c.name)) is not None}
    for (_, earlier), (_, later) in pairwise(sorted(staged.items())):
        yield Inferred(TimeOrder(earlier=earlier, later=later), note("why_time_order", earlier=earlier, later=later))
