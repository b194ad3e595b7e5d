"""Tests of aggregate and its filters: exact sums, periods, order, and refusals that say what to do."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plans.failure import ToolFailure
from tests.tools.tabular.conftest import ORDERS, Desk
from tools.tabular.arguments import Filter, Grouping, Measure, Operation, Sorting
from tools.tabular.cells import number

SHOP = (
    "id;status;amount;ordered;open\n"
    "1;paid;10,10;05.01.2026 10:00;yes\n2;paid;20,20;20.01.2026;no\n3;sent;0,05;03.02.2026;yes\n"
    "4;;5,00;28.04.2026;no\n5;sent;abc;29.12.2025;yes\n6;sent;;31.12.2025;no\n"
)


def measures(*said: str) -> tuple[Measure, ...]:
    """ "sum amount" as a measure."""
    parts = [one.split() for one in said]
    return tuple(Measure(op=op, column=column[0] if column else None) for op, *column in parts)  # type: ignore[arg-type]


def test_figures_per_group(desk: Desk) -> None:
    """Every operation, largest group first, missing groups as such, unreadable values told."""
    wanted = measures(
        "count",
        "count amount",
        "sum amount",
        "mean amount",
        "median amount",
        "min amount",
        "max ordered",
        "distinct id",
    )
    result = desk.aggregate(desk.file(SHOP), group_by=("status",), measures=wanted)
    assert result.columns[:4] == ("status", "count", "count_amount", "sum_amount")
    assert result.group_columns == ("status",)
    assert [list(row.values()) for row in result.rows] == [
        ["sent", 3, 2, 0.05, 0.05, 0.05, 0.05, "2026-02-03T00:00:00", 3],
        ["paid", 2, 2, 30.3, 15.15, 15.15, 10.1, "2026-01-20T00:00:00", 2],
        [None, 1, 1, 5, 5, 5, 5, "2026-04-28T00:00:00", 1],
    ]
    assert (result.groups, result.cut, result.rows_used, result.ignored) == (3, False, 6, {"amount": 1})
    assert any("amount" in text and "left out" in text for text in result.warnings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.decimals(-(10**11), 10**11, places=2), min_size=1, max_size=50))
def test_sums_of_money_are_exact(desk: Desk, amounts: list[Decimal]) -> None:
    """Ten cents three times are thirty cents, to the last digit, in whatever order."""
    text = "id,amount\n" + "".join(f"x,{amount}\n" for amount in amounts)
    result = desk.aggregate(desk.file(text, f"{abs(hash(text))}.csv"), measures=measures("sum amount"))
    assert Decimal(str(result.rows[0]["sum_amount"])) == sum(amounts)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(Decimal("12.50"), 12.5), (Decimal("3.00"), 3), (Decimal("12345678901234.55"), "12345678901234.55"),
     (Decimal(10**16 + 1), "10000000000000001"), (0.1, 0.1), (None, None), (5, 5), (Decimal("-0.00"), 0)],
)  # fmt: skip
def test_numbers_are_json_numbers_where_those_are_exact(value: Any, shown: Any) -> None:
    """Beyond 15 digits a JSON reader would round: such a number is text."""
    assert number(value) == shown
    assert type(number(value)) is type(shown)


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("day", ["2025-12-29", "2025-12-31", "2026-01-05", "2026-01-20", "2026-02-03", "2026-04-28"]),
        ("week", ["2025-12-29", "2026-01-05", "2026-01-19", "2026-02-02", "2026-04-27"]),
        ("month", ["2025-12", "2026-01", "2026-02", "2026-04"]), ("quarter", ["2025-Q4", "2026-Q1", "2026-Q2"]),
        ("year", ["2025", "2026"]),
    ],
)  # fmt: skip
def test_periods_come_in_order_of_time(desk: Desk, by: str, groups: list[str]) -> None:
    """Dates group by calendar periods; a week is named by its Monday."""
    result = desk.aggregate(desk.file(SHOP), group_by=(Grouping(column="ordered", by=by),))  # type: ignore[arg-type]
    assert [row[f"ordered_{by}"] for row in result.rows] == groups


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"column": "amount", "op": "gt", "value": 5}, "12"), ({"column": "amount", "op": "le", "value": "5.00"}, "34"),
        ({"column": "amount", "op": "missing"}, "6"), ({"column": "amount", "op": "present"}, "12345"),
        ({"column": "status", "op": "eq", "value": "paid"}, "12"),
        ({"column": "status", "op": "ne", "value": "paid"}, "3456"),
        ({"column": "status", "op": "in", "value": ["sent", "x"]}, "356"),
        ({"column": "status", "op": "not_in", "value": ["sent"]}, "12"),
        ({"column": "status", "op": "contains", "value": "ai"}, "12"),
        ({"column": "ordered", "op": "ge", "value": "2026-01-20"}, "234"),
        ({"column": "ordered", "op": "lt", "value": "2026-01-05T10:00:00"}, "56"),
        ({"column": "open", "op": "eq", "value": True}, "135"), ({"column": "open", "op": "eq", "value": "no"}, "246"),
        ({"column": "id", "op": "eq", "value": 3}, "3"),
    ],
)  # fmt: skip
def test_filters_compare_as_the_column_is(desk: Desk, where: dict[str, Any], ids: str) -> None:
    """Numbers as numbers, dates as dates, truth values by any of their names."""
    result = desk.aggregate(
        desk.file(SHOP), group_by=("id",), where=(Filter.model_validate(where),), sort=Sorting(by="id")
    )
    assert "".join(str(row["id"]) for row in result.rows) == ids


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"measures": ()}, "at least one measure"), ({"measures": measures("sum status")}, "text values"),
        ({"measures": measures("sum")}, "needs a column"), ({"measures": measures("count", "count")}, "two columns"),
        ({"group_by": (Grouping(column="status", by="month"),)}, "not dates"),
        ({"where": (Filter(column="amount", op="gt", value="much"),)}, "a number such as"),
        ({"where": (Filter(column="ordered", op="gt", value="soon"),)}, "a date such as"),
        ({"where": (Filter(column="open", op="eq", value="perhaps"),)}, "true or false"),
        ({"where": (Filter(column="status", op="in", value="paid"),)}, "a list"),
        ({"where": (Filter(column="status", op="eq"),)}, "one value"),
        ({"where": (Filter(column="status", op="missing", value=1),)}, "no value"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(desk: Desk, options: dict[str, Any], said: str) -> None:
    """INVALID_ARGS with what was expected instead."""
    with pytest.raises(ToolFailure, match=said) as failure:
        desk.aggregate(desk.file(SHOP), **options)
    assert failure.value.code == "INVALID_ARGS"


def test_groups_are_cut_and_counted(desk: Desk) -> None:
    """Beyond the limit groups are counted, not given."""
    result = desk.aggregate(desk.declare(ORDERS), group_by=("customer",), limit=3)
    assert (len(result.rows), result.groups, result.cut) == (3, 15, True)
    counts = [row["count"] for row in result.rows]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("op", ["sum", "mean", "median"])
def test_exponents_do_not_break_figures(desk: Desk, op: Operation) -> None:
    """Numbers with exponents are summed as doubles."""
    result = desk.aggregate(desk.file("id,x\na,1e3\nb,2.5e3\n"), measures=(Measure(op=op, column="x", name="y"),))
    assert result.rows[0]["y"] in (3500, 1750)


def test_the_summary_says_what_was_computed(desk: Desk) -> None:
    """One sentence, in either language."""
    path = desk.file(SHOP)
    options: dict[str, Any] = {"group_by": ("status",), "measures": measures("sum amount")}
    assert desk.aggregate(path, **options).summary == "sum of amount by status: 3 groups from 6 rows."
    assert desk.aggregate(path, language="zh", **options).summary == "按 status 统计 amount 合计：6 行，共 3 组。"
