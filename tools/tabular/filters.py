"""Filters over a table: numbers compare as numbers, dates as dates, everything else as text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import polars as pl

from plans.failure import ToolFailure
from tools.tabular.arguments import Filter, Scalar
from tools.tabular.dates import parse_date
from tools.tabular.kinds import DATED, FALSE, NUMERIC, TRUE, Column
from tools.tabular.numerals import parse_number
from tools.tabular.table import Table

_ORDERED: dict[str, Callable[[pl.Series, Any], pl.Series]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def matching(table: Table, where: Sequence[Filter]) -> pl.Series:
    """A mask of the rows that match every filter. ToolFailure INVALID_ARGS for an unknown column, or for a value that
    cannot be compared with what its column holds."""
    table.require(one.column for one in where)
    return reduce(operator.and_, (_mask(table, one) for one in where))


def _mask(table: Table, one: Filter) -> pl.Series:
    column = table.column(one.column)
    texts = table.texts(column.name)
    if one.op in ("missing", "present"):
        _no_value(one)
        return texts.is_null() if one.op == "missing" else texts.is_not_null()
    if one.op == "contains":
        return texts.str.contains(str(_single(one)), literal=True).fill_null(value=False)
    values = column.values(texts)
    if one.op in ("in", "not_in"):
        listed = [_typed(column, one, value) for value in _several(one)]
        found = values.is_in(pl.Series(listed).implode()).fill_null(value=False)
        return found if one.op == "in" else ~found & values.is_not_null()
    compared = _ORDERED[one.op](values, _typed(column, one, _single(one)))
    return compared.fill_null(value=one.op == "ne")


def _typed(column: Column, one: Filter, value: Scalar) -> Any:
    """The value as what the column holds."""
    if column.kind in NUMERIC:
        read = parse_number(str(value)) if not isinstance(value, bool) else None
        return float(read) if read is not None else _refuse(column, one, value, "a number such as 12.5")
    if column.kind in DATED:
        moment = parse_date(str(value), column.order)
        return moment.at if moment else _refuse(column, one, value, "a date such as 2026-01-31")
    if column.kind == "boolean":
        lower = str(value).lower()
        return lower in TRUE if lower in TRUE + FALSE else _refuse(column, one, value, "true or false")
    return str(value)


def _single(one: Filter) -> Scalar:
    if one.value is None or isinstance(one.value, tuple):
        raise ToolFailure("INVALID_ARGS", f"the filter {one.op!r} on {one.column!r} needs one value, not {one.value!r}")
    return one.value


def _several(one: Filter) -> tuple[Scalar, ...]:
    if not isinstance(one.value, tuple) or not one.value:
        raise ToolFailure("INVALID_ARGS", f"the filter {one.op!r} on {one.column!r} needs a list of values")
    return one.value


def _no_value(one: Filter) -> None:
    if one.value is not None:
        raise ToolFailure("INVALID_ARGS", f"the filter {one.op!r} on {one.column!r} takes no value")


def _refuse(column: Column, one: Filter, value: Scalar, expected: str) -> Any:
    raise ToolFailure("INVALID_ARGS", f"the filter {one.op!r} on {column.name!r} compares with {value!r}, but that "
                      f"column holds {column.kind} values: give {expected}")  # fmt: skip
