"""Tests of bad files: each is refused with a code and a sentence that says what is wrong and what to do."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from plans.failure import ToolFailure
from tests.tools.tabular.conftest import Desk
from tools.tabular import rows, toolkit
from tools.tabular.arguments import Filter, Measure, NegativeAmount, Sorting
from tools.tabular.workbook import MOST_FILE

NEWER_ZIP = (
    b"PK\x03\x04PK\x01\x02" + bytes([20, 0, 200, 0]) + bytes(38)
    + b"PK\x05\x06" + bytes(4) + b"\x01\x00\x01\x00" + bytes([46, 0, 0, 0, 4, 0, 0, 0, 0, 0])
)  # fmt: skip
"""An archive that asks for a version of the format that nobody knows."""


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", "INVALID_INPUT", "empty"), (b"  \n\n", "INVALID_INPUT", "empty"),
        (b"%PDF-1.7 ...", "INVALID_INPUT", "a PDF"), (b"\x1f\x8b\x08...", "INVALID_INPUT", "unpack it first"),
        (b"PK\x03\x04garbage", "INVALID_INPUT", "damaged"), (NEWER_ZIP, "INVALID_INPUT", "damaged"),
        (b"PAR1garbagePAR1", "INVALID_INPUT", "damaged Parquet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, "INVALID_INPUT", "no workbook"),
        (b"a,b\n\x00\x01\x02\x03" * 10, "INVALID_INPUT", "zero bytes"),
        (b",".join(b"c%d" % n for n in range(2_500)), "INVALID_INPUT", "2,500 columns"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["table.csv", "table.xlsx", "table.parquet"])
def test_what_is_no_table_is_refused(desk: Desk, content: bytes, code: str, said: str, name: str) -> None:
    """The content decides, whatever the name's ending; the message says what the file is."""
    failure = desk.refusal(desk.file(content, name))
    assert failure.code == code
    assert said in failure.message
    assert name in failure.message


def test_files_outside_of_the_run_are_refused(desk: Desk) -> None:
    """Neither an undeclared file, a folder, nor a missing one is read."""
    folder = desk.folder / "folder"
    folder.mkdir()
    assert desk.refusal("/etc/passwd").code == "NOT_PERMITTED"
    assert desk.refusal(desk.declare(folder)).code == "INVALID_INPUT"
    assert desk.refusal(desk.declare(desk.folder / "missing.csv")).code == "NOT_FOUND"


def test_a_header_without_rows_is_a_table(desk: Desk) -> None:
    """No rows is no failure: every tool answers, and says so."""
    path = desk.file("id,amount\n")
    result = desk.describe(path)
    assert (result.rows, len(result.columns)) == (0, 2)
    assert any("no rows" in text for text in result.warnings)
    assert desk.find(path).anomalous_rows == 0
    assert desk.check(path).ok
    assert desk.aggregate(path).rows == ({"count": 0},)


def test_unknown_columns_name_the_nearest_and_all(desk: Desk) -> None:
    """Every tool that is given a column it does not find says which there are, and which was meant."""
    path = desk.file("order_id,amount\n1,2\n")
    calls: dict[str, Callable[[], object]] = {
        "check": lambda: desk.check(path, required=("amuont",)),
        "rule": lambda: desk.find(path, [NegativeAmount(column="amuont")]),
        "measure": lambda: desk.aggregate(path, measures=(Measure(op="sum", column="amuont"),)),
        "group": lambda: desk.aggregate(path, group_by=("amuont",)),
        "where": lambda: desk.aggregate(path, where=(Filter(column="amuont", op="gt", value=1),)),
        "export": lambda: toolkit.export_rows(desk.ctx(), path, "x.csv", columns=("amuont",)),
        "sort": lambda: desk.aggregate(path, group_by=("amount",), sort=Sorting(by="amuont")),
    }
    for name, call in calls.items():
        with pytest.raises(ToolFailure) as failure:
            call()
        assert failure.value.code == "INVALID_ARGS", name
        assert "did you mean 'amount'?" in failure.value.message, name


def test_several_unknown_columns_are_told_at_once(desk: Desk) -> None:
    """Nobody has to mend them one by one."""
    with pytest.raises(ToolFailure, match=r"'x'.*'y'"):
        desk.check(desk.file("a,b\n1,2\n"), required=("x", "y"))


@pytest.mark.slow
def test_a_workbook_that_unpacks_to_too_much_is_refused(desk: Desk) -> None:
    """A zip bomb is refused by what it says of itself, before anything is unpacked."""
    path = desk.folder / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as member:
            for _ in range(1_200):
                member.write(b"\0" * (1 << 20))
    failure = desk.refusal(desk.declare(path))
    assert failure.code == "INVALID_INPUT"
    assert "unpacks to 1.3 GB" in failure.message


def test_a_workbook_file_that_is_too_large_is_refused(desk: Desk) -> None:
    """A workbook is read in one piece; CSV is offered instead."""
    path = desk.folder / "large.xls"
    with path.open("wb") as file:
        file.write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
        file.truncate(MOST_FILE + 1)
    failure = desk.refusal(desk.declare(path))
    assert "CSV" in failure.message


def test_a_deadline_stops_the_work(desk: Desk) -> None:
    """Work that nobody waits for any more ends between two batches."""
    path = desk.file("a,b\n" + "1,2\n" * 1000)
    with pytest.raises(ToolFailure) as failure:
        toolkit.describe_table(desk.ctx(seconds=0.0), path)
    assert failure.value.code == "TIMEOUT"


def test_parquet_damaged_deep_inside_is_refused(desk: Desk, tmp_path: Path) -> None:
    """Damage in a data page shows when the file is opened, not in the middle of later work."""
    path = tmp_path / "deep.parquet"
    pl.DataFrame({"a": list(range(5_000)), "b": [f"text {n}" for n in range(5_000)]}).write_parquet(path)
    body = bytearray(path.read_bytes())
    body[4:400] = bytes(396)
    path.write_bytes(bytes(body))
    failure = desk.refusal(desk.declare(path))
    assert failure.code == "INVALID_INPUT"
    assert "damaged Parquet" in failure.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("name", ["rows.csv", "rows.xlsx", "rows.parquet"])
@pytest.mark.slow
def test_a_full_temporary_folder_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A table that finds no room to be read is no damaged table."""
    frame = pl.DataFrame({"a": [str(n * 7919) for n in range(120_000)], "b": ["x"] * 120_000})
    monkeypatch.setattr(rows, "_BATCH_CELLS", 20_000)
    path = desk.folder / name
    writers: dict[str, Callable[[Path], object]] = {
        "rows.csv": frame.write_csv, "rows.parquet": frame.write_parquet, "rows.xlsx": frame.write_excel,
    }  # fmt: skip
    writers[name](path)
    scratch = desk.folder / "scratch"
    scratch.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(scratch)], check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    try:
        failure = desk.refusal(desk.declare(path))
        assert (failure.code, list(scratch.iterdir())) == ("UNAVAILABLE", [])
        assert "TMPDIR" in failure.message
    finally:
        subprocess.run(["umount", "--lazy", str(scratch)], check=True)


def test_a_missing_temporary_folder_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes nothing at all is told in the same words."""
    monkeypatch.setattr(tempfile, "tempdir", str(desk.folder / "nowhere"))
    assert desk.refusal(desk.file("a,b\n1,2\n")).code == "UNAVAILABLE"
