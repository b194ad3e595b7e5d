"""check_fields: which required values are missing, and which values are not what their column should hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.context import ToolContext
from tools.tabular.arguments import FieldType, Language, Reading
from tools.tabular.cells import places
from tools.tabular.conventions import settle
from tools.tabular.kinds import DATED, Column
from tools.tabular.opening import open_table
from tools.tabular.pace import Pace
from tools.tabular.phrases import assumptions, joined, say, warnings
from tools.tabular.results import FieldCheck, FieldChecks, Places
from tools.tabular.table import Table

_WIDER = {("number", "integer"), ("date", "datetime")}


def check(
    ctx: ToolContext, path: str, required: Sequence[str], types: Mapping[str, FieldType],
    sheet: str | None, reading: Reading | None, language: Language,
) -> FieldChecks:  # fmt: skip
    """The checks; ToolFailure INVALID_ARGS names columns that the table lacks, with the nearest it has."""
    pace = Pace.of(ctx)
    table = open_table(ctx, path, sheet, reading, pace.part(0.0, 0.7))
    table.require([*required, *types])
    asked = list(dict.fromkeys([*required, *types])) or list(table.names)
    fields, columns = [], []
    for place, name in enumerate(asked):
        pace.part(0.7, 1.0).tick(place / len(asked), f"checking {name}")
        columns.append(as_type(table, name, types.get(name)))
        fields.append(_field(table, columns[-1], name in required, types.get(name)))
    told = (*table.notes, *(told for column in columns for told in column.notes))
    ok = not table.ragged.count and not any(f.bad.count or (f.required and f.missing.count) for f in fields)
    return FieldChecks(
        summary=_summary(table, fields, language), file=table.name, ok=ok, rows=table.rows,
        missing_values=sum(f.missing.count for f in fields), bad_values=sum(f.bad.count for f in fields),
        fields=tuple(fields), ragged=table.ragged, assumptions=assumptions(told, language),
        warnings=warnings(told, language),
    )  # fmt: skip


def as_type(table: Table, name: str, wanted: FieldType | None) -> Column:
    """The column read as the type that a caller wants; as what it is without one, or when it is that already: whole
    numbers are numbers, and a time has a date."""
    column = table.column(name)
    if wanted is None or wanted == column.kind or (wanted, column.kind) in _WIDER:
        return column
    return settle(table.texts(name, wanted), wanted, table.rules, compact=wanted in DATED)


def _field(table: Table, column: Column, required: bool, wanted: FieldType | None) -> FieldCheck:
    texts = table.texts(column.name, column.kind)
    lines = table.lines()
    bad = column.values(texts).is_null() & texts.is_not_null()
    return FieldCheck(
        column=column.name, type=wanted or column.kind, inferred=wanted is None, required=required,
        missing=places(lines, texts, texts.is_null()) if column.missing else Places(),
        bad=places(lines, texts, bad) if column.bad else Places(),
    )  # fmt: skip


def _summary(table: Table, fields: Sequence[FieldCheck], language: Language) -> str:
    found = [say(language, "bad_in", count=f.bad.count, column=f.column, kind=f.type) for f in fields if f.bad.count]
    found += [
        say(language, "missing_in", count=f.missing.count, column=f.column)
        for f in fields
        if f.required and f.missing.count
    ]
    if table.ragged.count:
        found.append(say(language, "ragged_short", count=table.ragged.count))
    key = "checked_faults" if found else "checked_sound"
    return say(language, key, file=table.name, rows=table.rows, columns=len(fields), found=joined(found, language))
