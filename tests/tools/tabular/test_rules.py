"""Tests of the rules of find_anomalies, given and inferred: what breaks each, on which line, and why it was applied."""

from __future__ import annotations

import random
import runpy

import polars as pl
import pytest

from plans.failure import ToolFailure
from tests.tools.tabular.conftest import ORDERS, Desk
from tools.registry import Registry
from tools.tabular import tabular
from tools.tabular.arguments import (
    AllowedValues,
    BadValues,
    DuplicateIds,
    Missing,
    NegativeAmount,
    Rule,
    TimeOrder,
)  # fmt: skip
from tools.tabular.names import is_amount, is_id, is_list, stage
from tools.tabular.results import Anomalies
from tools.tabular.words_en import WORDS

SHOP = (
    "id,amount,status,ordered,shipped,mail\n"
    "1,5.00,paid,2026-01-01 10:00,2026-01-02 09:00,a@b.de\n"
    "2,-3.50,paid,2026-01-03 10:00,2026-01-02 09:00,a@b\n"
    "2,abc,PAID,31.02.2026,2026-01-04 09:00,\n"
    ",7.00,,2026-01-05 10:00,2026-01-05 10:00,c@d.org\n"
)


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        (NegativeAmount(column="amount"), [3]), (TimeOrder(earlier="ordered", later="shipped"), [3]),
        (DuplicateIds(column="id"), [4]), (AllowedValues(column="status", values=("paid",)), [4]),
        (Missing(column="id"), [5]), (Missing(column="status"), [5]), (BadValues(column="amount", type="number"), [4]),
        (BadValues(column="ordered", type="date"), [4]), (BadValues(column="mail", type="email"), [3]),
        (BadValues(column="id", type="integer"), []), (NegativeAmount(column="id"), []),
    ],
)  # fmt: skip
def test_each_rule_finds_its_rows(desk: Desk, rule: Rule, lines: list[int]) -> None:
    """A rule finds exactly the rows that break it, told with the line, the cell and a sentence."""
    result = desk.find(desk.file(SHOP), [rule])
    assert [example.line for example in result.examples] == lines
    assert result.counts[rule.rule] == result.anomalous_rows == len(lines)
    assert all(example.detail and "{" not in example.detail for example in result.examples)


def test_a_date_without_a_time_is_compared_by_days(desk: Desk) -> None:
    """Shipped "on the 5th" is not before ordered "at 10 on the 5th"."""
    text = "ordered,shipped\n2026-01-05 10:00,2026-01-05\n2026-01-05 10:00,2026-01-04\n"
    result = desk.find(desk.file(text), [TimeOrder(earlier="ordered", later="shipped")])
    assert [example.line for example in result.examples] == [3]


def test_times_in_zones_are_compared_as_instants(desk: Desk) -> None:
    """09:00 in New York is after 10:00 in Berlin."""
    berlin, new_york, utc = "2026-01-05T10:00:00+01:00", "2026-01-05T09:00:00-05:00", "2026-01-05T08:59:00Z"
    text = f"a_at,b_at\n{berlin},{new_york}\n{berlin},{utc}\n"
    result = desk.find(desk.file(text), [TimeOrder(earlier="a_at", later="b_at")])
    assert [example.line for example in result.examples] == [3]


def test_a_row_that_breaks_two_rules_counts_once(desk: Desk) -> None:
    """`anomalous_rows` counts rows, `counts` and `found` count what was broken."""
    rules: list[Rule] = [NegativeAmount(column="amount"), TimeOrder(earlier="ordered", later="shipped")]
    result = desk.find(desk.file(SHOP), rules)
    assert result.anomalous_rows == 1
    assert result.counts == {"negative_amount": 1, "time_order": 1, "ragged": 0}


def test_ragged_rows_are_always_found(desk: Desk) -> None:
    """Even when other rules are asked for."""
    result = desk.find(desk.file("a,b\n1,2\n1\n1,2,3\n"), [Missing(column="a")])
    assert result.counts == {"missing": 0, "ragged": 2}
    assert [(example.line, example.rule) for example in result.examples] == [(3, "ragged"), (4, "ragged")]


