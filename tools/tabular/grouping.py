"""aggregate: figures per group, sums exact in decimal, groups in a stated order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.tabular.arguments import Filter, Grouping, Language, Measure, Reading, Sorting
from tools.tabular.cells import moment, number, shown
from tools.tabular.filters import matching
from tools.tabular.kinds import DATED, NUMERIC, Column
from tools.tabular.nearest import unknown
from tools.tabular.numerals import plain_numbers
from tools.tabular.opening import open_table
from tools.tabular.pace import Pace
from tools.tabular.phrases import assumptions, joined, note, say, warnings
from tools.tabular.results import Aggregate
from tools.tabular.table import Table

_EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
_ON_NUMBERS = {"sum", "mean", "median"}
_DECIMALS = 12
_GUARD_DIGITS = 4


class Request(NamedTuple):
    """What to compute, over which rows, and in which order to give it."""

    measures: Sequence[Measure]
    group_by: Sequence[str | Grouping] = ()
    where: Sequence[Filter] = ()
    sort: Sorting | None = None
    limit: int = 100


@dataclass(frozen=True)
class _Figure:
    """A measure, its name in the result, and its column where it has one."""

    name: str
    measure: Measure
    column: Column | None
    decimals: int = 0

    def expression(self) -> pl.Expr:
        """The figure over a group."""
        op, column = self.measure.op, self.measure.column
        if column is None:
            return pl.len().alias(self.name)
        texts, values = pl.col(f"t:{column}"), pl.col(f"v:{column}")
        inexact = values.cast(pl.Float64, strict=False)
        made = {
            "count": texts.count(), "distinct": texts.drop_nulls().n_unique(), "sum": values.sum(), "min": values.min(),
            "max": values.max(), "mean": inexact.mean(), "median": inexact.median(),
        }  # fmt: skip
        return made[op].alias(self.name)

    def shown(self, value: Any) -> Any:
        """The figure as JSON; means and medians rounded to four digits more than the values have."""
        if isinstance(value, datetime):
            return moment(value, timed=self.column is not None and self.column.timed)
        if self.measure.op in ("mean", "median") and value is not None:
            return number(round(value, self.decimals + _GUARD_DIGITS))
        return number(value) if value is not None and not isinstance(value, str | bool) else value


def aggregate(
    ctx: ToolContext, path: str, wanted: Request, sheet: str | None, reading: Reading | None, language: Language
) -> Aggregate:
    """The figures. ToolFailure INVALID_ARGS for unknown columns, a sum of what is not numbers, two figures of one name,
    a period of what is not dates, or an order by something that is not in the result."""
    pace = Pace.of(ctx)
    table = open_table(ctx, path, sheet, reading, pace.part(0.0, 0.7))
    keys = [Grouping(column=key) if isinstance(key, str) else key for key in wanted.group_by]
    table.require([key.column for key in keys] + [m.column for m in wanted.measures if m.column])
    figures = _figures(table, wanted.measures)
    names = [*map(_key_name, keys), *(figure.name for figure in figures)]
    _require_different(names)
    pace.tick(0.8, "grouping")
    frame, ignored = _columns(table, keys, figures, wanted.where)
    rows = frame.height
    grouped = _grouped(frame, keys, figures)
    ordered = _ordered(grouped, keys, figures, wanted.sort).head(wanted.limit)
    told = (*table.notes, *(n for name in {*_used(keys, figures)} for n in table.column(name).notes))
    told += tuple(note("ignored", column=name, count=count) for name, count in ignored.items())
    return Aggregate(
        summary=_summary(keys, figures, grouped.height, rows, language), file=table.name, columns=tuple(names),
        group_columns=tuple(map(_key_name, keys)), rows=tuple(_rows(ordered, table, keys, figures)),
        groups=grouped.height, cut=grouped.height > wanted.limit, rows_used=rows, ignored=ignored,
        assumptions=assumptions(told, language), warnings=warnings(told, language),
    )  # fmt: skip


def _key_name(key: Grouping) -> str:
    return f"{key.column}_{key.by}" if key.by else key.column


def _used(keys: Sequence[Grouping], figures: Sequence[_Figure]) -> Iterator[str]:
    yield from (key.column for key in keys)
    yield from (figure.column.name for figure in figures if figure.column)


def _figures(table: Table, measures: Sequence[Measure]) -> list[_Figure]:
    if not measures:
        raise ToolFailure("INVALID_ARGS", 'nothing to compute: give at least one measure, such as {"op": "count"}')
    return [_figure(table, measure) for measure in measures]


def _figure(table: Table, measure: Measure) -> _Figure:
    if measure.column is None:
        if measure.op != "count":
            raise ToolFailure("INVALID_ARGS", f"the measure {measure.op!r} needs a column")
        return _Figure(measure.name or "count", measure, None)
    column = table.column(measure.column)
    if measure.op in _ON_NUMBERS and column.kind not in NUMERIC:
        raise ToolFailure(
            "INVALID_ARGS", f"cannot take the {measure.op} of {column.name!r}: it holds {column.kind} values"
        )
    decimals = _decimals(plain_numbers(table.texts(column.name), column.decimal)) if column.kind in NUMERIC else 0
    return _Figure(measure.name or f"{measure.op}_{column.name}", measure, column, decimals)


def _decimals(plain: pl.Series) -> int:
    """Digits after the point of the longest value; -1 where exponents or too many of them rule out decimals."""
    if plain.str.contains("[eE]").any():
        return -1
    longest = int(plain.str.extract(r"\.([0-9]*)").str.len_chars().max() or 0)  # type: ignore[arg-type]
    return longest if longest <= _DECIMALS else -1


def _columns(
    table: Table, keys: Sequence[Grouping], figures: Sequence[_Figure], where: Sequence[Filter]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Keys, texts and values as columns of the rows that count, and how many values could not be read."""
    made = {f"k:{_key_name(key)}": _key(table, key) for key in keys}
    for figure in figures:
        if figure.column and f"t:{figure.column.name}" not in made:
            texts = table.texts(figure.column.name)
            made[f"t:{figure.column.name}"] = texts
            made[f"v:{figure.column.name}"] = _values(texts, figure)
    frame = pl.DataFrame(made) if made else table.lines().to_frame()
    frame = frame.filter(matching(table, where)) if where else frame
    ignored = {
        name[2:]: frame[f"v:{name[2:]}"].null_count() - frame[name].null_count() for name in made if name[0] == "t"
    }
    return frame, {name: count for name, count in ignored.items() if count}


