"""The tools of `tabular` as they are declared; the work, and every heavy import, waits for the first call."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tools.context import ToolContext
from tools.registry import Toolkit
from tools.tabular.arguments import (
    FieldType,
    Filter,
    Grouping,
    Language,
    Measure,
    Reading,
    Rule,
    Section,
    Sorting,
)  # fmt: skip
from tools.tabular.results import (
    Aggregate,
    Anomalies,
    ExportedRows,
    FieldChecks,
    Report,
    TableDescription,
)  # fmt: skip

tabular = Toolkit("tabular", description="Describe, check, search and summarise tables in files, and report on them.")

_LONG = 300.0
FileName = Annotated[str, Field(min_length=1, max_length=200)]


@tabular.tool(effect="read", timeout_s=_LONG)
def describe_table(
    ctx: ToolContext, path: str, sheet: str | None = None, reading: Reading | None = None, language: Language = "en"
) -> TableDescription:
    """Describe the table in a file: format, encoding, delimiter, number of rows, and for each column its type, how
    many values are missing, distinct or bad, its smallest and largest value and examples. Says what was assumed and
    what looks wrong with the file (ragged rows, duplicate names)."""
    from tools.tabular import describe

    return describe.describe(ctx, path, sheet, reading, language)


@tabular.tool(effect="read", timeout_s=_LONG)
def check_fields(
    ctx: ToolContext,
    path: str,
    required: tuple[str, ...] = (),
    types: dict[str, FieldType] | None = None,
    sheet: str | None = None,
    reading: Reading | None = None,
    language: Language = "en",
) -> FieldChecks:
    """Check the columns of a table: values that are missing in `required` columns, and values that are not of the
    type that `types` names (number, integer, date, datetime, text, boolean, email), with counts and the first lines.
    Without both, every column is checked against the type that most of its values have."""
    from tools.tabular import check

    return check.check(ctx, path, required, types or {}, sheet, reading, language)


@tabular.tool(effect="idempotent", risk="low", timeout_s=_LONG, sensitive_args=("path", "output"))
def find_anomalies(
    ctx: ToolContext,
    path: str,
    rules: tuple[Rule, ...] | None = None,
    output: FileName | None = None,
    sheet: str | None = None,
    reading: Reading | None = None,
    language: Language = "en",
) -> Anomalies:
    """Find anomalous rows by rules: negative amounts, time running backwards, duplicate ids, values outside a list,
    outliers, missing and bad values. Without `rules` they are inferred from the columns' names and types, and the
    result says which and why. With `output` (a .csv or .xlsx name) all anomalous rows are written to that file."""
    from tools.tabular import anomalies

    return anomalies.find(ctx, path, rules, output, sheet, reading, language)


@tabular.tool(effect="read", timeout_s=_LONG)
def aggregate(  # noqa: PLR0917
    ctx: ToolContext,
    path: str,
    measures: Annotated[tuple[Measure, ...], Field(max_length=20)] = (Measure(op="count"),),
    group_by: Annotated[tuple[str | Grouping, ...], Field(max_length=5)] = (),
    where: tuple[Filter, ...] = (),
    sort: Sorting | None = None,
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100,
    sheet: str | None = None,
    reading: Reading | None = None,
    language: Language = "en",
) -> Aggregate:
    """Summarise a table: count, sum, mean, median, min, max and distinct values, per group of `group_by` (columns, or
    dates by day, week, month, quarter or year) and only over rows that match `where`. Sums are exact."""
    from tools.tabular import grouping

    return grouping.aggregate(
        ctx, path, grouping.Request(measures, group_by, where, sort, limit), sheet, reading, language
    )


@tabular.tool(effect="idempotent", risk="low", timeout_s=_LONG, sensitive_args=("path", "output"))
def export_rows(  # noqa: PLR0917
    ctx: ToolContext,
    path: str,
    output: FileName,
    where: tuple[Filter, ...] = (),
    lines: Annotated[tuple[int, ...], Field(max_length=10_000)] | None = None,
    columns: tuple[str, ...] | None = None,
    sheet: str | None = None,
    reading: Reading | None = None,
    language: Language = "en",
) -> ExportedRows:
    """Write rows of a table to a .csv or .xlsx file in the output folder: those that match `where`, or those on the
    given lines, or all. A first column `line` says where each row stood. Formulas in cells are made inert."""
    from tools.tabular import export

    return export.export_rows(ctx, path, export.Wanted(output, where, lines, columns), sheet, reading, language)


@tabular.tool(effect="idempotent", risk="low", timeout_s=60.0, sensitive_args=("name",))
def render_report(  # noqa: PLR0917
    ctx: ToolContext,
    title: Annotated[str, Field(min_length=1, max_length=300)],
    table: TableDescription | None = None,
    fields: FieldChecks | None = None,
    anomalies: Anomalies | None = None,
    aggregates: Annotated[tuple[Aggregate, ...], Field(max_length=20)] = (),
    sections: Annotated[tuple[Section, ...], Field(max_length=50)] = (),
    name: FileName = "report",
    language: Language = "en",
) -> Report:
    """Write a report as Markdown and as one HTML page with charts, from what the other tools of this kit found and
    from sections of your own. The result names both files and says in one sentence what was found."""
    from tools.tabular import report

    return report.render(ctx, report.Findings(title, table, fields, anomalies, aggregates, sections), name, language)