def test_examples_are_few_and_of_every_rule(desk: Desk) -> None:
    """A rule with thousands of rows does not crowd out the others; that examples were cut is said."""
    text = "id,amount\n" + "".join(f"{n},-1\n" for n in range(3_000)) + "0,5\n"
    result = desk.find(desk.file(text), [NegativeAmount(column="amount"), DuplicateIds(column="id")])
    assert result.counts["negative_amount"] == 3_000
    assert len(result.examples) == 20
    assert {example.rule for example in result.examples} == {"negative_amount", "duplicate_ids"}
    assert result.examples_cut
    assert result.examples[-1].detail == "id 0 stands in line 2 already"


def test_cells_of_examples_are_cut(desk: Desk) -> None:
    """A cell of 50,000 characters does not travel through plans and journals."""
    result = desk.find(desk.file("note,amount\n" + "x" * 50_000 + ",-1\n"), [NegativeAmount(column="amount")])
    assert len(result.examples[0].row["note"] or "") == 200


def test_the_demo_export_holds_what_was_sown(desk: Desk) -> None:
    """Inferred rules find every fault of the demo file and nothing else."""
    maker = runpy.run_path(str(ORDERS.with_name("make_orders.py")))
    assert ORDERS.read_bytes() == maker["text"]().encode("latin-1")
    result = desk.find(desk.declare(ORDERS))
    assert result.counts == maker["FAULTS"]
    assert result.anomalous_rows == sum(maker["FAULTS"].values())
    assert result.summary == (
        "404 rows in orders.csv, 27 of them anomalous: 7 negative amounts, 5 with time running backwards, "
        "4 duplicate ids, 3 values outside the list, 2 outliers, 3 with missing values, 2 bad values, 1 ragged row."
    )
    assert all(rule.inferred and rule.why for rule in result.rules if rule.rule != "ragged")


def seeded(seed: int) -> random.Random:
    """The same numbers every time."""
    return random.Random(seed)  # noqa: S311 - rows of a test


def shop_rows(rng: random.Random, rows: int = 120) -> list[list[str]]:
    """Sound orders: id, amount, status, ordered, paid, shipped."""
    return [
        [f"A{n:04}", f"{rng.lognormvariate(4, 0.5):.2f}", rng.choice(("x", "y")), f"2026-01-{n % 28 + 1:02}",
         f"2026-02-{n % 28 + 1:02}", f"2026-03-{n % 28 + 1:02}"]
        for n in range(rows)
    ]  # fmt: skip


def found(desk: Desk, header: str, rows: list[list[str]]) -> Anomalies:
    """The anomalies by inferred rules."""
    return desk.find(desk.file(header + "\n" + "".join(",".join(row) + "\n" for row in rows)))


@pytest.mark.parametrize(
    "header",
    ["order_id,amount,status,ordered_at,paid_at,shipped_at", "订单编号,金额,状态,下单时间,付款时间,发货时间",
     "Bestell Nr,Betrag,Zustand,Bestellt am,Bezahlt am,Versandt am"],
)  # fmt: skip
def test_rules_are_inferred_from_headers_of_three_languages(desk: Desk, header: str) -> None:
    """English, Chinese and German names lead to the same rules, and each rule says why it is there."""
    rows = shop_rows(seeded(1))
    rows[5][1], rows[6][0], rows[7][5], rows[8][2], rows[9][1] = "-9.00", rows[5][0], "2026-01-01", "q", "999999.00"
    rows[10][3] = ""
    result = found(desk, header, rows)
    assert {rule: count for rule, count in result.counts.items() if count} == {
        "negative_amount": 1, "time_order": 1, "duplicate_ids": 1, "allowed_values": 1, "outliers": 1, "missing": 1,
    }  # fmt: skip
    names = header.split(",")
    orders = [rule.columns for rule in result.rules if rule.rule == "time_order"]
    assert orders == [(names[3], names[4]), (names[4], names[5])]


def test_sound_rows_have_no_anomalies(desk: Desk) -> None:
    """Inferred rules do not cry wolf."""
    result = found(desk, "order_id,amount,status,ordered_at,paid_at,shipped_at", shop_rows(seeded(2)))
    assert result.summary == "120 rows in table.csv, none of them anomalous."


