"""Raw model answers with a known right verdict: read, linted, judged."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from plans.faults import errors_among
from plans.lint import lint_reading
from plans.reader import read_plan
from tests.cases.shared import lines, needs
from tools.registry import Toolkit

FILE = "malformed/answers.jsonl"
pytestmark = needs(FILE)

shop = Toolkit("shop")


@shop.tool(effect="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look one order up."""
    return {"id": order_id}


@shop.tool(effect="read")
def list_orders(status: str, limit: Annotated[int, Field(le=100)] = 10) -> list[dict[str, Any]]:
    """List orders of a status."""
    return [{"status": status}] * limit


@shop.tool(effect="irreversible", risk="high")
def send_reply(order_id: str, body: str) -> None:
    """Write to the customer."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines(FILE)])
def test_each_answer_gets_its_verdict(case: dict[str, Any]) -> None:
    """Valid or not, repaired or not, and every code that must be named: as the case says."""
    reading = read_plan(case["raw"], case["finish_reason"])
    codes = {fault.code for fault in errors_among(lint_reading(reading, shop.tools))}
    valid = reading.draft is not None and not codes
    assert any(
        expected["valid"] == valid
        and (not valid or expected["repaired"] == reading.repaired)
        and set(expected.get("codes", ())) <= codes
        for expected in case["expect"].get("either", [case["expect"]])
    ), (valid, reading.repaired, codes)
