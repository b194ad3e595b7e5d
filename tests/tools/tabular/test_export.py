"""Tests of exports: which rows, inert cells, the same bytes each time, and never half a file."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import fastexcel
import polars as pl
import pytest

from plans.failure import ToolFailure
from tests.tools.tabular.conftest import ORDERS, Desk
from tests.tools.tabular.test_inert import ATTACKS
from tools.tabular import toolkit
from tools.tabular.arguments import Filter
from tools.tabular.export import replacing
from tools.tabular.inert import formula_free
from tools.tabular.results import ExportedRows


def export(desk: Desk, path: str, output: str, **options: Any) -> ExportedRows:
    """export_rows."""
    return toolkit.export_rows(desk.ctx(), path, output, **options)


def attacking(desk: Desk) -> str:
    """A table whose header and cells are attacks."""
    frame = pl.DataFrame({"=cmd()": list(ATTACKS), "<b>n</b>": [str(n) for n in range(len(ATTACKS))]})
    path = desk.folder / "attacks.csv"
    frame.write_csv(path, quote_style="always")
    return desk.declare(path)


def test_rows_by_filter_line_and_column(desk: Desk) -> None:
    """Chosen rows and columns, in the order of the file, each with the line it came from."""
    path = desk.declare(ORDERS)
    by_filter = export(desk, path, "swiss.csv", where=(Filter(column="country", op="eq", value="CH"),))
    assert 0 < by_filter.rows < 404
    by_line = export(desk, path, "lines.csv", lines=(28, 5), columns=("order_id", "amount"))
    assert (by_line.rows, by_line.columns) == (2, ("line", "order_id", "amount"))
    written = pl.read_csv(desk.out / "lines.csv", infer_schema=False)
    assert written.rows() == [("5", "B-20260002", "12,75"), ("28", "B-20260025", "-8,40")]
    assert export(desk, path, "all.csv").rows == 404


def test_csv_cells_are_text_and_no_formulas(desk: Desk) -> None:
    """Every cell comes back as its inert form, with a mark that spreadsheet programs read UTF-8 by."""
    export(desk, attacking(desk), "safe.csv")
    raw = (desk.out / "safe.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    written = pl.read_csv(raw, infer_schema=False)
    assert written.columns[1] == "'=cmd()"
    expected = [formula_free(text) for text in desk_texts(desk)]
    assert written[written.columns[1]].to_list() == expected


def desk_texts(desk: Desk) -> list[str]:
    """The cells of the attacking table as the toolkit reads them."""
    read = pl.read_csv(desk.folder / "attacks.csv", infer_schema=False)
    return read[read.columns[0]].to_list()


def test_sheet_cells_are_strings(desk: Desk) -> None:
    """An xlsx holds no formula, no link, no time of writing, and each text as it was made inert."""
    export(desk, attacking(desk), "safe.xlsx")
    with zipfile.ZipFile(desk.out / "safe.xlsx") as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
        assert "<f>" not in sheet
        assert "<hyperlink" not in sheet
        assert "2000-01-01T00:00:00Z" in archive.read("docProps/core.xml").decode()
        assert not [name for name in archive.namelist() if "sheet1.xml.rels" in name]
    frame = fastexcel.read_excel(desk.out / "safe.xlsx").load_sheet(0, dtypes="string").to_polars()
    assert frame.height == len(ATTACKS)
    assert frame.columns[1] == "'=cmd()"


@pytest.mark.parametrize("name", ["again.csv", "again.xlsx"])
def test_the_same_rows_are_the_same_bytes(desk: Desk, name: str) -> None:
    """A step that is run again after a crash leaves the very same file."""
    path = desk.declare(ORDERS)
    export(desk, path, name)
    first = (desk.out / name).read_bytes()
    export(desk, path, name)
    assert (desk.out / name).read_bytes() == first
    assert [file.name for file in desk.out.iterdir()] == [name]


@pytest.mark.parametrize(
    ("output", "options", "said"),
    [("x.txt", {}, ".csv or .xlsx"), ("x.csv", {"lines": (1, 9_999)}, "no row on line 1, 9999"),
     ("x.csv", {"columns": ("nope",)}, "no column 'nope'")],
)  # fmt: skip
def test_impossible_exports_are_refused(desk: Desk, output: str, options: dict[str, Any], said: str) -> None:
    """INVALID_ARGS, and no file."""
    with pytest.raises(ToolFailure) as failure:
        export(desk, desk.declare(ORDERS), output, **options)
    assert failure.value.code == "INVALID_ARGS"
    assert said in failure.value.message
    assert not list(desk.out.iterdir())


@pytest.mark.parametrize("output", ["../x.csv", "/tmp/x.csv", "a/../../x.csv"])
def test_exports_stay_in_the_output_folder(desk: Desk, output: str) -> None:
    """A path out of the folder is not permitted."""
    with pytest.raises(ToolFailure) as failure:
        export(desk, desk.declare(ORDERS), output)
    assert failure.value.code == "NOT_PERMITTED"


def test_an_input_is_never_overwritten(desk: Desk) -> None:
    """Not even when it lies in the output folder."""
    source = desk.out / "orders.csv"
    source.write_text("a,b\n1,2\n")
    with pytest.raises(ToolFailure) as failure:
        export(desk, desk.declare(source), "orders.csv")
    assert failure.value.code == "NOT_PERMITTED"


def test_a_draft_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """Replacing is all or nothing, and leaves no draft behind."""
    target = tmp_path / "report.md"
    target.write_text("old")
    with pytest.raises(TypeError), replacing(target) as draft:
        draft.write_bytes(b"half".join([None]))  # type: ignore[list-item]
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    """A folder that cannot be written is a failure that may pass, in plain words."""
    with pytest.raises(ToolFailure) as failure, replacing(tmp_path / "missing" / "x.csv") as draft:
        draft.write_text("x")
    assert failure.value.code == "UNAVAILABLE"
    assert "x.csv cannot be written" in failure.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("output", ["rows.csv", "rows.xlsx"])
def test_a_full_disk_is_told(desk: Desk, output: str) -> None:
    """No half-written export stays on a disk that is full, and the failure says so."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(desk.out)], check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        with pytest.raises(ToolFailure) as failure:
            export(desk, desk.file("a,b\n" + "".join(f"{n * 7919},{n}\n" for n in range(20_000))), output)
        assert failure.value.code == "UNAVAILABLE"
        assert "No space left" in failure.value.message
        assert not list(desk.out.iterdir())
    finally:
        subprocess.run(["umount", "--lazy", str(desk.out)], check=True)


def test_a_column_named_line_keeps_its_name(desk: Desk) -> None:
    """The line numbers then go by another."""
    result = export(desk, desk.file("line,x\na,1\n"), "out.csv")
    assert result.columns == ("source_line", "line", "x")
