"""How one file writes numbers and dates: what its values prove, what the caller says, and what is only assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import polars as pl

from tools.tabular.arguments import Reading
from tools.tabular.dates import PATTERNS, DateOrder, Family
from tools.tabular.kinds import DATED, NUMERIC, Column, Kind
from tools.tabular.numerals import INTEGRAL, DecimalMark, evidence, plain_numbers
from tools.tabular.phrases import Note, note

_ZONE = "(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})$"
_FAMILIES: tuple[Family, ...] = tuple(family for family in PATTERNS if family != "compact")


class Votes(NamedTuple):
    """How many values prove a convention: decimal point, decimal comma, day first, month first."""

    point: int = 0
    comma: int = 0
    dmy: int = 0
    mdy: int = 0

    def plus(self, other: Votes) -> Votes:
        """Both together."""
        return Votes(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Conventions:
    """Used where a column proves nothing itself. `said` holds what the caller gave, which overrules all proof."""

    decimal: DecimalMark = "."
    order: DateOrder = "dmy"
    decimal_proven: bool = False
    order_proven: bool = False
    said: Reading = field(default_factory=Reading)


def conventions(votes: Votes, said: Reading, delimiter: str | None) -> Conventions:
    """A whole file's conventions. Without any proof: a decimal point, and for dates the order that goes with the
    decimal mark: a comma or a semicolon as delimiter is European, day first; anything else month first."""
    decimal: DecimalMark = said.decimal or ("," if votes.comma > votes.point else ".")
    european = decimal == "," or delimiter == ";"
    proven: DateOrder = "dmy" if votes.dmy >= votes.mdy else "mdy"
    order = said.date_order or (proven if votes.dmy or votes.mdy else "dmy" if european else "mdy")
    return Conventions(
        decimal, order, decimal_proven=bool(said.decimal or votes.comma or votes.point),
        order_proven=bool(said.date_order or votes.dmy or votes.mdy), said=said,
    )  # fmt: skip


def votes(texts: pl.Series, kind: Kind) -> Votes:
    """What one column proves."""
    if kind in NUMERIC:
        seen = evidence(texts)
        return Votes(point=seen.point, comma=seen.comma)
    if kind in DATED:
        first, other = _day_or_month(texts)
        return Votes(dmy=int((first > 12).sum()), mdy=int((other > 12).sum()))
    return Votes()


def total(parts: Iterable[Votes]) -> Votes:
    """The votes of all columns."""
    summed = Votes()
    for part in parts:
        summed = summed.plus(part)
    return summed


def settle(texts: pl.Series, kind: Kind, rules: Conventions, *, compact: bool = False) -> Column:
    """The column read as this kind: its conventions, how many values are missing and bad, what was assumed."""
    column = Column(texts.name, kind, missing=texts.null_count())
    if kind in NUMERIC:
        column = _as_numbers(texts, column, rules)
    elif kind in DATED:
        column = _as_dates(texts, column, rules, compact=compact)
    values = column.values(texts)
    column = replace(column, bad=values.null_count() - column.missing)
    return column if kind not in DATED else _timed(texts, values, column)


def _as_numbers(texts: pl.Series, column: Column, rules: Conventions) -> Column:
    seen = evidence(texts)
    decimal: DecimalMark = rules.said.decimal or ("," if seen.comma > seen.point else ".")
    notes: tuple[Note, ...] = ()
    if not (seen.point or seen.comma or rules.said.decimal) and seen.ambiguous:
        decimal = rules.decimal
        example = texts.filter(texts.str.contains("[.,]")).first()
        key = "assumed_decimal_from_file" if rules.decimal_proven else "assumed_decimal"
        notes = (note(key, column=column.name, example=example, decimal=decimal),)
    plain = plain_numbers(texts, decimal)
    whole = bool(plain.drop_nulls().str.contains(INTEGRAL).all()) and plain.null_count() < plain.len()
    kind: Kind = "integer" if column.kind == "integer" or whole else "number"
    return replace(column, kind=kind, decimal=decimal, notes=notes)


def _day_or_month(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The first and second number of dates such as 03/04/2024, the only ones whose order is open."""
    parts = texts.str.extract_groups(PATTERNS["numeric"]).struct.unnest().select("first", "other").drop_nulls()
    return parts["first"].cast(pl.Int64), parts["other"].cast(pl.Int64)


def _as_dates(texts: pl.Series, column: Column, rules: Conventions, *, compact: bool) -> Column:
    first, other = _day_or_month(texts)
    dmy, mdy = int((first > 12).sum()), int((other > 12).sum())
    order: DateOrder = rules.said.date_order or ("mdy" if mdy > dmy else "dmy" if dmy else rules.order)
    notes: list[Note] = []
    if first.len() and not (dmy or mdy or rules.said.date_order):
        key = "assumed_order_from_file" if rules.order_proven else "assumed_order"
        example = texts.filter(texts.str.contains(PATTERNS["numeric"])).first()
        notes.append(note(f"{key}_{order}", column=column.name, example=example))
    if dmy and mdy:
        notes.append(note(f"mixed_order_{order}", column=column.name, dmy=dmy, mdy=mdy))
    families: tuple[Family, ...] = ("compact", *_FAMILIES) if compact else _FAMILIES
    return replace(column, order=order, families=families, notes=tuple(notes))


def _timed(texts: pl.Series, values: pl.Series, column: Column) -> Column:
    good = texts.filter(values.is_not_null())
    timed = bool((values.dt.truncate("1d") != values).any())
    zoned = good.str.contains(":[0-9.,]+(?: ?[AaPp][Mm])? ?" + _ZONE)
    notes = column.notes
    if bool(zoned.any()) and not bool(zoned.all()):
        notes += (note("assumed_utc", column=column.name, count=int(zoned.sum()), unzoned=int((~zoned).sum())),)
    kind: Kind = "datetime" if timed or column.kind == "datetime" else "date"
    return replace(column, kind=kind, timed=timed, zoned=bool(zoned.any()), notes=notes)
