"""Opens a file as a table: the content decides what it is, whatever its name says; a table is read once per process."""

from __future__ import annotations

import weakref
import zipfile
from pathlib import Path

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.tabular import encodings
from tools.tabular.arguments import Reading
from tools.tabular.kinds import Kind
from tools.tabular.pace import Pace
from tools.tabular.parquet import parquet_body
from tools.tabular.phrases import note
from tools.tabular.rows import Progress, body_of
from tools.tabular.scratch import Scratch
from tools.tabular.shelf import Key, Shelf
from tools.tabular.table import Body, Source, Table, understood
from tools.tabular.text import TextSource
from tools.tabular.workbook import read_sheet

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_REFUSED = (
    (b"%PDF", "a PDF"), (b"\x89PNG", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"), (b"GIF8", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"), (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"), (b"SQLite format 3", "a database"),
    (b"\x7fELF", "a program"), (b"ARROW1", "an Arrow file"), (b"Obj\x01", "an Avro file"),
)  # fmt: skip
_SHELF = Shelf()


def open_table(
    ctx: ToolContext, path: str, sheet: str | None, reading: Reading | None, pace: Pace | None = None
) -> Table:
    """The table in a file that this run may read. ToolFailure NOT_FOUND, NOT_PERMITTED, INVALID_INPUT or INVALID_ARGS
    say in plain words what is wrong with the file or the way it was asked for, and what to do."""
    pace = pace or Pace.of(ctx)
    real = ctx.files.readable(path)
    return _SHELF.take(Key.of(real, sheet, reading or Reading()), lambda key: _read(key, pace))


def _read(key: Key, pace: Pace) -> Table:
    scratch = Scratch()
    try:
        table = _table(key, scratch.folder, pace)
    except BaseException:
        scratch.close()
        raise
    weakref.finalize(table, scratch.close)
    return table


def _table(key: Key, scratch: Path, pace: Pace) -> Table:
    kind = format_of(key.path)
    if kind != "text" and key.reading.encoding:
        raise ToolFailure("INVALID_ARGS", f"{key.path.name} is {kind}, not text: it has no encoding to name")
    if key.sheet and kind in ("text", "parquet"):
        raise ToolFailure("INVALID_ARGS", f"{key.path.name} is no workbook: it has no sheet {key.sheet!r}")
    opened = {"text": _from_text, "parquet": _from_parquet}.get(kind, _from_workbook)
    source, body, declared = opened(key, kind, scratch, pace.part(0.0, 0.6))
    return understood(source, body, key.reading, declared, pace.part(0.6, 1.0))


Opened = tuple[Source, Body, dict[str, Kind]]


def _from_text(key: Key, _kind: str, scratch: Path, pace: Pace) -> Opened:
    named = key.reading.encoding
    encoding = encodings.given(named, key.path) if named else encodings.detect(key.path)
    text = TextSource(key.path, encoding, key.reading)
    read = lambda: Progress(text.position, text.position / text.size)  # noqa: E731
    body, header = body_of(text.records(), key.path.name, key.reading.header_line, scratch, read, pace)
    kind = "tsv" if text.delimiter == "\t" else "csv"
    if encoding.how == "guessed":
        body = body._replace(notes=(note("assumed_encoding", encoding=encoding.name), *body.notes))
    return Source(key.path, kind, encoding.name, text.delimiter, header_line=header), body, {}


def _from_parquet(key: Key, kind: str, scratch: Path, pace: Pace) -> Opened:
    body, declared = parquet_body(key.path, scratch, pace)
    return Source(key.path, kind), body, declared


def _from_workbook(key: Key, kind: str, scratch: Path, pace: Pace) -> Opened:
    sheet = read_sheet(key.path, key.sheet, scratch, pace)
    name = f"the sheet {sheet.sheet!r} of {key.path.name}"
    body, header = body_of(sheet.records(), name, key.reading.header_line, scratch, Progress, pace)
    if key.sheet is None and len(sheet.sheets) > 1:
        told = note("assumed_sheet", sheet=sheet.sheet, sheets=", ".join(sheet.sheets))
        body = body._replace(notes=(told, *body.notes))
    return Source(key.path, kind, sheet=sheet.sheet, sheets=sheet.sheets, header_line=header), body, {}


def format_of(path: Path) -> str:
    """text, parquet, xlsx, xlsb, ods or xls, by the first bytes. ToolFailure INVALID_INPUT for an empty file, and for
    one that is known to be something else."""
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is empty: it has no bytes. Was its export cut short?")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(_OLE):
        return "xls"
    if head.startswith(b"PK\x03\x04"):
        return _zipped(path)
    for magic, name in _REFUSED:
        if head.startswith(magic):
            raise ToolFailure("INVALID_INPUT", f"{path.name} is {name}, not a table; tables are CSV, TSV, Excel, ODS "
                              "and Parquet files" + ("; unpack it first" if "archive" in name else ""))  # fmt: skip
    return "text"


def _zipped(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, RuntimeError, ValueError, OSError):
        raise ToolFailure("INVALID_INPUT", f"{path.name} is a damaged workbook or archive: its end is missing. Copy or "
                          "download it again") from None  # fmt: skip
    for member, kind in (("xl/workbook.xml", "xlsx"), ("xl/workbook.bin", "xlsb"), ("content.xml", "ods")):
        if member in names:
            return kind
    raise ToolFailure("INVALID_INPUT", f"{path.name} is a zip archive, not a workbook; unpack it first")
