"""Values of results as texts for a table: numbers of one column with the same decimals and grouped thousands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tools.tabular.page import Grid

MOST_ROWS = 50
_MOST_DECIMALS = 8


def texts(values: Sequence[Any], missing: str = "") -> list[str]:
    """One column's texts."""
    decimals = max((_decimals(value) for value in values if _is_number(value)), default=0)
    return [_text(value, decimals, missing) for value in values]


def grid(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], caption: str, missing: str, left_out: str = ""
) -> Grid:
    """Rows as a table, the first MOST_ROWS of them; `left_out` is said where there are more."""
    kept = rows[:MOST_ROWS]
    made = [texts([row.get(column) for row in kept], missing) for column in columns]
    numeric = frozenset(
        place for place, column in enumerate(columns)
        if any(_is_number(row.get(column)) for row in kept)
        and all(_is_number(row.get(column)) or row.get(column) is None for row in kept)
    )  # fmt: skip
    return Grid(
        columns=tuple(columns), rows=tuple(zip(*made, strict=True)), caption=caption, numeric=numeric,
        left_out=left_out if len(rows) > MOST_ROWS else "",
    )  # fmt: skip


def as_float(value: Any) -> float | None:
    """A number for a chart; texts of exact decimals count."""
    if _is_number(value):
        return float(value)
    try:
        read = Decimal(value) if isinstance(value, str) else None
    except ArithmeticError:
        return None
    return float(read) if read is not None and read.is_finite() else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return min(_MOST_DECIMALS, max(0, -exponent)) if isinstance(exponent, int) else 0


def _text(value: Any, decimals: int, missing: str) -> str:
    if value is None:
        return missing
    if _is_number(value):
        return f"{value:,.{decimals}f}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
