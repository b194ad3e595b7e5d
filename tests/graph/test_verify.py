"""Whether a plan still holds is asked where it is marked, after judgements about money and before effects."""

from __future__ import annotations

import json
from typing import Any

from graph.gateway import Agent
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import Question, ScriptedModel

PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.price}"})
MARKED = {**PRICE, "verify_after": True}
SEND = step("s3", "send", args={"to": "ann", "text": "costs ${s1.price}"})


def said(holds: bool, reason: str = "because") -> str:  # the answer's own field
    """A verifier's answer."""
    return json.dumps({"holds": holds, "reason": reason})


def is_check(question: Question) -> bool:
    """Whether the verifier is asked."""
    return "You check a plan" in question["messages"][0]["content"]


def checks(endpoint: ScriptedModel) -> int:
    """How often the verifier was asked."""
    return sum(map(is_check, endpoint.questions))


async def told(agent: Agent, **run: Any) -> tuple[Any, list[str]]:
    """How a run ends, and its notices."""
    notices: list[str] = []
    result = await agent.run(
        **run, on_event=lambda event: notices.append(event.message or "") if event.kind == "notice" else None
    )
    return result, notices


async def test_a_plan_that_holds_goes_on_and_the_step_says_so(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """One question, whose tokens count; the step's result tells what came out, as JSON too."""
    shop = Shop()
    endpoint.answers(said(True, "4 is a price"))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE), thread_id="t")
    assert (result.status, shop.calls, result.usage.model_calls) == ("done", {"price": 1, "double": 1}, 1)
    checked = {"when": "after", "by": "model", "holds": True, "reason": "4 is a price", "of": ["s1"]}
    assert [each.get("check") for each in result.as_json()["steps"]] == [checked, None]
    assert (await agent.show("t")).steps[0].check == result.steps[0].check
    assert '"result":{"price":4}' in endpoint.prompt(0)


async def test_a_premise_that_is_gone_is_planned_around_and_what_is_finished_stays(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Nothing that depends on the step begins; the planner is told why; the checked step is not called again."""
    shop = Shop()
    anew = plan(step("n1", "double", args={"number": "${s1.price}"}), answer="twice is ${n1.number}")
    endpoint.answers(said(False, "the ball is not for sale"), json.dumps(anew))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE, {**SEND, "depends_on": ["s2"]}), thread_id="t")
    assert (result.status, result.answer, shop.calls) == ("done", "twice is 8", {"price": 1, "double": 1})
    assert (result.usage.global_replans, result.usage.local_replans, len(endpoint.questions)) == (1, 0, 2)
    assert "PREMISE_BROKEN" in endpoint.prompt(1)
    assert "the ball is not for sale" in endpoint.prompt(1)
    assert [each.id for each in result.steps] == ["s1", "n1"]
    assert result.steps[0].check is not None
    assert result.steps[0].check.holds is False
