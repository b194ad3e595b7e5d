"""Tests of workbooks and Parquet: cells as the sheet has them, sheets by name, and files that kill their reader."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from tests.tools.tabular.conftest import Desk
from tools.tabular.arguments import Measure, NegativeAmount, Reading

FILES = Path(__file__).parent / "files"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(sheets: dict[str, list[list[Any]]], first_row: int = 0) -> bytes:
    """An xlsx with these rows in each sheet."""
    target = io.BytesIO()
    with xlsxwriter.Workbook(target, {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for place, row in enumerate(rows, start=first_row):
                sheet.write_row(place, 0, row)
    return target.getvalue()


def sparse(cell: str) -> bytes:
    """A small xlsx whose only cells are A1 and this one."""
    row = "".join(filter(str.isdigit, cell))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f'<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/'
        f'vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{TYPES}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="r" Type="{RELATION}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
        f'xmlns:r="{RELATION}"><sheets><sheet name="S" sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'relationships"><Relationship Id="r" Type="{RELATION}/worksheet" Target="worksheets/s.xml"/></Relationships>',
        "xl/worksheets/s.xml": '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        f'<row r="1"><c r="A1"><v>1</v></c></row><row r="{row}"><c r="{cell}"><v>2</v></c></row></sheetData>'
        "</worksheet>",
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    return target.getvalue()


def test_cells_are_read_as_the_sheet_has_them(desk: Desk) -> None:
    """Texts stay texts, numbers and dates are such, rows are numbered as in the sheet."""
    rows: list[list[Any]] = [
        ["id", "amount", "day", "at", "paid"],
        ["007", 1.1, dt.datetime(2026, 1, 5), dt.datetime(2026, 1, 5, 10, 30), True],  # noqa: DTZ001 - a sheet has no zones
        ["008", 2, dt.datetime(2026, 1, 6), dt.datetime(2026, 1, 6, 11, 0), False],  # noqa: DTZ001
    ]
    path = desk.file(workbook({"Orders": rows}, first_row=4), "o.xlsx")
    result = desk.describe(path)
    assert (result.format, result.sheet, result.header_line, result.rows) == ("xlsx", "Orders", 5, 2)
    assert [c.type for c in result.columns] == ["text", "number", "date", "datetime", "boolean"]
    assert [(c.min, c.max) for c in result.columns][1:4] == [
        (1.1, 2), ("2026-01-05", "2026-01-06"), ("2026-01-05T10:30:00", "2026-01-06T11:00:00"),
    ]  # fmt: skip
    assert desk.check(path, required=("id",)).fields[0].missing.count == 0


def test_the_first_filled_sheet_is_taken_and_told(desk: Desk) -> None:
    """An empty cover sheet is passed over; the choice is an assumption; a named sheet is none."""
    path = desk.file(workbook({"Cover": [], "North": [["a", "b"], [1, 2]], "South": [["a", "b"], [3, 4]]}), "s.xlsx")
    result = desk.describe(path)
    assert (result.sheet, result.sheets) == ("North", ("Cover", "North", "South"))
    assert any("Cover, North, South" in text for text in result.assumptions)
    named = desk.describe(path, sheet="South")
    assert (named.columns[0].max, named.assumptions) == (3, ())


def test_an_unknown_sheet_names_the_nearest(desk: Desk) -> None:
    """INVALID_ARGS, and which sheets there are; a text file has none at all."""
    failure = desk.refusal(desk.file(workbook({"North": [["a"], [1]]}), "s.xlsx"), sheet="Norht")
    assert failure.code == "INVALID_ARGS"
    assert "did you mean 'North'?" in failure.message
    assert desk.refusal(desk.file("a,b\n1,2\n"), sheet="x").code == "INVALID_ARGS"


def test_an_empty_workbook_is_refused(desk: Desk) -> None:
    """No sheet holds anything."""
    assert "empty" in desk.refusal(desk.file(workbook({"S": []}), "e.xlsx")).message


@pytest.mark.parametrize("name", ["orders.csv", "orders.txt", "orders.xls"])
def test_the_name_of_a_workbook_does_not_matter(desk: Desk, name: str) -> None:
    """An xlsx that is called something else is an xlsx."""
    result = desk.describe(desk.file(workbook({"S": [["a", "b"], [1, 2]]}), name))
    assert (result.format, result.rows) == ("xlsx", 1)


def test_an_old_workbook_is_read(desk: Desk) -> None:
    """Excel 97 files are still sent around."""
    result = desk.describe(desk.declare(FILES / "orders.xls"))
    assert (result.format, result.rows) == ("xls", 3)
    assert [(c.name, c.type) for c in result.columns] == [
        ("order_id", "text"),
        ("amount", "number"),
        ("ordered_at", "date"),
    ]


def test_an_open_document_sheet_is_read(desk: Desk) -> None:
    """ODS too."""
    cells = [
        [("string", "id", ""), ("string", "amount", "")],
        [("string", "A1", ""), ("float", "2.5", ' office:value="2.5"')],
    ]
    rows = "".join(
        "<table:table-row>" + "".join(
            f'<table:table-cell office:value-type="{kind}"{value}><text:p>{text}</text:p></table:table-cell>'
            for kind, text, value in row
        ) + "</table:table-row>" for row in cells
    )  # fmt: skip
    spaces = " ".join(f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in ("office", "table", "text"))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml", f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet>'
            f'<table:table table:name="S">{rows}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        )  # fmt: skip
        archive.writestr("META-INF/manifest.xml", '<?xml version="1.0"?><manifest:manifest xmlns:manifest='
                         '"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>')  # fmt: skip
    result = desk.describe(desk.file(target.getvalue(), "o.ods"))
    assert (result.format, result.rows, result.columns[1].max) == ("ods", 1, 2.5)


def test_two_far_cells_do_not_kill_the_reader(desk: Desk) -> None:
    """A file of 2 kB for which the library asks for 549 GB and aborts is refused, and this process lives on."""
    assert desk.describe(desk.file(sparse("C5"), "near.xlsx")).rows == 1
    failure = desk.refusal(desk.file(sparse("XFD1048576"), "far.xlsx"))
    assert failure.code == "INVALID_INPUT"
    assert "memory" in failure.message


def test_a_text_option_for_a_workbook_is_refused(desk: Desk) -> None:
    """A workbook has no encoding."""
    failure = desk.refusal(desk.file(workbook({"S": [["a"], [1]]}), "s.xlsx"), reading=Reading(encoding="cp1252"))
    assert failure.code == "INVALID_ARGS"


def test_parquet_types_are_kept(desk: Desk, tmp_path: Path) -> None:
    """What the file states is not guessed again; nested values are shown as JSON; rows count from 1."""
    zone = dt.timezone(dt.timedelta(hours=2))
    frame = pl.DataFrame(
        {
            "id": [1, 2, 2], "amount": [Decimal("9.90"), Decimal("-1.25"), None], "rate": [0.1, float("nan"), 1e300],
            "day": [dt.date(2026, 1, 5), None, dt.date(2026, 1, 7)], "ok": [True, False, None],
            "at": [dt.datetime(2026, 1, 5, 10, tzinfo=zone), None, None], "tags": [["a", "b"], [], None],
            "who": [{"name": "x"}, {"name": None}, None], "raw": [b"\x00\xff", b"", None],
        }
    )  # fmt: skip
    frame.write_parquet(tmp_path / "p.parquet")
    path = desk.declare(tmp_path / "p.parquet")
    result = desk.describe(path)
    assert (result.format, result.rows) == ("parquet", 3)
    assert [c.type for c in result.columns] == [
        "integer", "number", "number", "date", "boolean", "datetime", "text", "text", "text",
    ]  # fmt: skip
    assert (result.columns[1].min, result.columns[1].max) == (-1.25, 9.9)
    assert result.columns[5].min == "2026-01-05T08:00:00Z"
    found = desk.find(path, [NegativeAmount(column="amount")])
    assert [(example.line, example.value) for example in found.examples] == [(2, "-1.25")]
    total = desk.aggregate(path, measures=(Measure(op="sum", column="amount"),))
    assert total.rows == ({"sum_amount": 8.65},)


def test_an_empty_parquet_is_a_table_without_rows(desk: Desk, tmp_path: Path) -> None:
    """Columns without rows are told; no columns at all is refused."""
    pl.DataFrame(schema={"a": pl.Int64}).write_parquet(tmp_path / "none.parquet")
    assert desk.describe(desk.declare(tmp_path / "none.parquet")).rows == 0