def test_order_lines_do_not_count_as_duplicates(desk: Desk) -> None:
    """An id that repeats by nature gets no rule: several lines of one order are no fault."""
    rows = shop_rows(seeded(3))
    for place, row in enumerate(rows):
        row[0] = f"A{place // 3}"
    assert "duplicate_ids" not in found(desk, "order_id,amount,status,a,b,c", rows).counts


def test_columns_that_may_be_negative_get_no_rule(desk: Desk) -> None:
    """Refunds and balances go both ways, and so does an amount of which a third is negative."""
    rows = [[str(n), str(-n), str(n if n % 3 else -n)] for n in range(1, 60)]
    result = found(desk, "n,balance,amount", rows)
    assert "negative_amount" not in result.counts


def test_many_rare_values_are_no_list(desk: Desk) -> None:
    """A column of countries with a long tail is not judged by what is frequent in it."""
    rng = seeded(4)
    rows = [[str(n), rng.choice(("DE", "FR")) if n % 5 else f"C{n}"] for n in range(200)]
    assert "allowed_values" not in found(desk, "n,country", rows).counts


def test_optional_columns_may_be_empty(desk: Desk) -> None:
    """A column that is empty in half of the rows is optional."""
    rows = [[f"A{n}", "x" if n % 2 else "", str(n)] for n in range(60)]
    result = found(desk, "order_id,note,amount", rows)
    assert all(rule.columns != ("note",) for rule in result.rules)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("amount", (True, False, False, None)), ("refund_amount", (False, False, False, 7)),
        ("totalPrice", (True, False, False, None)), ("taxId", (False, True, False, None)),
        ("orderStatus", (False, False, True, 0)), ("expected_delivery", (False, False, False, None)),
        ("deliveredAt", (False, False, False, 5)), ("退款金额", (False, False, False, 7)),
        ("订单编号", (False, True, False, None)),
        ("updated_at", (False, False, False, None)), ("Ship Date", (False, False, False, 4)),
        ("paid", (True, False, False, 2)),
    ],
)  # fmt: skip
def test_what_names_say(name: str, expected: tuple[bool, bool, bool, int | None]) -> None:
    """Names are read word by word, in camel case too; plans and promises are no events."""
    assert (is_amount(name), is_id(name), is_list(name), stage(name)) == expected


def test_an_unknown_rule_is_refused_by_the_declared_arguments() -> None:
    """A plan with a misspelt rule fails before it runs, and hears which rules there are."""
    tool = Registry.of(tabular)["find_anomalies"]
    ((path, said),) = tool.check_args({"path": "x", "rules": [{"rule": "outlier", "column": "a"}]})
    assert path == "rules[0]"
    assert "'outliers'" in said


def test_every_rule_has_its_words() -> None:
    """Label, count and detail of each rule are in the words."""
    rules = (
        "negative_amount",
        "time_order",
        "duplicate_ids",
        "allowed_values",
        "outliers",
        "missing",
        "bad_values",
        "ragged",
    )
    for rule in rules:
        assert {f"rule_{rule}", f"count_{rule}", f"detail_{rule}"} <= WORDS.keys()


def test_all_anomalous_rows_can_be_written(desk: Desk) -> None:
    """`output` holds every anomalous row with its line and what is wrong, in the order of the file."""
    result = desk.find(desk.declare(ORDERS), output="anomalies.csv")
    assert result.rows_file == "anomalies.csv"
    written = pl.read_csv(desk.out / "anomalies.csv", infer_schema=False)
    assert written.height == result.anomalous_rows == 27
    assert written.columns[:3] == ["line", "problems", "order_id"]
    lines = written["line"].cast(pl.Int64).to_list()
    assert lines == sorted(lines)
    problems = dict(zip(lines, written["problems"], strict=True))
    assert problems[28] == "negative amount: amount"
    assert problems[66] == "ragged row"


def test_a_wrong_ending_is_refused_before_the_work(desk: Desk) -> None:
    """Nobody waits for a minute to hear that .txt is no export."""
    with pytest.raises(ToolFailure, match=r"\.csv or \.xlsx") as failure:
        desk.find(desk.declare(ORDERS), output="rows.txt")
    assert failure.value.code == "INVALID_ARGS"
    assert desk.told == []
