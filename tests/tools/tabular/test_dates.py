"""Tests of reading dates: round trips, the two readers agree, order and zones, and what no calendar has."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.tabular.dates import PATTERNS, DateOrder, dates, family_of, parse_date

FIRST, LAST = datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2200-01-01")
MOMENTS = st.datetimes(min_value=FIRST, max_value=LAST).map(lambda at: at.replace(microsecond=0))
FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d %b %Y %H:%M:%S",
    "%b %d, %Y %I:%M:%S %p", "%Y年%m月%d日 %H:%M:%S", "%d-%B-%Y %H:%M:%S",
)  # fmt: skip
ORDERS = st.sampled_from(["dmy", "mdy"])


@given(MOMENTS, st.sampled_from(FORMATS), ORDERS)
def test_a_moment_is_read_back(at: datetime, form: str, order: DateOrder) -> None:
    """Whatever unambiguous form writes a moment, reading gives the moment, in either order of day and month."""
    read = parse_date(at.strftime(form).replace("%Y", str(at.year)), order)
    assert read is not None
    assert (read.at, read.timed, read.zoned) == (at, True, False)


@given(MOMENTS)
def test_the_order_decides_slashes(at: datetime) -> None:
    """Day first and month first are read as asked for."""
    day_first, month_first = parse_date(f"{at:%d/%m}/{at.year}", "dmy"), parse_date(f"{at:%m/%d}/{at.year}", "mdy")
    assert day_first is not None
    assert month_first is not None
    assert day_first.at == month_first.at == at.replace(hour=0, minute=0, second=0)


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_an_offset_is_turned_into_utc(at: datetime, minutes: int) -> None:
    """A time with an offset names the same instant in UTC."""
    zone = timezone(timedelta(minutes=minutes))
    read = parse_date(at.replace(tzinfo=zone).isoformat())
    assert read is not None
    assert (read.at, read.zoned) == (at - timedelta(minutes=minutes), True)


PARTS = st.tuples(st.integers(0, 2100), st.integers(0, 14), st.integers(0, 33), st.integers(0, 26), st.integers(0, 62))
SHAPES = (
    "{0:04}-{1:02}-{2:02}", "{0}-{1}-{2}", "{0:04}-{1:02}-{2:02}T{3:02}:{4:02}:00Z",
    "{0:04}-{1:02}-{2:02} {3:02}:{4:02}:07",
    "{1}/{2}/{0:04}", "{2}.{1}.{0:04} {3}:{4:02}", "{0:04}{1:02}{2:02}", "{2}/{1}/{3:02}", "{0:04}年{1}月{2}日",
    "{2} Feb {0:04} {3}:{4:02} pm", "Mar {2}, {0:04}", "{0:04}-{1:02}-{2:02} {3:02}:{4:02}+02:00", "x{0}", "{1}.{2}",
)  # fmt: skip


@given(st.lists(st.tuples(PARTS, st.sampled_from(SHAPES)), min_size=1, max_size=20), ORDERS)
def test_one_text_and_a_column_are_read_alike(parts: list[tuple[tuple[int, ...], str]], order: DateOrder) -> None:
    """The reader of one text and the reader of a column accept the same texts and give the same moments."""
    texts = [shape.format(*numbers) for numbers, shape in parts]
    column = dates(pl.Series(texts), list(PATTERNS), order).to_list()
    single = [parse_date(text, order, compact=True) for text in texts]
    assert column == [moment.at if moment else None for moment in single]


@pytest.mark.parametrize(
    "text",
    ["2026-02-30", "31.04.2026", "2026-13-01", "2026-01-01 25:00", "2026-01-01 10:61", "2026-01-01 13:00 PM",
     "0000-01-01", "29.02.2025", "1.2", "2026", "12:30", "yesterday", "2026-01-01x", ""],
)  # fmt: skip
def test_what_no_calendar_has_is_none(text: str) -> None:
    """Impossible days and hours, and texts that are no dates, give nothing."""
    assert parse_date(text) is None
    assert dates(pl.Series([text]), list(PATTERNS), "dmy").item() is None


@pytest.mark.parametrize(("text", "year"), [("1.2.69", 1969), ("1.2.99", 1999), ("1.2.00", 2000), ("1.2.68", 2068)])
def test_two_digit_years_follow_posix(text: str, year: int) -> None:
    """69 is 1969 and 68 is 2068."""
    read = parse_date(text)
    assert read is not None
    assert read.at.year == year


def test_eight_digits_are_a_date_only_on_request() -> None:
    """20260131 may be a number; only who knows better gets a date."""
    assert family_of("20260131") == "compact"
    assert parse_date("20260131") is None
    assert dates(pl.Series(["20260131"]), ["iso", "dotted"], "dmy").item() is None
