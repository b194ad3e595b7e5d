"""A goal that needs one call: what it costs to plan it, in questions, calls and commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.gateway import Agent
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.graph.test_templates_in_use import PRICE_OF
from tests.nodes.model_server import ScriptedModel

PLANNED = plan(step("s1", "price", args={"item": "cup"}), answer="it costs ${s1.price}")


async def writes_so_far(agent: Agent) -> int:
    """The number of the server's next transaction that writes: each commit of ours that writes takes one."""
    [found] = await agent.engine.database.fetch("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next")
    return int(found["next"])


@pytest.mark.parametrize(("by_model", "questions", "commits"), [(False, 0, 9), (True, 1, 11)])
async def test_one_call_costs_one_call(
    agent_on: OpenAgent, endpoint: ScriptedModel, tmp_path: Path, *, by_model: bool, questions: int, commits: int
) -> None:
    """By a template no question and nine commits: the request, the lease, its first row, the plan, the result, the end
    in the journal, the end of the run with the template's count, the lease again, and one checkpoint. By a model one
    question more, and what was reserved for it and what it said."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "price_of.yaml").write_text(PRICE_OF)
    endpoint.answers(json.dumps(PLANNED))
    more = {"model": endpoint} if by_model else {}
    shop = Shop()
    agent = await agent_on([shop.kit], templates=tmp_path / "templates", durability="exit", **more)
    goal = "tell me the cost of a cup" if by_model else "What does a cup cost?"
    spent = []
    for number in range(1, 5):  # the server itself writes now and then
        before = await writes_so_far(agent)
        result = await agent.run(goal)
        spent.append(await writes_so_far(agent) - before)
        assert (result.status, result.answer, shop.calls["price"]) == ("done", "it costs 3", number)
        assert (result.usage.model_calls, result.usage.attempts) == (questions, 1)
    assert len(endpoint.questions) == 4 * questions
    assert min(spent) <= commits, spent
