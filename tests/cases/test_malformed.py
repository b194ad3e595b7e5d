"""Raw model answers with a known right verdict: read, linted, judged."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from nodes.model_modes import MODES, Mode
from nodes.model_settings import ModelSettings
from nodes.models import Model
from nodes.planner import draft_plan
from plans.drafting import Reading
from plans.faults import errors_among
from plans.lint import lint_reading
from plans.reader import read_plan
from tests.cases.shared import lines, needs
from tests.nodes.model_server import ScriptedModel, completion
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


CASES = [pytest.param(case, id=case["id"]) for case in lines(FILE)]


def as_stated(case: dict[str, Any], reading: Reading) -> None:
    """Valid or not, repaired or not, and every code that must be named: as the case says."""
    codes = {fault.code for fault in errors_among(lint_reading(reading, shop.tools))}
    valid = reading.draft is not None and not codes
    assert any(
        expected["valid"] == valid
        and (not valid or expected["repaired"] == reading.repaired)
        and set(expected.get("codes", ())) <= codes
        for expected in case["expect"].get("either", [case["expect"]])
    ), (case["id"], valid, reading.repaired, codes)


@pytest.mark.parametrize("case", CASES)
def test_each_answer_gets_its_verdict(case: dict[str, Any]) -> None:
    """Read as a text, each gets the verdict that is right."""
    as_stated(case, read_plan(case["raw"], case["finish_reason"]))


@pytest.mark.parametrize("mode", MODES)
async def test_each_answer_gets_its_verdict_over_http(mode: Mode, endpoint: ScriptedModel) -> None:
    """Streamed by a real server, in each of the three modes, each gets the same verdict, at the price of one request
    whose tokens are counted."""
    async with Model(ModelSettings("m", endpoint.base_url, "k", structured_output=mode)) as model:
        for case in lines(FILE):
            raw, ending = case["raw"], case["finish_reason"]
            calls = [("answer", raw)] if mode == "tools" else []
            endpoint.answers(completion(None if calls else raw, calls=calls, finish_reason=ending))
            planned = await draft_plan(model, "g", {}, shop.tools.values())
            assert (planned.answer.text, planned.answer.mode, planned.answer.requests) == (raw, mode, 1)
            assert (planned.answer.prompt_tokens, planned.answer.completion_tokens) == (11, 7)
            as_stated(case, planned.reading)
    assert len(endpoint.questions) == 21
