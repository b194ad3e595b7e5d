"""The repair call: one step, its failure and the tools go out; one step comes back, no less guarded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodes.models import Model
from nodes.planner import FinishedStep
from nodes.replanner import redraw_step, repair_prompt, with_replacement
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import Plan
from tests.nodes.model_server import ScriptedModel, completion
from tools.registry import Toolkit
from tools.tool import Tool

PLAN = Plan.model_validate(
    {
        "goal": "refund status of A1",
        "steps": [
            {"id": "s1", "tool": "get_order", "args": {"order_id": "A1"}, "reason": "FIRST"},
            {
                "id": "s2",
                "tool": "gateway_status",
                "args": {"order_id": "${s1.id}"},
                "depends_on": ["s1"],
                "risk": "medium",
                "require_approval": True,
                "when": "s1.paid",
            },
            {
                "id": "s3",
                "tool": "note",
                "args": {"text": "${s2.status} at ${s2.at}"},
                "depends_on": ["s2"],
                "reason": "LAST",
            },
        ],
        "answer": "${s2.status}",
    }
)
FAILURE = Failure(code="UNAVAILABLE", message="the gateway is down", step_id="s2", tool="gateway_status")
REPLACEMENT: dict[str, Any] = {
    "goal": "g",
    "steps": [{"id": "s2", "tool": "cached_status", "args": {"order_id": "${s1.id}"}, "reason": "the cache knows"}],
}


def catalog() -> list[Tool]:
    kit = Toolkit("shop")

    @kit.tool(effect="read")
    def cached_status(order_id: str) -> dict[str, str]:
        """Status as last seen."""
        return {}

    return list(kit.tools.values())


async def repair(model: Model, answer: Any, endpoint: ScriptedModel) -> Any:
    endpoint.answers(answer if not isinstance(answer, dict) else json.dumps(answer))
    return await redraw_step(model, PLAN, FAILURE, {}, catalog())


async def test_a_replacement_keeps_the_id_and_every_guard(model: Model, endpoint: ScriptedModel) -> None:
    """The new step does what the model says, under the failed step's id, condition, order, risk and approval."""
    found = await repair(model, REPLACEMENT, endpoint)
    assert found.faults == ()
    assert found.step is not None
    assert (found.step.id, found.step.tool, found.step.args) == ("s2", "cached_status", {"order_id": "${s1.id}"})
    assert (found.step.risk, found.step.require_approval, found.step.when) == ("medium", True, "s1.paid")
    assert found.step.depends_on == ("s1",)
    assert found.answer.completion_tokens == 7


async def test_a_replacement_under_another_id_gets_the_failed_one_s(model: Model, endpoint: ScriptedModel) -> None:
    """What dependents refer to does not move."""
    other = {"goal": "g", "steps": [{**REPLACEMENT["steps"][0], "id": "s2_again", "risk": "high"}]}
    found = await repair(model, other, endpoint)
    assert (found.step.id, found.step.risk) == ("s2", "high")


async def test_the_rest_of_the_plan_stays_as_it_was(model: Model, endpoint: ScriptedModel) -> None:
    """After a repair all other steps, the goal and the answer are byte for byte the same."""
    found = await repair(model, REPLACEMENT, endpoint)
    repaired, before = with_replacement(PLAN, found.step), PLAN.draft
    assert [step.tool for step in repaired.steps] == ["get_order", "cached_status", "note"]
    for index in (0, 2):
        assert repaired.steps[index].model_dump_json() == before.steps[index].model_dump_json()
    assert (repaired.goal, repaired.answer) == (before.goal, before.answer)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"goal": "g", "steps": []}, "PLAN_EMPTY"),
        ({"goal": "g", "steps": [REPLACEMENT["steps"][0], {**REPLACEMENT["steps"][0], "id": "s9"}]}, "PLAN_AMBIGUOUS"),
        (completion(json.dumps(REPLACEMENT)[:60], finish_reason="length"), "PLAN_TRUNCATED"),
        (completion(None, refusal="no"), "PLAN_REFUSED"),
        ("it cannot be done", "PLAN_SYNTAX"),
    ],
)
async def test_anything_but_one_step_is_a_fault(model: Model, endpoint: ScriptedModel, answer: Any, code: str) -> None:
    """No step, several steps, a cut answer, a refusal and prose leave the plan alone and say why."""
    found = await repair(model, answer, endpoint)
    assert found.step is None
    assert code in {fault.code for fault in found.faults}
    assert found.answer.prompt_tokens == 11


def test_the_prompt_holds_the_failed_step_and_nothing_else_of_the_plan() -> None:
    """The model sees the step, its failure, what it may read and who reads it; not the other steps."""
    finished = [FinishedStep(PLAN.steps[0], {"id": "text of 2 characters"})]
    prompt = repair_prompt(PLAN, PLAN.step("s2"), FAILURE, {"limit": 3}, catalog(), finished=finished)
    for part in ('"tool":"gateway_status"', '"code":"UNAVAILABLE"', '"s1":{"id":"text of 2 characters"}', '"limit":3'):
        assert part in prompt.task
    assert '"s3":["${s2.status}","${s2.at}"]' in prompt.task
    assert '"answer":["${s2.status}"]' in prompt.task
    assert "FIRST" not in prompt.task
    assert "LAST" not in prompt.task


def test_faults_of_the_last_replacement_are_told() -> None:
    """A second try is told what was wrong with the first."""
    fault = Fault(code="INVALID_ARGS", step="s2", message="order_id is missing")
    prompt = repair_prompt(PLAN, PLAN.step("s2"), FAILURE, {}, catalog(), faults=[fault])
    assert "INVALID_ARGS: step s2: order_id is missing" in prompt.task


async def test_a_failed_child_is_repaired_through_its_parent(model: Model, endpoint: ScriptedModel) -> None:
    """The child s2[3] of a for_each step has no definition of its own."""
    endpoint.answers(json.dumps(REPLACEMENT))
    child = FAILURE.model_copy(update={"step_id": "s2[3]"})
    found = await redraw_step(model, PLAN, child, {}, catalog())
    assert found.step is not None
    assert found.step.id == "s2"
