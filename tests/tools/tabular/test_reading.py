"""Tests of reading delimited text: delimiter, preamble, header, quotes, ragged rows, each with its line."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.tabular.conftest import Desk
from tools.tabular.arguments import Reading
from tools.tabular.layout import DELIMITERS, LINE, delimiter_of, layout_of, unique_names

CELLS = st.text(alphabet="abcäz019 .'", min_size=1, max_size=8).filter(lambda text: text.strip() == text)
WIDTHS = st.integers(2, 6)


@given(st.data(), st.sampled_from(DELIMITERS))
def test_the_delimiter_is_found_whatever_stands_in_quotes(data: st.DataObject, delimiter: str) -> None:
    """A written table is recognised by its delimiter, also when cells hold delimiters and line ends."""
    width = data.draw(WIDTHS)
    cell = CELLS | st.sampled_from(["a,b", "c;d", "e|f", "g\nh"])
    rows = data.draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=4, max_size=8))
    target = io.StringIO()
    csv.writer(target, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    assert delimiter_of(target.getvalue().splitlines(keepends=True)) == delimiter


@given(st.lists(st.text(max_size=6), min_size=1, max_size=12))
def test_names_are_never_empty_and_never_the_same(cells: list[str]) -> None:
    """Whatever a header holds, every column has a name of its own, and none of them is the hidden line column."""
    names, notes = unique_names(cells, len(cells))
    assert len(set(names)) == len(names) == len(cells)
    assert all(names)
    assert LINE not in names
    assert len(notes) == sum(not name.strip() for name in cells) or notes


@pytest.mark.parametrize(
    ("text", "delimiter", "columns"),
    [
        ("a,b\n1,2\n", ",", 2), ("a;b;c\n1;2,5;3\n", ";", 3), ("a\tb\n1\t2\n", "\t", 2), ("a|b\n1|2\n", "|", 2),
        ("sep=;\na;b\n1;2\n", ";", 2), ('a, b\n1, "x, y"\n2, "z"\n', ",", 2), ("name;price\nx;1,50\ny;2,75\n", ";", 2),
        ("a,b\r1,2\r", ",", 2), ("a;b;\n1;2;\n", ";", 3), ("a;b;\n1;2\n3;4\n", ";", 2),
    ],
)  # fmt: skip
def test_delimiters_as_exports_have_them(desk: Desk, text: str, delimiter: str, columns: int) -> None:
    """Decimal commas do not make a comma the delimiter; Excel's `sep=` line is followed; old line ends are fine."""
    result = desk.describe(desk.file(text))
    assert (result.delimiter, len(result.columns)) == (delimiter, columns)


def test_lines_count_in_the_source_file(desk: Desk) -> None:
    """A row's line is where it starts, after quoted line ends, blank lines and a preamble."""
    text = 'Export\n\nid;note\n1;plain\n2;"two\nlines"\n\n3;last\n'
    table = desk.table(text)
    assert table.lines().to_list() == [4, 5, 8]
    assert table.source.header_line == 3
    assert table.texts("note").to_list() == ["plain", "two\nlines", "last"]


def test_ragged_rows_are_kept_and_told(desk: Desk) -> None:
    """Short rows are filled with nothing, long ones cut, and each is told with its line; none is dropped."""
    result = desk.describe(desk.file('a,b,c\n1,2\n1,2,3,4\n1,2,3\n1,2,3,\n"x\ny",2\n'))
    assert result.rows == 5
    assert result.ragged.count == 3
    assert [(one.line, one.fields, one.expected) for one in result.ragged.first] == [(2, 2, 3), (3, 4, 3), (6, 2, 3)]
    assert any("3 rows have too few or too many" in text for text in result.warnings)


