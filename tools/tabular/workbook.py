"""Workbooks (xlsx, xlsm, xlsb, xls, ods): one sheet as records, read in a process of its own."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plans.failure import ToolFailure
from tools.tabular import read_sheet as read_sheet_program
from tools.tabular.child import read_apart
from tools.tabular.layout import Record
from tools.tabular.nearest import unknown
from tools.tabular.pace import Pace

MOST_UNPACKED = 1 << 30
MOST_FILE = 256 << 20
_STRIDE = 1024


@dataclass(frozen=True)
class SheetSource:
    """One sheet whose cells lie as text in an Arrow file. Row numbers are those of the sheet."""

    sheet: str
    sheets: tuple[str, ...]
    cells: Path

    def records(self) -> Iterator[Record]:
        """All rows; an empty cell is an empty text."""
        import polars as pl

        frame = pl.read_ipc(self.cells)
        for line, row in enumerate(frame.iter_rows(buffer_size=_STRIDE), start=1):
            yield line, [cell or "" for cell in row]


def read_sheet(path: Path, sheet: str | None, scratch: Path, pace: Pace) -> SheetSource:
    """Reads a sheet, by default the first that holds anything. ToolFailure: INVALID_INPUT for a workbook that is
    damaged, protected by a password, or too big; INVALID_ARGS for a sheet that it lacks."""
    _refuse_big(path)
    pace.tick(0.0, f"reading the workbook {path.name}")
    target = scratch / "sheet.arrow"
    said = read_apart(read_sheet_program, path, sheet or "", str(target), seconds=pace.seconds_left())
    if "error" in said:
        raise _damaged(path, said["error"])
    sheets: Sequence[str] = said["sheets"]
    if said["sheet"] is None:
        raise ToolFailure("INVALID_ARGS", unknown("sheet", sheet or "", sheets, path.name))
    return SheetSource(said["sheet"], tuple(sheets), target)


def _refuse_big(path: Path) -> None:
    if path.stat().st_size > MOST_FILE:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is larger than {MOST_FILE >> 20} MB, more than a workbook may "
                          "be here; save its sheet as CSV, which may be of any size")  # fmt: skip
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MOST_UNPACKED:
        raise ToolFailure("INVALID_INPUT", f"{path.name} unpacks to {unpacked / 1e9:.1f} GB; at most "
                          f"{MOST_UNPACKED >> 30} GB is read. Save its sheet as CSV, of any size")  # fmt: skip


def _damaged(path: Path, said: str) -> ToolFailure:
    if "assword" in said or "ncrypt" in said:
        return ToolFailure("INVALID_INPUT", f"{path.name} is protected by a password; save it without one")
    reason = said.removeprefix("calamine error: ")
    return ToolFailure("INVALID_INPUT", f"{path.name} is no workbook that can be read ({reason}); "
                       "open it in a spreadsheet program and save it again")  # fmt: skip