def _values(texts: pl.Series, figure: _Figure) -> pl.Series:
    column = figure.column
    if column is None or column.kind not in NUMERIC or figure.decimals < 0:
        return column.values(texts) if column else texts
    return plain_numbers(texts, column.decimal).cast(pl.Decimal(38, figure.decimals), strict=False)


def _key(table: Table, key: Grouping) -> pl.Series:
    column = table.column(key.column)
    texts = table.texts(column.name)
    if key.by and column.kind not in DATED:
        raise ToolFailure(
            "INVALID_ARGS", f"cannot group {column.name!r} by {key.by}: it holds {column.kind} values, not dates"
        )
    if column.kind in {"text", "email", "empty"}:
        return texts
    values = column.values(texts)
    return values.dt.truncate(_EVERY[key.by]) if key.by else values


def _grouped(frame: pl.DataFrame, keys: Sequence[Grouping], figures: Sequence[_Figure]) -> pl.DataFrame:
    expressions = [figure.expression() for figure in figures]
    if not keys:
        return frame.select(expressions)
    named = [pl.col(f"k:{_key_name(key)}").alias(_key_name(key)) for key in keys]
    return frame.group_by(named).agg(expressions)


def _ordered(
    grouped: pl.DataFrame, keys: Sequence[Grouping], figures: Sequence[_Figure], sort: Sorting | None
) -> pl.DataFrame:
    """By what was asked; else periods in order of time, and other groups by the first figure, largest first. Ties by
    the groups' names, so that the same file gives the same order."""
    names = [_key_name(key) for key in keys]
    if sort and sort.by not in grouped.columns:
        raise ToolFailure("INVALID_ARGS", unknown("column", sort.by, grouped.columns, "the result"))
    if not keys:
        return grouped
    first = sort.by if sort else names[0] if any(key.by for key in keys) else figures[0].name
    falling = sort.descending if sort else first == figures[0].name
    return grouped.sort([first, *names], descending=[falling, *(False for _ in names)], nulls_last=True)


def _rows(
    ordered: pl.DataFrame, table: Table, keys: Sequence[Grouping], figures: Sequence[_Figure]
) -> Iterator[dict[str, Any]]:
    for row in ordered.iter_rows(named=True):
        groups = {_key_name(key): _key_shown(table, key, row[_key_name(key)]) for key in keys}
        yield groups | {figure.name: figure.shown(row[figure.name]) for figure in figures}


def _key_shown(table: Table, key: Grouping, value: Any) -> Any:
    if isinstance(value, datetime):
        formats = {"month": f"{value:%Y-%m}", "year": f"{value:%Y}", "quarter": f"{value:%Y}-Q{(value.month + 2) // 3}"}
        timed = table.column(key.column).timed and key.by is None
        return formats.get(key.by or "") or moment(value, timed=timed)
    return shown(value) if isinstance(value, str) else value if isinstance(value, bool) else number(value)


def _require_different(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ToolFailure(
                "INVALID_ARGS", f"two columns of the result are named {name!r}; give the measure a `name`"
            )


def _said(measure: Measure, language: Language) -> str:
    key = "op_count_of" if measure.op == "count" and measure.column else f"op_{measure.op}"
    return say(language, key, column=measure.column or "")


def _summary(keys: Sequence[Grouping], figures: Sequence[_Figure], groups: int, rows: int, language: Language) -> str:
    measures = joined((_said(f.measure, language) for f in figures), language)
    if not keys:
        return say(language, "aggregated_all", measures=measures.strip(), rows=rows)
    by = joined((say(language, f"by_{key.by or 'value'}", column=key.column) for key in keys), language)
    return say(language, "aggregated", measures=measures, by=by, count=groups, rows=rows)
