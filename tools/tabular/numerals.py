"""Numbers as people write them: currency, grouping, decimal comma, accounting negatives; read exactly, never guessed.

`parse_number` reads one text, `numbers` a whole column; both accept the same language and give the same
values (a property test holds them together). Accepted are an optional sign (in front, behind, or as parentheses), an
optional currency before or after, digits with or without thousands groups, a decimal part, an exponent, a percent sign
(12 % reads as 12).
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import polars as pl

DecimalMark = Literal[".", ","]

_CODES = "USD|EUR|GBP|CNY|RMB|JPY|CHF|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|SGD|HKD|TWD|INR|BRL|MXN|ZAR|KRW|TRY|RUB|THB"
_CURRENCY = rf"(?:US\$|R\$|[$€£¥₹₩₽₺฿₫₪₴]|{_CODES}|kr|zł|Kč|Ft|元|円|圆)"
_SPACE = "[ \u00a0\u202f\u2009]"
_MINUS = "[-\u2212]"
_GROUPS: dict[DecimalMark, str] = {".": f"(?:,|'|’|{_SPACE})", ",": rf"(?:\.|'|’|{_SPACE})"}
FULL_WIDTH = dict(zip("０１２３４５６７８９．，－￥（）", "0123456789.,-¥()", strict=True))
_TRANSLATION = str.maketrans(FULL_WIDTH)

NEGATIVE = rf"^[^0-9]*(?:{_MINUS}|\()|{_MINUS}{_SPACE}*(?:{_CURRENCY})?{_SPACE}*$"
INTEGRAL = r"^[+-]?[0-9]+$"
_SIMPLE: dict[DecimalMark, str] = {".": r"^-?[0-9]+(?:\.[0-9]+)?$", ",": r"^-?[0-9]+(?:,[0-9]+)?$"}
"""What most columns hold throughout: a quick way past the long pattern."""


class Evidence(NamedTuple):
    """How many values of a column can only be read one way, and how many both ways."""

    point: int
    comma: int
    ambiguous: int


@cache
def core(decimal: DecimalMark) -> str:
    """The pattern of the digits alone: plain, grouped by threes, or grouped the Indian way."""
    group = _GROUPS[decimal]
    mark = re.escape(decimal)
    indian = "|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}" if decimal == "." else ""
    whole = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+{indian}|[0-9]+)"
    return f"(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?"


@cache
def pattern(decimal: DecimalMark) -> str:
    """The whole accepted text. Uses only what the regex engines of Python and Rust read the same way."""
    digits = core(decimal)
    sign = f"(?:[+]|{_MINUS})"
    before = f"(?:{_CURRENCY}{_SPACE}*)?"
    after = f"(?:{_SPACE}*(?:%|{_CURRENCY}))?"
    signed_first = f"{sign}?{_SPACE}*{before}{digits}{after}"
    signed_inside = f"{_CURRENCY}{_SPACE}*{sign}{digits}"
    signed_last = f"{before}{digits}{after}{_MINUS}"
    bracketed = rf"\({_SPACE}*{before}{digits}{after}{_SPACE}*\)"
    return f"^(?:{signed_first}|{signed_inside}|{signed_last}|{bracketed})$"


def parse_number(text: str, decimal: DecimalMark = ".") -> Decimal | None:
    """The exact value of one text, or None where it is not a number under this decimal mark."""
    stripped = text.translate(_TRANSLATION).strip()
    if not re.match(pattern(decimal), stripped) or "\n" in stripped:
        return None
    digits = re.sub(_GROUPS[decimal], "", re.findall(core(decimal), stripped)[0]).replace(decimal, ".")
    value = Decimal(digits)
    return -value if re.search(NEGATIVE, stripped) else value


def plain_numbers(values: pl.Series, decimal: DecimalMark) -> pl.Series:
    """Each value as plain digits with a point and a leading minus (`-1234.50`); null where it is not a number."""
    simple = values.str.contains(_SIMPLE[decimal])
    read = (
        values.set(~simple, None) if decimal == "." else values.set(~simple, None).str.replace(",", ".", literal=True)
    )
    others = (~simple).arg_true()
    return read.scatter(others, _written_otherwise(values.gather(others), decimal)) if others.len() else read


def _written_otherwise(values: pl.Series, decimal: DecimalMark) -> pl.Series:
    """plain_numbers for all that is more than digits."""
    import polars as pl

    stripped = pl.col("text").str.replace_many(list(FULL_WIDTH), list(FULL_WIDTH.values())).str.strip_chars()
    digits = stripped.str.extract(f"({core(decimal)})").str.replace_all(_GROUPS[decimal], "")
    digits = digits.str.replace(decimal, ".", literal=True)
    sign = pl.when(stripped.str.contains(NEGATIVE)).then(pl.lit("-")).otherwise(pl.lit(""))
    plain = pl.when(stripped.str.contains(pattern(decimal))).then(pl.concat_str(sign, digits))
    return values.alias("text").to_frame().select(plain).to_series()


def numbers(values: pl.Series, decimal: DecimalMark) -> pl.Series:
    """Each value as Float64; null where it is not a number, or beyond what a double can hold."""
    import polars as pl

    read = plain_numbers(values, decimal).cast(pl.Float64, strict=False)
    return read.set(read.is_infinite(), None)


def _certain(mark: str, group: str) -> str:
    """What can only be read with this decimal mark: grouped with a decimal part, two groups, or not three decimals."""
    spaced = rf"[{group}'’ \x{{a0}}\x{{202f}}]"
    return (
        rf"^[^0-9]*(?:[0-9]{{1,3}}(?:{spaced}[0-9]{{3}})+{mark}[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}}){{2,}}"
        rf"|0?{mark}[0-9]+|[0-9]+{mark}(?:[0-9]{{1,2}}|[0-9]{{4,}})|[0-9]{{4,}}{mark}[0-9]+)[^0-9]*$"
    )


_CERTAIN: dict[DecimalMark, str] = {".": _certain(r"\.", ","), ",": _certain(",", r"\.")}
_AMBIGUOUS = r"^[^0-9]*[1-9][0-9]{0,2}[.,][0-9]{3}[^0-9]*$"


def evidence(values: pl.Series) -> Evidence:
    """What a column says about its decimal mark. 1.234 and 1,234 say nothing: they are counted as ambiguous."""

    def count(regex: str) -> int:
        return int(values.str.contains(regex).sum() or 0)

    return Evidence(count(_CERTAIN["."]), count(_CERTAIN[","]), count(_AMBIGUOUS))