def test_rows_without_any_value_are_counted(desk: Desk) -> None:
    """A spreadsheet's trail of ;;; is left out and said so."""
    result = desk.describe(desk.file("a;b\n1;2\n;\n ; \n3;4\n"))
    assert result.rows == 2
    assert any("2 rows without any value" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("text", "header", "names"),
    [
        ("Report\nGenerated;2026-01-01\n\nid;amount;date\n1;5;2026-01-01\n", 4, ["id", "amount", "date"]),
        ("Title;;\nid;amount;date\n1;5;2026-01-01\n", 2, ["id", "amount", "date"]),
        ("1,2026-01-01,5.5\n2,2026-01-02,6.5\n", 0, ["column_1", "column_2", "column_3"]),
        ("region;2024;2025\nN;1;2\nS;3;4\n", 1, ["region", "2024", "2025"]),
        ("a,a,,b\n1,2,3,4\n", 1, ["a", "a_2", "column_3", "b"]),
        ("a;b\n1;2;3\n4;5;6\n", 1, ["a", "b", "column_3"]),
        ("\ufeffid,x\n1,2\n", 1, ["id", "x"]),
    ],
)  # fmt: skip
def test_the_header_is_found(desk: Desk, text: str, header: int, names: list[str]) -> None:
    """Titles above it are skipped, a missing one is made up, doubled and empty names are told apart."""
    result = desk.describe(desk.file(text))
    assert result.header_line == header
    assert [column.name for column in result.columns] == names
    if header != 1:
        assert result.assumptions


def test_what_is_assumed_about_the_header_can_be_overruled(desk: Desk) -> None:
    """`header_line` names the header; 0 says there is none."""
    path = desk.file("1,2\n3,4\n")
    assert desk.describe(path, reading=Reading(header_line=0)).rows == 2
    named = desk.describe(path, reading=Reading(header_line=1))
    assert (named.rows, [column.name for column in named.columns]) == (1, ["1", "2"])


@given(st.lists(st.lists(CELLS | st.just(""), min_size=1, max_size=5), min_size=1, max_size=10))
def test_any_records_have_a_layout(rows: list[list[str]]) -> None:
    """Finding the header of whatever comes never fails, and names as many columns as most rows have at least."""
    layout = layout_of([(line, cells) for line, cells in enumerate(rows, start=1)])
    assert len(set(layout.names)) == len(layout.names)
    assert layout.first_row <= len(rows)


def test_quotes_as_people_write_them(desk: Desk) -> None:
    """Inches and doubled quotes are text; nothing is lost."""
    table = desk.table('a,b\n5" screen,1\n"7"" tab",2\n')
    assert table.texts("a").to_list() == ['5" screen', '7" tab']


def test_an_unclosed_quote_is_refused_with_its_line(desk: Desk) -> None:
    """A quote that swallows the rest of the file is no cell; reading without quotes is offered, and works."""
    path = desk.file('a,b\n1,x\n1,"x\n2,y\n3,z\n')
    failure = desk.refusal(path)
    assert failure.code == "INVALID_INPUT"
    assert "line 3" in failure.message
    assert desk.describe(path, reading=Reading(quoted=False)).rows == 4


def test_an_endless_cell_is_refused_with_its_line(desk: Desk) -> None:
    """A cell beyond the limit names the line on which it begins."""
    failure = desk.refusal(desk.file("a,b\n1,2\n" + "x" * 200_000 + ",1\n"))
    assert "line 3" in failure.message
    assert "131,072" in failure.message


def test_a_last_line_without_an_end_counts(desk: Desk) -> None:
    """Half of all exports end without a line end."""
    assert desk.describe(desk.file("a,b\n1,2\n3,4")).rows == 2


def test_zero_characters_do_not_reach_results(desk: Desk) -> None:
    """PostgreSQL cannot store them; the fixture checks every result."""
    rows = "x,1\n" * 3000
    result = desk.describe(desk.file("a,b\ny\x00z,2\n" + rows, encoding="utf-16"))
    assert "yz" in result.columns[0].examples


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "2"], "integer"), (["1.5", "2"], "number"), (["2026-01-01"], "date"),
        (["2026-01-01 10:00"], "datetime"), (["2026-01-01 00:00:00", "2026-01-02 00:00:00"], "date"),
        (["yes", "no", "Yes"], "boolean"), (["a", "1"], "text"), (["01234", "99999"], "text"),
        (["1234567890123456"], "text"), ([""], "empty"), (["NA", "-", "7"], "integer"),
        (["1", "2", "3", "4", "x"], "integer"), (["1", "x", "y"], "text"), (["是", "否"], "boolean"),
        (["2024年1月5日"], "date"),
    ],
)  # fmt: skip
def test_kinds_of_columns(desk: Desk, texts: list[str], kind: str) -> None:
    """Four of five values decide; codes stay text; NA is missing among numbers."""
    result = desk.describe(desk.file("id;value\n" + "".join(f"r;{text}\n" for text in texts)))
    assert result.columns[1].type == kind


