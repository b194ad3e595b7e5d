"""Goals that no pattern matches, with a small model: it fills the template that is near, or the planner is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from graph.gateway import Agent
from plans.errors import ModelNotConfigured
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import Question, ScriptedModel, completion

TEMPLATE = """
name: price_of
title: The price of an item
toolkit: shop
match:
  en: ["what does an? (?P<item>[a-z]{1,20}) cost"]
parameters:
  item: {about: the item, schema: {type: string, minLength: 2}}
plan:
  steps:
    - {id: s1, tool: price, args: {item: "<<item>>"}, reason: it is asked for}
  answer: "it costs ${s1.price}"
examples:
  - {goal: what does a ball cost, parameters: {item: ball}}
  - {goal: what does a cup cost, parameters: {item: cup}}
"""
GOAL = "and how costly, say, is a cup at present cost"
PLANNED = plan(step("n1", "price", args={"item": "football"}), answer="planned: ${n1.price}")


def filling(item: str | None, *, judgement: bool = True) -> str:
    return json.dumps({"does_all": judgement, "nothing_more": True, "parameters": {"item": item}})


class Two:
    """A planner and a small model behind one endpoint, told apart by name."""

    def __init__(self, server: HTTPServer) -> None:
        self.endpoint = ScriptedModel(server)
        self.endpoint.answers(self._answer)
        self.says = filling("cup")
        self.asked: list[str] = []

    def _answer(self, question: Question) -> Response:
        self.asked.append(question["model"])
        return completion(self.says if question["model"] == "little" else json.dumps(PLANNED))


@pytest.fixture
def two(httpserver: HTTPServer) -> Two:
    """Both models."""
    return Two(httpserver)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of templates with one for the shop."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "price_of.yaml").write_text(TEMPLATE)
    return tmp_path / "templates"


async def opened(agent_on: OpenAgent, folder: Path, two: Two, **more: Any) -> Agent:
    agent: Agent = await agent_on([Shop().kit], templates=folder, model=two.endpoint, small_model="little", **more)
    return agent


async def test_a_near_template_is_filled_by_one_small_question(agent_on: OpenAgent, folder: Path, two: Two) -> None:
    """No planner is asked; the plan says template, parameters, model and prompt, and the question is journaled once."""
    agent = await opened(agent_on, folder, two)
    result = await agent.run(GOAL, thread_id="t")
    assert (result.status, result.answer, two.asked) == ("done", "it costs 3", ["little"])
    assert (result.plan and result.plan.source, result.usage.model_calls) == ("template", 1)
    assert result.made_from is not None
    assert (result.made_from.name, result.made_from.parameters) == ("price_of", {"item": "cup"})
    rows = await agent.engine.journal.read(result.run_id)
    [row] = [row.body for row in rows if row.kind == "plan"]
    [asked] = [row.body for row in rows if row.kind == "model"]
    assert asked["key"] == f"fill:price_of:{result.made_from.sha256[:12]}"
    assert (row["model"], row["prompt_sha256"]) == (asked["model"], asked["prompt"])
    assert result.usage.prompt_tokens == 11


@pytest.mark.parametrize(
    "says",
    [
        filling("cup", judgement=False),
        filling("vase"),
        filling(None),
        "no idea",
        json.dumps({"does_all": True, "nothing_more": True, "parameters": {"item": "cup", "colour": "red"}}),
    ],
    ids=["another thing", "made up", "nothing said", "prose", "more than asked"],
)
async def test_else_the_planner_is_asked(agent_on: OpenAgent, folder: Path, two: Two, says: str) -> None:
    """The template does not fit, a value stands nowhere, or the answer is none: one planner call, as without it."""
    two.says = says
    agent = await opened(agent_on, folder, two)
    result = await agent.run(GOAL)
    assert (result.status, result.answer, two.asked) == ("done", "planned: 8", ["little", "scripted"])
    assert result.made_from is None


async def test_without_a_small_model_nothing_is_asked(agent_on: OpenAgent, folder: Path, two: Two) -> None:
    """A planner that stands in for the small model is not asked twice."""
    agent = await agent_on([Shop().kit], templates=folder, model=two.endpoint)
    assert (await agent.run(GOAL)).answer == "planned: 8"
    assert two.asked == ["scripted"]


async def test_a_small_model_alone_is_enough_for_a_near_template(agent_on: OpenAgent, folder: Path, two: Two) -> None:
    """Without a planner, a goal that is near to nothing is refused before it begins; one that is near is tried."""
    agent = await opened(agent_on, folder, two)
    agent.engine.planner = None
    assert (await agent.run(GOAL)).status == "done"
    with pytest.raises(ModelNotConfigured):
        await agent.run("write a poem")
    two.says = filling("cup", judgement=False)
    result = await agent.run(GOAL)
    assert (result.status, result.failures[0].code) == ("failed", "MODEL_NOT_CONFIGURED")


async def test_a_plan_is_shown_as_it_would_run(agent_on: OpenAgent, folder: Path, two: Two) -> None:
    """`surestep plan` asks the small model too."""
    agent = await opened(agent_on, folder, two)
    preview = await agent.plan(GOAL)
    assert (preview.plan.source, preview.plan.template, two.asked) == ("template", "price_of", ["little"])


async def test_a_pattern_that_matches_asks_nobody(agent_on: OpenAgent, folder: Path, two: Two) -> None:
    """A template costs no question."""
    agent = await opened(agent_on, folder, two)
    result = await agent.run("what does a cup cost?")
    assert (result.status, two.asked, result.usage.model_calls) == ("done", [], 0)
