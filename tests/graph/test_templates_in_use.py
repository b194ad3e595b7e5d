"""Templates as runs use them: on record with every plan, counted once, set aside when they begin to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkpoints.template_uses import FRESH_S
from graph.gateway import Agent
from nodes.events import Event
from plans.errors import ModelNotConfigured
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel

PRICE_OF = """
name: price_of
title: The price of an item
toolkit: shop
match:
  en: ["what does an? (?P<item>[a-z]{1,20}) cost"]
parameters:
  item: {about: the item, schema: {type: string}}
plan:
  steps:
    - {id: s1, tool: price, args: {item: "<<item>>"}, success_when: "price > `1`", reason: it is asked for}
  answer: "it costs ${s1.price}"
examples:
  - {goal: what does a ball cost, parameters: {item: ball}}
others: [what does a ball cost in Paris]
"""
GOAL = "What does a cup cost?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of templates with one for the shop."""
    made = tmp_path / "templates"
    made.mkdir()
    (made / "price_of.yaml").write_text(PRICE_OF)
    return made


async def counts(agent: Agent) -> tuple[int, int, int]:
    [found] = (await agent.engine.template_uses.standing()).values()
    return found.used, found.succeeded, found.failed


async def test_a_plan_says_which_template_it_was_made_of(agent_on: OpenAgent, folder: Path) -> None:
    """Name, hash and parameters are in the journal's plan row, and whoever looks at the run is shown them."""
    agent = await agent_on([Shop().kit], templates=folder)
    result = await agent.run(GOAL, thread_id="t")
    assert (result.status, result.answer, result.usage.model_calls) == ("done", "it costs 3", 0)
    rows = await agent.engine.journal.read(result.run_id)
    [row] = [row.body["made_from"] for row in rows if row.kind == "plan"]
    assert (row["name"], row["parameters"], len(row["sha256"])) == ("price_of", {"item": "cup"}, 64)
    shown = await agent.show("t")
    assert shown.as_json()["plan"]["template"] == row
    assert await counts(agent) == (1, 1, 0)


async def test_a_template_that_fails_is_set_aside_until_it_is_restored(
    agent_on: OpenAgent, folder: Path, endpoint: ScriptedModel
) -> None:
    """Then its goals go to the planner; who names it is told, and still gets it."""
    agent = await agent_on([Shop().kit], templates=folder, model=endpoint)
    endpoint.answers(*[json.dumps(plan(step("n1", "price", args={"item": "football"})))] * 9)
    for item in "vwxyz":
        assert (await agent.run(f"What does a {item} cost?")).status == "done"
    assert await counts(agent) == (5, 0, 5)
    now = agent.engine.clock.monotonic
    agent.engine.template_uses._monotonic = lambda: now() + FRESH_S
    result = await agent.run(GOAL)
    assert (result.made_from, result.plan and result.plan.source) == (None, "model")
    heard: list[Event] = []
    named = await agent.run(GOAL, template="price_of", on_event=heard.append)
    assert (named.status, named.made_from and named.made_from.name) == ("done", "price_of")
    assert any("price_of is set aside" in (event.message or "") for event in heard)
    assert await agent.engine.template_uses.restore("price_of", agent.engine.templates[0].sha256)
    assert (await agent.run(GOAL)).made_from == named.made_from


async def test_without_a_model_a_goal_of_a_template_set_aside_is_told_so(agent_on: OpenAgent, folder: Path) -> None:
    """Nothing begins, and the sentence names the template and what to do."""
    agent = await agent_on([Shop().kit], templates=folder)
    sha256 = agent.engine.templates[0].sha256
    await agent.engine.database.execute(
        "INSERT INTO surestep.template_standing VALUES ('price_of', %s, 9, 0, 9, '{f,f,f,f,f}', 'TOOL_ERROR', now(), "
        "now(), now())",
        (sha256,),
    )
    with pytest.raises(ModelNotConfigured, match=r"price_of.*is set aside.*templates restore price_of"):
        await agent.run(GOAL)


@pytest.mark.parametrize(("failure", "counted"), [("TOOL_ERROR", (1, 0, 1)), ("NOT_FOUND", (1, 0, 0))])
async def test_what_ends_a_run_tells_whose_failure_it_was(
    agent_on: OpenAgent, folder: Path, failure: str, counted: Any
) -> None:
    """The template's own, or that of a goal that names what does not exist; told twice it counts once."""
    shop = Shop()
    for tool in ("price", "cached_price"):
        shop.fails(tool, ToolFailure(failure, "no"))
    agent = await agent_on([shop.kit], templates=folder)
    assert (await agent.run(GOAL, thread_id="t")).status == "failed"
    await agent.resume("t")
    assert await counts(agent) == counted