def test_na_is_namibia_among_texts(desk: Desk) -> None:
    """What says "missing" among numbers is a value among texts."""
    result = desk.describe(desk.file("country,amount\nNA,1\nDE,NA\nFR,N/A\n,3\n"))
    assert [column.missing for column in result.columns] == [1, 2]


def test_eight_digits_are_dates_where_the_name_says_so(desk: Desk) -> None:
    """order_date holds dates, an id of eight digits does not."""
    result = desk.describe(desk.file("order_date,n\n20260101,20260101\n20260215,20260102\n"))
    assert [column.type for column in result.columns] == ["date", "integer"]
    assert result.columns[0].max == "2026-02-15"


@pytest.mark.parametrize(
    ("text", "said", "smallest"),
    [
        ("d,x\n01/02/2024,1\n03/04/2024,2\n", "month before day was assumed", "2024-01-02"),
        ("d;x\n01/02/2024;1,5\n03/04/2024;2,5\n", "day before month was assumed", "2024-02-01"),
        ("d,e\n01/02/2024,13/02/2024\n03/04/2024,05/03/2024\n", "as in the file's other columns", "2024-02-01"),
    ],
)
def test_ambiguous_dates_are_never_guessed_silently(desk: Desk, text: str, said: str, smallest: str) -> None:
    """An order that no value proves is assumed, and the assumption is told with the value it is about."""
    result = desk.describe(desk.file(text))
    assert any(said in one and "01/02/2024" in one for one in result.assumptions)
    assert result.columns[0].min == smallest


def test_proven_orders_are_not_assumptions(desk: Desk) -> None:
    """A 13th day proves the order for its column."""
    result = desk.describe(desk.file("d,x\n01/02/2024,1\n13/04/2024,2\n"))
    assert (result.assumptions, result.columns[0].min) == ((), "2024-02-01")


def test_both_orders_in_one_column_are_told(desk: Desk) -> None:
    """The minority is bad, and a warning says how many dates are written which way."""
    result = desk.describe(desk.file("id,d\n" + "1,13/02/2024\n" * 3 + "2,02/14/2024\n"))
    assert result.columns[1].bad == 1
    assert any("3 dates have the day first and 1 the month" in text for text in result.warnings)


def test_the_order_can_be_said(desk: Desk) -> None:
    """`date_order` overrules all proof and is no assumption."""
    result = desk.describe(desk.file("d,x\n01/02/2024,1\n"), reading=Reading(date_order="dmy"))
    assert (result.columns[0].min, result.assumptions) == ("2024-02-01", ())


@pytest.mark.parametrize(
    ("text", "options", "largest", "said"),
    [
        ("id;w\n1;1.234\n2;2.345\n", {}, 2.345, "can be read two ways"),
        ("id;w;p\n1;1.234;5,50\n2;2.345;6,75\n", {}, 2345, "as in the file's other columns"),
        ("id;w\n1;1.234\n", {"decimal": ","}, 1234, None), ("id;w\n1;1.234,5\n2;1.000\n", {}, 1234.5, None),
    ],
)  # fmt: skip
def test_decimal_marks(desk: Desk, text: str, options: dict[str, str], largest: float, said: str | None) -> None:
    """A column's own proof decides, then the file's, then a stated assumption; the caller overrules all."""
    result = desk.describe(desk.file(text), reading=Reading.model_validate(options))
    assert result.columns[1].max == largest
    assert any(said in one for one in result.assumptions) if said else result.assumptions == ()


def test_times_with_and_without_a_zone_are_told(desk: Desk) -> None:
    """Zoned times become UTC, which is no assumption; that others were taken as UTC is one."""
    assert desk.describe(desk.file("id,at\n1,2024-01-01T10:00:00+02:00\n", "z.csv")).assumptions == ()
    result = desk.describe(desk.file("id,at\n1,2024-01-01T10:00:00+02:00\n2,2024-01-01 09:30:00\n"))
    assert (result.columns[1].min, result.columns[1].max) == ("2024-01-01T08:00:00Z", "2024-01-01T09:30:00Z")
    assert any("UTC" in one for one in result.assumptions)
