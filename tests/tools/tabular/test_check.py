"""Tests of check_fields: what is missing or bad, on which lines, and when all is well."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.tabular.conftest import ORDERS, Desk

TABLE = (
    "id;amount;day;mail;flag;code\n1;1,50;01.02.2026;a@b.de;yes;01\n2;x;31.02.2026;a@b;no;02\n;2;;;maybe;03\n4;2,5;2026-02-03;"
    "c@d.org;yes;x\n"
)


@pytest.mark.parametrize(
    ("types", "column", "bad"),
    [
        ({"amount": "number"}, "amount", [(3, "x")]),
        ({"amount": "integer"}, "amount", [(2, "1,50"), (3, "x"), (5, "2,5")]),
        ({"day": "date"}, "day", [(3, "31.02.2026")]), ({"mail": "email"}, "mail", [(3, "a@b")]),
        ({"flag": "boolean"}, "flag", [(4, "maybe")]), ({"code": "integer"}, "code", [(5, "x")]),
        ({"id": "text"}, "id", []), ({"id": "number"}, "id", []),
    ],
)  # fmt: skip
def test_bad_values_are_counted_and_shown(
    desk: Desk, types: dict[str, Any], column: str, bad: list[tuple[int, str]]
) -> None:
    """A value that is not of the named type is told with its line in the file."""
    result = desk.check(desk.file(TABLE), types=types)
    (field,) = result.fields
    assert (field.column, field.type, field.inferred) == (column, types[column], False)
    assert [(place.line, place.value) for place in field.bad.first] == bad
    assert field.bad.count == result.bad_values == len(bad)
    assert result.ok == (not bad)


def test_missing_values_matter_where_they_are_required(desk: Desk) -> None:
    """The same empty cell is a fault in a required column and none in another."""
    path = desk.file(TABLE)
    required = desk.check(path, required=("id",))
    assert (required.ok, required.fields[0].missing.count) == (False, 1)
    assert required.fields[0].missing.first[0].line == 4
    assert desk.check(path, types={"id": "integer"}).ok


def test_without_wishes_every_column_is_checked_against_its_kind(desk: Desk) -> None:
    """What most values are decides; the demo file's two bad values are found."""
    result = desk.check(desk.declare(ORDERS))
    assert [(f.column, f.bad.count) for f in result.fields if f.bad.count] == [("amount", 1), ("ordered_at", 1)]
    assert (result.ok, result.ragged.count, len(result.fields)) == (False, 1, 11)
    assert result.summary == (
        "orders.csv: 404 rows and 11 columns checked: 1 value of amount is not of the type number, "
        "1 value of ordered_at is not of the type date and time, 1 ragged row."
    )


def test_a_sound_table_is_ok(desk: Desk) -> None:
    """No fault, no ragged row: `ok`."""
    result = desk.check(desk.file("a,b\n1,x\n2,y\n"))
    assert (result.ok, result.summary) == (True, "table.csv: 2 rows and 2 columns checked, all sound.")


def test_places_are_few(desk: Desk) -> None:
    """Of a thousand bad values ten are shown."""
    result = desk.check(desk.file("a,b\n" + "x,1\n" * 1_000), types={"a": "number"})
    assert (result.fields[0].bad.count, len(result.fields[0].bad.first)) == (1_000, 10)
