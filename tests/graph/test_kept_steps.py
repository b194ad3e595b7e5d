"""What has run is kept as it is: a step byte for byte, and each element of a list with its own value (rule 17)."""

from __future__ import annotations

import json

import pytest

from plans.decisions import Approve
from plans.errors import ArtifactMissing
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel

PRICE = step("s1", "price", args={"item": "ball"})
JUDGED = step("s2", "double", "s1", args={"number": "${s1.price}"}, success_when="number > `100`")


async def test_a_plan_that_rewrites_a_finished_step_is_refused_and_written_again(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The model reuses the id of a finished step for another call: it is told so, and the step stays what it was."""
    shop = Shop()
    rewritten = plan(step("s1", "price", args={"item": "football"}), step("n1", "double", args={"number": 60}))
    endpoint.answers(json.dumps(rewritten), json.dumps(plan(step("n1", "double", args={"number": 60}))))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(PRICE, JUDGED), thread_id="t")
    assert (result.status, result.usage.global_replans) == ("done", 1)
    assert "CHANGED_FINISHED_STEP" in endpoint.prompt(1)
    assert result.plan is not None
    assert result.plan.steps[0].args == {"item": "ball"}
    assert shop.given == [("price", "ball"), ("double", 4), ("double", 60)]


async def test_an_element_never_runs_with_another_list_s_value(agent_on: OpenAgent) -> None:
    """After the step was expanded its list is another one: the run stops with the reason, and no letter is sent."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    each = step("e", "send", args={"to": "${item}", "text": "hi"}, for_each="${inputs.list}", require_approval=True)
    result = await agent.run(plan=plan(each), inputs={"list": ["ann", "bob"]}, thread_id="t")
    await agent.engine.database.execute(
        "UPDATE surestep.journal SET body = jsonb_set(body, '{head,inputs,list,0}', '\"eve\"') WHERE kind = 'run'"
    )
    with pytest.raises(ArtifactMissing, match="step e goes over"):
        await agent.resume("t", decisions={request.approval_id: Approve() for request in result.approvals})
    assert shop.calls["send"] == 0
