"""The repair call: one step, its failure and the tools go out; one step comes back, no less guarded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodes.models import Model
from nodes.planner import FinishedStep
from nodes.replanner import Broken, redraw_step, repair_prompt, with_replacement
from nodes.shortlist import Shortlist
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


LISTED = Shortlist(tuple(catalog()))


async def repair(model: Model, answer: Any, endpoint: ScriptedModel) -> Any:
    endpoint.answers(answer if not isinstance(answer, dict) else json.dumps(answer))
    return await redraw_step(model, Broken(PLAN, FAILURE, {}), catalog())


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
    prompt = repair_prompt(Broken(PLAN, FAILURE, {"limit": 3}, finished=finished), LISTED)
    for part in ('"tool":"gateway_status"', '"code":"UNAVAILABLE"', '"s1":{"id":"text"}', '"limit":"integer"'):
        assert part in prompt.task
    assert '<needed>["${s2.status}","${s2.at}"]</needed>' in prompt.task
    assert "FIRST" not in prompt.task
    assert "LAST" not in prompt.task


def test_faults_of_the_last_replacement_are_told() -> None:
    """A second try is told what was wrong with the first."""
    fault = Fault(code="INVALID_ARGS", step="s2", message="order_id is missing")
    prompt = repair_prompt(Broken(PLAN, FAILURE, {}, faults=[fault]), LISTED)
    assert "INVALID_ARGS: step s2: order_id is missing" in prompt.task


async def test_a_failed_child_is_repaired_through_its_parent(model: Model, endpoint: ScriptedModel) -> None:
    """The child s2[3] of a for_each step has no definition of its own."""
    endpoint.answers(json.dumps(REPLACEMENT))
    child = FAILURE.model_copy(update={"step_id": "s2[3]"})
    found = await redraw_step(model, Broken(PLAN, child, {}), catalog())
    assert found.step is not None
    assert found.step.id == "s2"


KEYED = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


def lookups(*, send: bool = False) -> list[Tool]:
    """More lookups than have room with their outlines; the last by the alphabet is `zeta`."""
    kit = Toolkit("many")
    for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta"):
        kit.add(lambda key: key, name=name, description=f"Looks in {name}.", effect="read", args_schema=KEYED)
    if send:
        kit.add(lambda: None, name="send", description="Sends.", effect="irreversible", args_schema={"type": "object"})
    return list(kit.tools.values())


def answering(tool: str, **args: Any) -> str:
    return json.dumps({"goal": "g", "steps": [{"id": "s2", "action": "tool", "tool": tool, "args": args}]})


async def test_a_tool_that_had_only_a_line_is_shown_when_it_is_wanted(model: Model, endpoint: ScriptedModel) -> None:
    """Its name with no arguments asks for its outline; the second answer is the replacement, and both are paid for."""
    endpoint.answers(answering("zeta"), answering("zeta", key="${s1.id}"))
    found = await redraw_step(model, Broken(PLAN, FAILURE, {}), lookups())
    assert found.step is not None
    assert (found.step.tool, found.step.args) == ("zeta", {"key": "${s1.id}"})
    assert ['"args":"{key: string}"' in endpoint.prompt(number) for number in (0, 1)] == [True, True]
    assert ['"name":"zeta"' in endpoint.prompt(number) for number in (0, 1)] == [False, True]
    held = [json.dumps(question["response_format"]) for question in endpoint.questions]
    assert ['"enum": ["zeta"]' in schema or '"zeta"' in schema for schema in held] == [True, True]
    assert "alpha" not in held[1]


async def test_a_lookup_is_never_replaced_by_what_changes_the_world(model: Model, endpoint: ScriptedModel) -> None:
    """It is not listed, and a model that writes it all the same gets a fault."""
    endpoint.answers(answering("send"))
    lookup = next(tool for tool in catalog())
    found = await redraw_step(model, Broken(PLAN, FAILURE, {}, own=lookup), lookups(send=True))
    assert (found.step, [fault.code for fault in found.faults]) == (None, ["NOT_PERMITTED"])
    assert "send" not in endpoint.prompt()


async def test_a_long_argument_is_kept_by_reference(model: Model, endpoint: ScriptedModel) -> None:
    """Its beginning goes out with a reference, and the reference that comes back becomes what stood there."""
    text = "dear customer, " * 100
    note = PLAN.step("s2").model_copy(update={"args": {"order_id": "A1", "text": text}})
    plan = PLAN.model_copy(update={"steps": (PLAN.steps[0], note, PLAN.steps[2])})
    endpoint.answers(answering("cached_status", order_id="A1", body="${kept.text}"))
    found = await redraw_step(model, Broken(plan, FAILURE, {}), catalog())
    assert found.step is not None
    assert found.step.args == {"order_id": "A1", "body": text}
    assert text not in endpoint.prompt()
    assert "${kept.text}" in endpoint.prompt()


def test_conditions_count_as_readers() -> None:
    """A field that only a condition reads is needed too."""
    asked = PLAN.steps[2].model_copy(update={"when": "s2.found", "args": {}})
    plan = PLAN.model_copy(update={"steps": (*PLAN.steps[:2], asked)})
    assert '<needed>["${s2.status}","s2.found"]' in repair_prompt(Broken(plan, FAILURE, {}), LISTED).task


def test_the_nearest_results_go_first_and_only_as_far_as_there_is_room() -> None:
    """Of a hundred steps before the failed one those near it are shown; that there were more is said."""
    steps: list[dict[str, Any]] = [{"id": "s0", "tool": "get_order", "args": {}}]
    steps += [{"id": f"s{n}", "tool": "get_order", "depends_on": [f"s{n - 1}"]} for n in range(1, 101)]
    plan = Plan.model_validate({"goal": "g", "steps": steps})
    shape = {f"a_field_{n}": "integer" for n in range(10)}
    finished = [FinishedStep(step, shape) for step in plan.steps[:100]]
    failure = Failure(code="NOT_FOUND", message="m", step_id="s100")
    task = repair_prompt(Broken(plan, failure, {}, finished=finished), LISTED).task
    assert '"s99":' in task
    assert '"s1":' not in task
    assert '"more":' in task
    assert len(task) < 4_000
