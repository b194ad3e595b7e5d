"""What the shipped templates' references find in the tools' real results, in both languages and at the edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nodes.templates import load_templates, match
from plans.expressions import holds
from plans.plan import PlanDraft
from plans.references import UnresolvedReference, resolve
from tools.orders.models import DelayExplanation, Order, OrderList, RefundStatus, ReturnList, Text
from tools.tabular.results import Anomalies, TableDescription

TEMPLATES = load_templates()
FILE = {"orders": Path("/data/orders.csv")}


def plan_for(goal: str) -> PlanDraft:
    found = match(goal, FILE, TEMPLATES)
    assert found is not None
    return found.draft


def answer(goal: str, **results: Any) -> str:
    text = resolve(plan_for(goal).answer, results.__getitem__)
    assert isinstance(text, str)
    return text


def table(*columns: tuple[str, str, int]) -> Any:
    shown: list[dict[str, Any]] = [
        {
            "name": name,
            "type": kind,
            "distinct": distinct,
            "missing": 0,
            "bad": 0,
            "min": None,
            "max": None,
            "examples": [],
        }
        for name, kind, distinct in columns
    ]
    described: dict[str, Any] = {
        "summary": "t.csv has 9 rows.", "file": "t.csv", "format": "csv", "encoding": "utf-8", "delimiter": ",",
        "sheet": None, "sheets": [], "header_line": 1, "rows": 9, "columns": shown, "ragged": {}, "assumptions": [],
        "warnings": [],
    }  # fmt: skip
    return TableDescription.model_validate(described).model_dump(mode="json")


def anomalies(*details: str) -> Any:
    examples: list[dict[str, Any]] = [
        {"line": line, "rule": "missing", "column": "c", "value": None, "detail": detail, "row": {}}
        for line, detail in enumerate(details, 2)
    ]
    found = {
        "summary": "s", "file": "t.csv", "rows": 9, "anomalous_rows": len(details), "counts": {}, "rules": [],
        "examples": examples, "examples_cut": False, "rows_file": None, "assumptions": [], "warnings": [],
    }  # fmt: skip
    return Anomalies.model_validate(found).model_dump(mode="json")


@pytest.mark.parametrize(
    ("columns", "groupings"),
    [
        ([("id", "text", 9), ("status", "text", 3), ("paid", "boolean", 2), ("at", "date", 9), ("n", "number", 2)],
         [{"column": "at", "by": "month"}, {"column": "id"}, {"column": "status"}]),
        ([("at", "datetime", 9), ("then", "date", 9), ("id", "text", 900), ("one", "text", 1)],
         [{"column": "at", "by": "month"}]),
        ([("paid", "boolean", 2), ("n", "number", 5)], [{"column": "paid"}]),
        ([("n", "number", 5)], []),
        ([], []),
    ],
)  # fmt: skip
def test_the_columns_worth_counting_are_found(columns: list[tuple[str, str, int]], groupings: list[Any]) -> None:
    """The first date by month and two columns with few values, whatever a table holds; none is no failure."""
    counting = next(step for step in plan_for("find anomalous orders").steps if step.for_each)
    assert resolve(counting.for_each, {"s1": table(*columns)}.__getitem__) == groupings


def test_anomalies_are_summed_up_with_the_first_of_them() -> None:
    """The report's sentence, then at most five rows by line; without any, the sentence alone."""
    summary = {"summary": "9 rows, 2 anomalous.", "report_md": "m", "report_html": "h"}
    two = anomalies("amount is -5, below zero", "date is missing")
    assert answer("find anomalous orders", s3=two, s5=summary) == (
        "9 rows, 2 anomalous.\n- line 2: amount is -5, below zero\n- line 3: date is missing"
    )
    assert answer("找出异常订单", s3=two, s5=summary).splitlines()[1] == "- 第 2 行：amount is -5, below zero"
    assert answer("find anomalous orders", s3=anomalies(), s5=summary) == "9 rows, 2 anomalous."
    assert len(answer("find anomalous orders", s3=anomalies(*"abcdefg"), s5=summary).splitlines()) == 6


def test_a_description_lists_the_columns() -> None:
    """Names and types; a table without columns is described too."""
    described = table(("id", "text", 9), ("n", "number", 5))
    assert answer("describe this file", s1=described) == "t.csv has 9 rows.\nColumns: id (text), n (number)."
    assert answer("描述一下这个文件", s1=described) == "t.csv has 9 rows.\n列：id（text），n（number）。"
    assert answer("describe this file", s1=table()) == "t.csv has 9 rows.\nColumns: ."


def test_late_orders_are_listed_or_said_to_be_none() -> None:
    """One line per order."""
    order = {
        "order_id": "A1234", "status": "shipped", "customer_name": "Hannah Becker", "country": "DE",
        "placed_at": "2026-03-01T10:00:00Z", "promised_on": "2026-03-05", "late": True, "days_late": 2,
        "total": "12.50", "currency": "EUR",
    }  # fmt: skip
    one = OrderList.model_validate({"orders": [order], "matches": 1}).model_dump(mode="json")
    assert answer("which orders are late", s1=one) == (
        "Late orders: 1.\nA1234 to Hannah Becker - promised 2026-03-05 - 2 days late"
    )
    assert answer("列出所有延误的订单", s1=one) == "延误订单：1 个。\nA1234，Hannah Becker，承诺 2026-03-05，延误 2 天"
    assert answer("which orders are late", s1={"orders": [], "matches": 0}) == "Late orders: 0.\n"


@pytest.mark.parametrize(
    ("goal", "result"),
    [
        ("refund status of order A1201", RefundStatus),
        ("unrefunded returns", ReturnList),
        ("why is order A1234 late", DelayExplanation),
    ],
)
def test_what_a_tool_says_in_words_is_the_answer(goal: str, result: type[BaseModel]) -> None:
    """Tools that word their result in both languages are quoted, in the goal's."""
    assert plan_for(goal).answer == "${s1.text.en}"
    assert set(Text.model_fields) == {"en", "zh"}
    assert result.model_fields["text"].annotation is Text


@pytest.mark.parametrize(("refundable", "goes_on"), [("12.50", True), ("0.00", False), ("1250", True), ("0", False)])
def test_a_refund_is_made_only_where_something_is_left(refundable: str, goes_on: bool) -> None:
    """The step that pays is skipped when the order has been refunded in full."""
    assert "refundable" in Order.model_fields
    assert Order.model_json_schema(mode="serialization")["properties"]["refundable"]["type"] == "string"
    pay = plan_for("Refund order A1201").steps[1]
    assert pay.when is not None
    assert holds(pay.when, {"s1": {"refundable": refundable}}) is goes_on


def test_a_reply_that_was_not_sent_is_not_told_of() -> None:
    """Where the sending step has no result, the sentence about it cannot be made, and no other is affected."""
    told = plan_for("Why is order A1234 late, tell the customer").answer or ""
    reason, sent = told.split("\n")
    results = {"s1": {"text": {"en": "It is 2 days late.", "zh": "延误 2 天。"}}}
    assert resolve(reason, results.__getitem__) == "It is 2 days late."
    with pytest.raises(UnresolvedReference):
        resolve(sent, results.__getitem__)
