"""Rows written to CSV or XLSX in the run's output folder: inert, replaced in one go, the same bytes each time."""

from __future__ import annotations

import datetime as dt
import io
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.tabular.arguments import Filter, Language, Reading
from tools.tabular.filters import matching
from tools.tabular.inert import FORMULA, INNER_FORMULA, NUMBER, formula_free
from tools.tabular.layout import LINE
from tools.tabular.opening import open_table
from tools.tabular.pace import Pace
from tools.tabular.phrases import say
from tools.tabular.results import ExportedRows

_MOST_SHEET_ROWS = 1_048_575
_MOST_CELL = 32_767
_FIXED = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


class Wanted(NamedTuple):
    """Which rows and columns, and the file they go to."""

    output: str
    where: tuple[Filter, ...] = ()
    lines: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None


def export_rows(
    ctx: ToolContext, path: str, wanted: Wanted, sheet: str | None, reading: Reading | None, language: Language
) -> ExportedRows:
    """Writes the rows. ToolFailure INVALID_ARGS for unknown columns, lines without a row, or an ending that is
    neither .csv nor .xlsx."""
    pace = Pace.of(ctx)
    target = target_of(ctx, wanted.output)
    table = open_table(ctx, path, sheet, reading, pace.part(0.0, 0.6))
    names = wanted.columns or table.names
    table.require(names)
    frame = table.frame
    if wanted.where:
        frame = frame.filter(matching(table, wanted.where))
    if wanted.lines is not None:
        _require_lines(table.lines(), wanted.lines, table.name)
        frame = frame.filter(pl.col(LINE).is_in(list(wanted.lines)))
    rows = write(frame.select(pl.col(LINE).alias(line_name(names)), *names), target, pace.part(0.6, 1.0))
    summary = say(language, "exported", count=rows, file=target.name, source=table.name)
    return ExportedRows(summary=summary, file=wanted.output, rows=rows, columns=(line_name(names), *names))


def target_of(ctx: ToolContext, output: str) -> Path:
    """Where an export goes; ToolFailure INVALID_ARGS for another ending than .csv and .xlsx."""
    if not output.lower().endswith((".csv", ".xlsx")):
        raise ToolFailure("INVALID_ARGS", f"cannot export to {output!r}: the name must end in .csv or .xlsx")
    return ctx.files.writable(output)


def line_name(names: tuple[str, ...]) -> str:
    """The name of the column with the line numbers: `line`, or `source_line` where the table has a `line`."""
    return "source_line" if "line" in names else "line"


def write(frame: pl.LazyFrame, target: Path, pace: Pace) -> int:
    """Writes a frame whose first column is whole numbers and whose others are text; gives the number of rows."""
    pace.tick(0.0, f"writing {target.name}")
    return _write_sheet(frame, target, pace) if target.suffix.lower() == ".xlsx" else _write_csv(frame, target)


def _write_csv(frame: pl.LazyFrame, target: Path) -> int:
    first, *others = frame.collect_schema().names()
    safe = frame.select(pl.col(first), *(_formula_free(pl.col(name)).alias(formula_free(name)) for name in others))
    with replacing(target) as draft:
        # A byte order mark: without one a spreadsheet program reads UTF-8 as the local code page.
        safe.sink_csv(draft, include_bom=True, quote_style="always", line_terminator="\r\n")
        return int(frame.select(pl.len()).collect().item())


def _formula_free(column: pl.Expr) -> pl.Expr:
    """formula_free for a whole column (a test holds them together)."""
    text = column.str.replace_all(INNER_FORMULA, "${1}'${2}")
    marked = pl.when(text.str.contains(FORMULA)).then(pl.concat_str(pl.lit("'"), text)).otherwise(text)
    return pl.when(column.str.contains(NUMBER)).then(column).otherwise(marked)


def _write_sheet(frame: pl.LazyFrame, target: Path, pace: Pace) -> int:
    rows = int(frame.select(pl.len()).collect().item())
    if rows > _MOST_SHEET_ROWS:
        raise ToolFailure("INVALID_ARGS", f"{rows:,} rows do not fit a sheet, which holds {_MOST_SHEET_ROWS:,}; "
                          f"name the output {target.stem!s}.csv")  # fmt: skip
    with replacing(target) as draft:
        _fill_sheet(frame.collect(), draft, lambda done: pace.tick(done / max(rows, 1), f"writing {target.name}"))
    return rows


def _fill_sheet(frame: pl.DataFrame, draft: Path, tick: Callable[[int], None]) -> None:
    """Every cell but the first column's is written as text: a formula in it is only its text."""
    import xlsxwriter  # type: ignore[import-untyped]

    # Packed in memory: on a full disk the library leaves its archive open, which then complains when it is collected.
    packed = io.BytesIO()
    with xlsxwriter.Workbook(packed, {"constant_memory": True}) as book:
        book.set_properties({"created": _FIXED})
        _fill(book, frame, tick)
    draft.write_bytes(packed.getbuffer())


def _fill(book: Any, frame: pl.DataFrame, tick: Callable[[int], None]) -> None:
    sheet = book.add_worksheet("rows")
    bold = book.add_format({"bold": True})
    for place, name in enumerate(frame.columns):
        sheet.write_string(0, place, formula_free(name), bold)
    sheet.freeze_panes(1, 0)
    for number, row in enumerate(frame.iter_rows(), start=1):
        sheet.write_number(number, 0, row[0])
        for place, text in enumerate(row[1:], start=1):
            if text:
                sheet.write_string(number, place, formula_free(text)[:_MOST_CELL])
        if number % 1000 == 0:
            tick(number)


def _require_lines(known: pl.Series, wanted: tuple[int, ...], name: str) -> None:
    if lacking := sorted(set(wanted) - set(known.filter(known.is_in(list(wanted))))):
        listed = ", ".join(map(str, lacking[:10]))
        last = int(known.max() or 0)  # type: ignore[arg-type]
        raise ToolFailure("INVALID_ARGS", f"{name} has no row on line {listed}; its last row stands on line {last:,}")


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A draft beside the target that takes its place when all is written, and never leaves a half-written file."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        draft.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)[-60:]
        raise ToolFailure("UNAVAILABLE", f"{target.name} cannot be written ({reason}): check the disk and the rights "
                          "of the output folder") from None  # fmt: skip
    finally:
        draft.unlink(missing_ok=True)
