"""What the tabular tools give back: small frozen values; whatever could be long is counted, cut and said to be cut.

`line` is where a row starts in its source: the line of a text file, the row of a sheet, the record of a Parquet file,
each counted from 1. A number that a double cannot hold exactly (more than 15 digits) is given as text.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

Number = int | float | str


class Outcome(BaseModel):
    """A frozen value of known shape."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(Outcome):
    """One cell: where it stands, and its text (cut at 200 characters)."""

    line: int
    value: str | None = None


class Places(Outcome):
    """How many cells, and the first of them."""

    count: int = 0
    first: tuple[Place, ...] = ()


class RaggedLine(Outcome):
    """A row with another number of fields than the header."""

    line: int
    fields: int
    expected: int


class Ragged(Outcome):
    """Rows that are too short or too long; they are kept: what lacks is empty, what is too much is left out."""

    count: int = 0
    first: tuple[RaggedLine, ...] = ()


class ColumnProfile(Outcome):
    """One column. `type` is integer, number, date, datetime, boolean, text or empty; `bad` counts values that are not
    of it. `min` and `max` follow the type; dates are ISO text."""

    name: str
    type: str
    missing: int
    distinct: int
    bad: int
    min: Number | None
    max: Number | None
    examples: tuple[str, ...]


class TableDescription(Outcome):
    """Result of describe_table. `assumptions` says what was taken for granted, `warnings` what looks wrong."""

    summary: str
    file: str
    format: str
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    sheets: tuple[str, ...]
    header_line: int
    rows: int
    columns: tuple[ColumnProfile, ...]
    ragged: Ragged
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


class FieldCheck(Outcome):
    """One column against what it should be. `inferred` says that the type comes from the content."""

    column: str
    type: str
    inferred: bool
    required: bool
    missing: Places
    bad: Places


class FieldChecks(Outcome):
    """Result of check_fields. `ok` is true when nothing required is missing, no value is bad and no row is ragged."""

    summary: str
    file: str
    ok: bool
    rows: int
    missing_values: int
    bad_values: int
    fields: tuple[FieldCheck, ...]
    ragged: Ragged
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


class Bin(Outcome):
    """How many values lie from `start` to `end`."""

    start: Number
    end: Number
    count: int


class RuleFinding(Outcome):
    """One rule: on which columns, how many rows break it, why it was applied, and the figures it used: of `outliers`
    the median, the limits and the distribution of the values."""

    rule: str
    columns: tuple[str, ...]
    found: int
    label: str
    why: str
    inferred: bool
    figures: dict[str, Number] = {}
    histogram: tuple[Bin, ...] = ()


class Anomaly(Outcome):
    """One row that breaks a rule: the cell, what is wrong in words, and the row (cells cut at 200 characters)."""

    line: int
    rule: str
    column: str
    value: str | None
    detail: str
    row: dict[str, str | None]


class Anomalies(Outcome):
    """Result of find_anomalies. `counts` maps each rule to its number of rows; a row that breaks two rules counts
    once in `anomalous_rows`. `examples` holds at most 20, `rows_file` all of them."""

    summary: str
    file: str
    rows: int
    anomalous_rows: int
    counts: dict[str, int]
    rules: tuple[RuleFinding, ...]
    examples: tuple[Anomaly, ...]
    examples_cut: bool
    rows_file: str | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


class Aggregate(Outcome):
    """Result of aggregate: one dict per group, keyed by `columns`. `groups` counts all groups, also those beyond the
    limit; `rows_used` the rows behind them; `ignored` the values of a column that could not be read as its type."""

    summary: str
    file: str
    columns: tuple[str, ...]
    group_columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    groups: int
    cut: bool
    rows_used: int
    ignored: dict[str, int]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


class ExportedRows(Outcome):
    """Result of export_rows: the file in the run's output folder and how many rows it holds."""

    summary: str
    file: str
    rows: int
    columns: tuple[str, ...]


class Report(Outcome):
    """Result of render_report: the two files, and one sentence that says what they found."""

    report_md: str
    report_html: str
    summary: str
