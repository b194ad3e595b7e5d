"""Tests of reading numbers: what is one, exact values, the two readers agree, and what a column proves."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.tabular.numerals import DecimalMark, evidence, numbers, parse_number, plain_numbers

AMOUNTS = st.decimals(min_value=-(10**12), max_value=10**12, places=2)
MARKS = st.sampled_from([".", ","])


def written(amount: Decimal, decimal: DecimalMark, group: str) -> str:
    """An amount as a person writes it."""
    text = f"{abs(amount):,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", group)
    return f"-{text}" if amount < 0 else text


@given(AMOUNTS, MARKS, st.booleans(), st.sampled_from(["", "€ ", "$", "CHF ", "EUR "]))
def test_an_amount_is_read_back_exactly(amount: Decimal, decimal: DecimalMark, grouped: bool, currency: str) -> None:
    """Writing an amount in either convention, grouped or not, with a currency, and reading it gives the same value."""
    group = ("." if decimal == "," else ",") if grouped else ""
    text = written(abs(amount), decimal, group)
    assert parse_number(f"{'-' if amount < 0 else ''}{currency}{text}", decimal) == amount
    assert parse_number(f"({currency}{text})", decimal) == -abs(amount)


@given(AMOUNTS, MARKS)
def test_spaces_and_apostrophes_group_in_either_convention(amount: Decimal, decimal: DecimalMark) -> None:
    """Swiss and French grouping does not depend on the decimal mark."""
    for group in (" ", "\u00a0", "\u202f", "'", "’"):
        assert parse_number(written(amount, decimal, group), decimal) == amount


NEAR_NUMBERS = st.text(alphabet="0123456789.,-+() '€$%eE１．−xR", max_size=12)


@given(st.lists(NEAR_NUMBERS, min_size=1, max_size=30), MARKS)
def test_one_text_and_a_column_are_read_alike(texts: list[str], decimal: DecimalMark) -> None:
    """The reader of one text and the reader of a column accept the same texts and give the same values."""
    column = numbers(pl.Series(texts, dtype=pl.String), decimal).to_list()
    for text, value in zip(texts, column, strict=True):
        single = parse_number(text, decimal)
        assert (single is None) == (value is None), text
        assert single is None or float(single) == value


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1,234.56", ".", "1234.56"), ("1.234,56", ",", "1234.56"), ("1.234,56 EUR", ",", "1234.56"),
        ("(123.45)", ".", "-123.45"), ("123.45-", ".", "-123.45"), ("−5", ".", "-5"), ("$-5", ".", "-5"),
        ("-$5", ".", "-5"), ("1e5", ".", "100000"), ("1.5E-3", ".", "0.0015"), ("1,23,456.78", ".", "123456.78"),
        ("１２３．５", ".", "123.5"), ("￥1,200", ".", "1200"), ("12 %", ".", "12"), (".5", ".", "0.5"),
        ("+7", ".", "7"), ("1200元", ".", "1200"), ("kr 5", ".", "5"), ("  8 ", ".", "8"),
    ],
)  # fmt: skip
def test_usual_forms_are_read(text: str, decimal: DecimalMark, value: str) -> None:
    """Currency, accounting negatives, exponents, full width and Indian grouping are read for what they say."""
    assert parse_number(text, decimal) == Decimal(value)
    assert plain_numbers(pl.Series([text]), decimal).cast(pl.Float64).item() == float(value)


@pytest.mark.parametrize(
    "text",
    ["", "A100", "1.2.3", "--5", "-(5)", "1,2345", "12,34,5", "1 2", "5 5", "e5", "0x10", "inf", "NaN", "1_000", "½"],
)
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    """Codes, versions, doubled signs and odd groups are no numbers."""
    assert parse_number(text) is None
    assert numbers(pl.Series([text]), ".").item() is None


def test_a_number_beyond_a_double_is_not_infinite() -> None:
    """No infinity gets into results: JSON and PostgreSQL have none."""
    assert numbers(pl.Series(["1e999", "9" * 400]), ".").to_list() == [None, None]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.234,56", "12,5", "1.234.567"], (0, 3, 0)), (["1,234.56", "0.5", "1,234,567"], (3, 0, 0)),
        (["1,234", "1.234", "999.000"], (0, 0, 3)), (["1234.567", "0,250"], (1, 1, 0)), (["12", "7"], (0, 0, 0)),
    ],
)  # fmt: skip
def test_evidence_counts_what_can_be_read_one_way_only(texts: list[str], expected: tuple[int, int, int]) -> None:
    """Three digits after a single mark prove nothing; anything else proves one convention."""
    assert evidence(pl.Series(texts)) == expected
