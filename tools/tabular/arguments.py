"""What the tabular tools accept: how to read a file, rules, checks, measures, filters and sections of a report."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Language = Literal["en", "zh"]
FieldType = Literal["number", "integer", "date", "datetime", "text", "boolean", "email"]
Operation = Literal["count", "sum", "mean", "median", "min", "max", "distinct"]
Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "not_in", "contains", "missing", "present"]
Period = Literal["day", "week", "month", "quarter", "year"]
Scalar = str | int | float | bool


class Argument(BaseModel):
    """A frozen argument; a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reading(Argument):
    """How to read a file where its content leaves a choice. Everything left out is found out from the content.

    `header_line` counts from 1; 0 says that there is no header. `quoted=False` takes quotes for ordinary characters.
    """

    encoding: str | None = None
    delimiter: str | None = Field(None, min_length=1, max_length=1)
    header_line: int | None = Field(None, ge=0)
    decimal: Literal[".", ","] | None = None
    date_order: Literal["dmy", "mdy"] | None = None
    quoted: bool = True


class NegativeAmount(Argument):
    """A number below zero where none belongs."""

    rule: Literal["negative_amount"] = "negative_amount"
    column: str


class TimeOrder(Argument):
    """A later event that is dated before an earlier one. Where one of the two has no time of day, days count."""

    rule: Literal["time_order"] = "time_order"
    earlier: str
    later: str


class DuplicateIds(Argument):
    """A value that stood in an earlier row already. Missing values do not count."""

    rule: Literal["duplicate_ids"] = "duplicate_ids"
    column: str


class AllowedValues(Argument):
    """A value outside of a list; capitals count, spaces around it do not. Missing values do not count."""

    rule: Literal["allowed_values"] = "allowed_values"
    column: str
    values: tuple[str, ...] = Field(min_length=1, max_length=1_000)


class Outliers(Argument):
    """A number far from the others: modified z-score 0.6745 (x - median) / MAD beyond the threshold (Iglewicz and
    Hoaglin, How to Detect and Handle Outliers, 1993; they propose 3.5). With MAD = 0 the mean absolute deviation
    stands in: (x - median) / (1.253314 MeanAD). `scale="log"` compares logarithms of the positive values, which suits
    amounts of money. Fewer than 12 values give no verdict."""

    rule: Literal["outliers"] = "outliers"
    column: str
    threshold: float = Field(3.5, gt=0, le=1_000)
    scale: Literal["linear", "log"] = "linear"


class Missing(Argument):
    """A cell that is empty or says so (null, N/A; in columns of numbers and dates also NA, NaN, none and dashes)."""

    rule: Literal["missing"] = "missing"
    column: str


class BadValues(Argument):
    """A value that is not of the column's type, such as 31.02.2024 or "twelve"."""

    rule: Literal["bad_values"] = "bad_values"
    column: str
    type: FieldType


Rule = Annotated[
    NegativeAmount | TimeOrder | DuplicateIds | AllowedValues | Outliers | Missing | BadValues,
    Field(discriminator="rule"),
]


class Filter(Argument):
    """Keeps rows whose value compares so. Numbers and dates compare as such, everything else as text; a missing value
    matches only `missing` and `ne`. `in` and `not_in` take a list, `missing` and `present` take nothing."""

    column: str
    op: Comparison
    value: Scalar | tuple[Scalar, ...] | None = None


class Grouping(Argument):
    """A column to group by; a column of dates by day, week (its Monday), month, quarter or year."""

    column: str
    by: Period | None = None


class Measure(Argument):
    """One figure per group, named `name` or `op_column` (`sum_amount`, `count`). Without a column `count` counts
    rows, with one the rows that have a value."""

    op: Operation
    column: str | None = None
    name: str | None = Field(None, min_length=1, max_length=60)


class Sorting(Argument):
    """Order of the groups by a column of the result."""

    by: str
    descending: bool = False


class Chart(Argument):
    """A chart of a section's rows: one bar or point per row, `x` its label and `y` its number."""

    kind: Literal["bar", "line"] = "bar"
    x: str
    y: str


class Section(Argument):
    """A part of a report: a heading, text (blank lines part paragraphs), rows as a table, a chart of these rows."""

    heading: str = Field(min_length=1)
    text: str | None = None
    rows: tuple[dict[str, Any], ...] = ()
    chart: Chart | None = None
