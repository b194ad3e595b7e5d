"""Dates and times as exports write them: ISO, day or month first, dotted, Chinese and Japanese, English month names.

`parse_date` reads one text, `dates` a whole column; both accept the same language and give the same values (a property
test holds them together). A time with a zone or an offset is given in UTC, one without as written. Two-digit years
follow POSIX: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import polars as pl

DateOrder = Literal["dmy", "mdy"]
Family = Literal["iso", "compact", "dotted", "numeric", "cjk", "day_month", "month_day"]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?P<month>(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[A-Za-z]{0,6}"
_YEAR4, _YEAR = "(?P<year>[0-9]{4})", "(?P<year>[0-9]{4}|[0-9]{2})"
_DAY = "(?P<day>[0-9]{1,2})"
_TIME = (
    "(?:(?:T|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    "(?: ?(?P<half>[AaPp])[Mm])?(?: ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
_HEADS: dict[Family, str] = {
    "iso": f"{_YEAR4}[-/.](?P<month>[0-9]{{1,2}})[-/.]{_DAY}",
    "compact": f"{_YEAR4}(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})",
    "dotted": rf"{_DAY}\.(?P<month>[0-9]{{1,2}})\.{_YEAR}",
    "numeric": f"(?P<first>[0-9]{{1,2}})[/-](?P<other>[0-9]{{1,2}})[/-]{_YEAR}",
    "cjk": f"{_YEAR4}年(?P<month>[0-9]{{1,2}})月{_DAY}[日号]",
    "day_month": rf"{_DAY}[ .-]+{_MONTH}[ .,-]+{_YEAR}",
    "month_day": rf"{_MONTH}[ .]+{_DAY},? +{_YEAR4}",
}
PATTERNS: dict[Family, str] = {family: f"^{head}{_TIME}$" for family, head in _HEADS.items()}
_SHAPES: dict[Family, str] = {
    "iso": "^[0-9]{4}[-/.]", "compact": "^[0-9]{8}(?:[T ,]|$)", "dotted": r"^[0-9]{1,2}\.[0-9]", "cjk": "^[0-9]{4}年",
    "numeric": "^[0-9]{1,2}[/-][0-9]", "day_month": "^[0-9]{1,2}[ .-]+[A-Za-z]", "month_day": "^[A-Za-z]{3}",
}  # fmt: skip
"""What each family begins with: a cheap test that spares most values the long pattern."""
_PLAIN_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z?)?$"
_NAMED = {"day_month", "month_day"}


class Moment(NamedTuple):
    """One parsed text: the instant (in UTC when `zoned`, else as written) and whether it had a time of day."""

    at: datetime
    timed: bool
    zoned: bool


def family_of(text: str) -> Family | None:
    """The way this text writes a date, or None. Eight bare digits are `compact`: only a hint makes them a date."""
    return next((family for family, pattern in PATTERNS.items() if re.match(pattern, text.strip())), None)


def _four_digits(text: str) -> int:
    year = int(text)
    if len(text) > 2:
        return year
    return year + (1900 if year >= 69 else 2000)


def _offset_minutes(zone: str | None) -> int:
    if not zone or zone[0] not in "+-":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return -minutes if zone[0] == "-" else minutes


def _hour(parts: dict[str, str | None]) -> int | None:
    """The hour of the day, or None where it makes no sense (13 PM, 25:00)."""
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").lower()
    if half:
        return hour % 12 + (12 if half == "p" else 0) if 1 <= hour <= 12 else None
    return hour


def _month_day(family: Family, parts: dict[str, str | None], order: DateOrder) -> tuple[int, int]:
    if family == "numeric":
        first, other = int(parts["first"] or 0), int(parts["other"] or 0)
        return (other, first) if order == "dmy" else (first, other)
    month = parts["month"] or ""
    return (MONTHS.index(month.lower()) + 1 if family in _NAMED else int(month)), int(parts["day"] or 0)


def parse_date(text: str, order: DateOrder = "dmy", *, compact: bool = False) -> Moment | None:
    """The moment one text names, or None. `order` decides 03/04/2024; eight bare digits count only with `compact`."""
    family = family_of(text)
    if family is None or (family == "compact" and not compact) or text.strip("\n") != text:
        return None
    found = re.match(PATTERNS[family], text.strip())
    parts: dict[str, str | None] = found.groupdict() if found else {}
    month, day = _month_day(family, parts, order)
    hour = _hour(parts)
    try:
        at = datetime(  # noqa: DTZ001 - naive on purpose: as written, or UTC
            _four_digits(parts["year"] or ""), month, day, 24 if hour is None else hour, int(parts["minute"] or 0),
            int(parts["second"] or 0), int((parts["fraction"] or "").ljust(6, "0")[:6]),
        )  # fmt: skip
        at -= timedelta(minutes=_offset_minutes(parts["zone"]))
    except (ValueError, OverflowError):
        return None
    return Moment(at, parts["hour"] is not None, parts["zone"] is not None)


def _calendar_day(family: Family, order: DateOrder) -> pl.Expr:
    """The date of the named parts; null where the calendar lacks it."""
    import polars as pl

    year = pl.col("year").cast(pl.Int32, strict=False)
    pivoted = pl.when(year >= 69).then(year + 1900).otherwise(year + 2000)
    year = pl.when(pl.col("year").str.len_bytes() > 2).then(year).otherwise(pivoted)
    month, day = pl.col("month" if family != "numeric" else "first"), pl.col("day" if family != "numeric" else "other")
    if family == "numeric" and order == "dmy":
        month, day = day, month
    if family in _NAMED:
        names = dict(zip(MONTHS, map(str, range(1, 13)), strict=True))
        month = month.str.to_lowercase().replace_strict(names, default=None, return_dtype=pl.String)
    text = pl.concat_str(year.cast(pl.String).str.zfill(4), month, day, separator="-")
    return text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))


def _time_of_day() -> pl.Expr:
    """The span from midnight, less the zone's offset; null where the clock lacks it."""
    import polars as pl

    def number(name: str) -> pl.Expr:
        return pl.col(name).cast(pl.Int64, strict=False).fill_null(0)

    half = pl.col("half").str.to_lowercase()
    hour = number("hour")
    twelve = pl.when(hour.is_between(1, 12)).then(hour % 12 + pl.when(half == "p").then(12).otherwise(0))
    hour = pl.when(half.is_null()).then(hour).otherwise(twelve)
    fits = (hour < 24) & (number("minute") < 60) & (number("second") < 60)
    fraction = pl.col("fraction").fill_null("").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    zone = pl.col("zone").str.replace("^(?:Z|UTC|GMT)$", "+00:00").fill_null("+00:00")
    minutes = zone.str.slice(1, 2).cast(pl.Int64) * 60 + zone.str.slice(-2).cast(pl.Int64)
    offset = pl.when(zone.str.starts_with("-")).then(-minutes).otherwise(minutes)
    seconds = (hour * 60 + number("minute") - offset) * 60 + number("second")
    return pl.when(fits).then(pl.duration(microseconds=seconds * 1_000_000 + fraction))


