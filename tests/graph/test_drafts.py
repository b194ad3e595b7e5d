"""Every draft of a run's plans is on record, whoever has written it and whatever became of it."""

from __future__ import annotations

import json

from checkpoints.planning import planner_records
from graph.drafts import DraftResult
from nodes.planner import PLANNER
from nodes.replanner import REPLANNER
from plans.decisions import Edit
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel

PRICE = step("s1", "price", args={"item": "ball"})
SEND = step("s2", "send", "s1", args={"to": "ann", "text": "costs ${s1.price}"}, require_approval=True)


def told(drafts: list[DraftResult]) -> list[tuple[str, int, bool, int, str | None]]:
    """Of each draft its source, revision, whether it was used, its try, and its first fault."""
    return [
        (each.source, each.revision, each.valid, each.attempt, each.faults[0].code if each.faults else None)
        for each in drafts
    ]


async def test_each_author_of_a_run_s_plans_is_told(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The planner's plan, a mend that changes nothing, the one that does, and a person's edit; with who was told what,
    and counted by author."""
    shop = Shop()
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    mended = plan({**PRICE, "args": {"item": "cup"}})
    endpoint.answers(*map(json.dumps, (plan(PRICE, SEND), plan(PRICE), mended)))
    agent = await agent_on([shop.kit], model=endpoint)
    assert (await agent.run("what is it?", thread_id="t")).status == "paused"
    [asked] = await agent.approvals("t")
    decision = Edit(args={"to": "bob", "text": "3"})
    assert (await agent.resume("t", decisions={asked.approval_id: decision})).status == "done"
    drafts = await agent.drafts("t")
    assert told(drafts) == [
        ("model", 1, True, 1, None),
        ("local_replan", 2, False, 1, "NO_PROGRESS"),
        ("local_replan", 2, True, 2, None),
        ("human", 3, True, 1, None),
    ]
    prompts = [PLANNER.sha256, REPLANNER.sha256, REPLANNER.sha256, None]
    assert [each.prompt_sha256 for each in drafts] == prompts
    assert [(each.model, each.mode, each.prompt_tokens) for each in drafts] == [
        *[("scripted-1", "json_schema", 11)] * 3,
        (None, None, 0),
    ]
    records = {each.source: each for each in await planner_records(agent.engine.database)}
    counts = {source: (each.asked, each.at_first, each.redrafts, each.refused) for source, each in records.items()}
    assert counts == {"model": (1, 1, 0, 0), "local_replan": (1, 0, 1, 1), "human": (1, 1, 0, 0)}
    assert (records["local_replan"].prompt_tokens, records["local_replan"].completion_tokens) == (22, 14)
