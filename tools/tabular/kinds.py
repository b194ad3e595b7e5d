"""What a column holds: its kind, and how its texts become numbers, dates or truth values.

A kind needs four of five values: a column of amounts with a few words in it is a column of amounts with bad values,
not text. Codes stay text: leading zeros, or more than 15 digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from tools.tabular.dates import DateOrder, Family, dates, family_of
from tools.tabular.numerals import DecimalMark, numbers, parse_number
from tools.tabular.phrases import Note

Kind = Literal["integer", "number", "date", "datetime", "boolean", "email", "text", "empty"]

ENOUGH = 0.8
NUMERIC: tuple[Kind, ...] = ("integer", "number")
DATED: tuple[Kind, ...] = ("date", "datetime")
MISSING = ("", "null", "NULL", "Null", "(null)", "N/A", "n/a", "#N/A")
"""Texts that say in any column that there is no value."""
TYPED_MISSING = ("NA", "na", "NaN", "nan", "None", "none", "-", "--", "—", "–", "?", "无", "nil")
"""Texts that say so in columns of numbers and dates only: in a column of country codes NA is Namibia."""
TRUE = ("true", "yes", "y", "ja", "oui", "sí", "是")
FALSE = ("false", "no", "n", "nein", "non", "否")
EMAIL = r"^[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>.]{2,}$"
DATE_NAMES = re.compile(r"date|datum|fecha|day|_at$|_on$|日期|时间|日時", re.IGNORECASE)

_CODE = re.compile(r"^0[0-9]+$|^[0-9]{16,}$")
_COMPACT = re.compile(r"^(?:19|20)[0-9]{6}$")


@dataclass(frozen=True)
class Column:
    """A column and how to read its texts. `missing` and `bad` count cells; `timed`: dates with a time of day;
    `zoned`: with an offset, and then given in UTC."""

    name: str
    kind: Kind
    missing: int = 0
    bad: int = 0
    decimal: DecimalMark = "."
    order: DateOrder = "dmy"
    families: tuple[Family, ...] = ()
    timed: bool = False
    zoned: bool = False
    notes: tuple[Note, ...] = ()

    def values(self, texts: pl.Series) -> pl.Series:
        """The texts as Float64, naive Datetime, Boolean or String; null where missing or bad."""
        if self.kind in NUMERIC:
            read = numbers(texts, self.decimal)
            return read.set(read != read.floor(), None) if self.kind == "integer" else read
        if self.kind in DATED:
            return dates(texts, self.families, self.order)
        if self.kind == "boolean":
            lower = texts.str.to_lowercase()
            truths = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
            return lower.replace_strict(truths, default=None, return_dtype=pl.Boolean)
        if self.kind == "email":
            return texts.set(~texts.str.contains(EMAIL), None)
        return texts


def texts(frame: pl.LazyFrame, name: str, kind: Kind = "text") -> pl.Series:
    """A column as stripped texts, null where it says in a way usual for this kind that there is no value."""
    stripped = pl.col(name).str.strip_chars()
    absent = MISSING + (TYPED_MISSING if kind in NUMERIC + DATED else ())
    return frame.select(pl.when(~stripped.is_in(absent)).then(stripped).alias(name)).collect().to_series()


def sample_of(values: pl.Series, size: int = 500) -> list[str]:
    """Present values from the start and from all over the column."""
    present = values.drop_nulls()
    spread = present.gather_every(max(1, present.len() // size))
    return list(dict.fromkeys([*present.head(size), *spread.head(size)]))


def guess(name: str, sample: Sequence[str]) -> tuple[Kind, bool]:
    """The kind that most of the sample has, and whether eight bare digits are dates here."""
    sample = [text for text in sample if text not in TYPED_MISSING]
    if not sample:
        return "empty", False
    if all(text.lower() in TRUE + FALSE for text in sample):
        return "boolean", False
    enough = ENOUGH * len(sample)
    if sum(family_of(text) not in (None, "compact") for text in sample) >= enough:
        return "date", False
    if DATE_NAMES.search(name) and sum(bool(_COMPACT.match(text)) for text in sample) >= enough:
        return "date", True
    numeric = sum(parse_number(text) is not None or parse_number(text, ",") is not None for text in sample)
    codes = sum(bool(_CODE.match(text)) for text in sample)
    return ("number" if numeric >= enough and codes <= 0.01 * len(sample) else "text"), False
