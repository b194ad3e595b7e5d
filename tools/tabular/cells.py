"""Cells as they are shown in results: cut, without characters that JSON or PostgreSQL cannot hold; exact numbers."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl

from tools.tabular.layout import LINE
from tools.tabular.results import Number, Place, Places

LONGEST = 200
_SHOWN = 10
_EXACT_DIGITS = 15


def shown(text: str | None) -> str | None:
    """At most 200 characters, an ellipsis for the rest, no zero characters."""
    if text is None:
        return None
    text = text.replace("\x00", "")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def number(value: Decimal | float | None) -> Number | None:
    """A JSON number where a double holds it exactly (up to 15 digits), else its text; whole numbers as integers."""
    if value is None:
        return None
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if exact == exact.to_integral_value() and abs(exact) < 10**_EXACT_DIGITS:
        return int(exact)
    digits = len(exact.normalize().as_tuple().digits)
    return float(exact) if digits <= _EXACT_DIGITS or isinstance(value, float) else f"{exact.normalize():f}"


def moment(value: datetime | date | None, *, timed: bool, zoned: bool = False) -> str | None:
    """ISO text: a date, or a date and time with Z where it is in UTC."""
    if value is None:
        return None
    if not timed:
        return value.strftime("%Y-%m-%d") if value.year >= 1000 else value.isoformat()[:10]
    return value.isoformat() + ("Z" if zoned else "")


def places(lines: pl.Series, texts: pl.Series, where: pl.Series) -> Places:
    """How many cells a mask selects, and the first of them."""
    chosen = where.arg_true()
    first = chosen.head(_SHOWN)
    found = zip(lines.gather(first).alias(LINE), texts.gather(first), strict=True)
    return Places(count=chosen.len(), first=tuple(Place(line=line, value=shown(value)) for line, value in found))