def _in_family(texts: pl.Series, family: Family, order: DateOrder) -> pl.Series:
    """Naive datetimes, null wherever this family does not read the text or no such moment exists."""
    parts = texts.str.extract_groups(PATTERNS[family]).struct.unnest()
    day = _calendar_day(family, order)
    if parts["hour"].null_count() == len(parts):
        return parts.select(day.alias("at")).to_series()
    return parts.select((day + _time_of_day()).alias("at")).to_series()


def dates(values: pl.Series, families: Sequence[Family], order: DateOrder) -> pl.Series:
    """Each value as a naive Datetime (UTC where a zone was written), read in the given families; null elsewhere."""
    import polars as pl

    texts = values.str.strip_chars()
    read = pl.Series(values.name, [None], dtype=pl.Datetime("us")).new_from_index(0, len(values))
    if "iso" in families:
        places = texts.str.contains(_PLAIN_ISO).arg_true()
        read = read.scatter(places, _plain_iso(texts.gather(places)))
    for family in families:
        places = (texts.is_not_null() & read.is_null() & texts.str.contains(_SHAPES[family])).arg_true()
        if places.len():
            read = read.scatter(places, _in_family(texts.gather(places), family, order))
    return read.set(~read.dt.year().is_between(1, 9999), None)


def _plain_iso(texts: pl.Series) -> pl.Series:
    """The usual ISO forms, read at once."""
    day, time = texts.str.head(10), texts.str.slice(11, 8)
    return (day + time.replace("", "00:00:00")).str.to_datetime("%Y-%m-%d%H:%M:%S", time_unit="us", strict=False)
