"""What follows when no plan can be made: the model again, a person, an honest refusal; through the compiled graph."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import ABOUT_PLAN, Approve, Decision, Edit, Reject, Respond
from plans.errors import ApprovalConflict
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel, completion

PRICE = step("s1", "price", args={"item": "ball"})
GOOD = json.dumps(plan(PRICE, answer="it costs ${s1.price}"))
BAD = json.dumps(plan(step("s1", "prize", args={})))
GOAL = "what does a ball cost?"


async def asked(agent: Agent, endpoint: ScriptedModel, **more: Any) -> RunResult:
    """A run whose goal nothing has planned: it waits for a person."""
    endpoint.answers(BAD)
    result = await agent.run(GOAL, thread_id="t", **more)
    assert (result.status, result.exit_code, result.plan, len(endpoint.questions)) == ("paused", 3, None, 3)
    return result


async def answered(agent: Agent, result: RunResult, decision: Decision) -> RunResult:
    """The run after a person has answered its one question."""
    [request] = result.approvals
    return await agent.resume("t", decisions={request.approval_id: decision})


async def test_a_person_sees_the_goal_the_faults_and_the_last_draft(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """After two tries over again the question lists what is needed to answer it, and nothing has run."""
    shop = Shop()
    [request] = (await asked(await agent_on([shop.kit], model=endpoint), endpoint)).approvals
    assert (request.kind, request.step_id, request.args["goal"]) == ("question", ABOUT_PLAN, GOAL)
    assert "UNKNOWN_TOOL" in str(request.args["faults"])
    assert request.args["draft"]["steps"][0]["tool"] == "prize"
    assert request.reason.startswith("I cannot do this because")
    assert dict(shop.calls) == {}


async def test_what_a_person_says_goes_to_the_planner(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The instruction and the faults of the drafts so far are in its next question, and its plan is the first one."""
    agent = await agent_on([Shop().kit], model=endpoint)
    result = await asked(agent, endpoint)
    endpoint.answers(GOOD)
    done = await answered(agent, result, Respond("use the tool price"))
    assert (done.status, done.answer, done.usage.global_replans) == ("done", "it costs 4", 0)
    assert done.plan is not None
    assert (done.plan.source, done.plan.goal, done.plan.revision) == ("model", GOAL, 1)
    assert "use the tool price" in endpoint.prompt(-1)
    assert "UNKNOWN_TOOL" in endpoint.prompt(-1)


async def test_an_instruction_that_helps_nothing_is_asked_about_again(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """It has tries of its own; the next question is another one, and the first cannot be answered twice."""
    agent = await agent_on([Shop().kit], model=endpoint)
    result = await asked(agent, endpoint)
    again = await answered(agent, result, Respond("use prize"))
    assert (again.status, len(endpoint.questions)) == ("paused", 6)
    assert again.approvals[0].approval_id != result.approvals[0].approval_id
    with pytest.raises(ApprovalConflict):
        await answered(agent, result, Reject())
    assert (await answered(agent, again, Reject())).status == "failed"


async def test_a_person_s_own_plan_is_checked_like_any_other(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A faulty one is refused with its faults and the question stays; a good one runs as the person's."""
    agent = await agent_on([Shop().kit], model=endpoint)
    result = await asked(agent, endpoint)
    with pytest.raises(ApprovalConflict, match="UNKNOWN_TOOL"):
        await answered(agent, result, Edit(args=json.loads(BAD)))
    done = await answered(agent, result, Edit(args={"steps": [PRICE], "answer": "a ball costs ${s1.price}"}))
    assert (done.status, done.answer, len(endpoint.questions)) == ("done", "a ball costs 4", 3)
    assert done.plan is not None
    assert (done.plan.source, done.plan.goal) == ("human", GOAL)


async def test_a_person_s_no_is_an_honest_refusal(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The run fails, and its answer says what was wrong and what the person has said."""
    agent = await agent_on([Shop().kit], model=endpoint)
    ended = await answered(agent, await asked(agent, endpoint), Reject(message="never mind"))
    assert (ended.status, ended.exit_code, ended.failures[0].code) == ("failed", 1, "PLAN_INVALID")
    assert (ended.answer or "").startswith("I cannot do this because")
    assert "never mind" in (ended.answer or "")


async def test_nothing_is_approved_about_a_plan_that_is_none(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A yes answers no question, nor does an empty instruction: it stays."""
    agent = await agent_on([Shop().kit], model=endpoint)
    result = await asked(agent, endpoint)
    for empty in (Approve(), Respond(" ")):
        with pytest.raises(ApprovalConflict):
            await answered(agent, result, empty)
    assert (await agent.approvals("t"))[0].approval_id == result.approvals[0].approval_id


@pytest.mark.parametrize("mode", ["none", "all"])
async def test_who_asks_nobody_gets_the_refusal(agent_on: OpenAgent, endpoint: ScriptedModel, mode: Any) -> None:
    """At once, or when a run that waits goes on without people."""
    agent = await agent_on([Shop().kit], model=endpoint)
    endpoint.answers(BAD)
    at_once = await agent.run(GOAL, approve=mode)
    assert (at_once.status, at_once.approvals) == ("failed", ())
    assert (at_once.answer or "").startswith("I cannot do this because")
    endpoint.questions.clear()
    await asked(agent, endpoint)
    later = await agent.resume("t", approve=mode)
    assert (later.status, later.exit_code, later.approvals) == ("failed", 1, ())


async def test_the_setting_refuse_asks_nobody(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """For whoever runs Surestep where nobody would see a question."""
    endpoint.answers(BAD)
    result = await (await agent_on([Shop().kit], model=endpoint, on_unplannable="refuse")).run(GOAL)
    assert (result.status, result.approvals) == ("failed", ())


async def test_a_new_message_answers_the_question_too(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """In a chat nobody looks for approval ids: what is said next is an instruction, and the question is gone."""
    agent = await agent_on([Shop().kit], model=endpoint)
    await asked(agent, endpoint)
    endpoint.answers(GOOD)
    done = await agent.run("look the price up", thread_id="t")
    assert (done.status, done.answer, done.approvals) == ("done", "it costs 4", ())
    assert await agent.approvals("t") == []


async def test_a_run_that_waits_without_a_plan_can_be_cancelled(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """It ends, and nobody is asked any more."""
    agent = await agent_on([Shop().kit], model=endpoint)
    await asked(agent, endpoint)
    assert (await agent.cancel("t")).status == "cancelled"
    assert await agent.approvals("t") == []


async def test_the_next_goal_of_a_thread_knows_nothing_of_a_plan_that_could_not_be_made(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Whatever was planned last when a run ended, for the goal, anew or for a sub-goal: the next run is planned, or
    takes the plan that it is given, as on a new thread."""
    agent = await agent_on([Shop().kit], model=endpoint)
    judged = step("s2", "double", args={"number": "${s1.price}"}, success_when="number > `100`")
    later: dict[str, Any] = {"id": "s3", "action": "plan", "instruction": "Do it", "reason": "later"}
    given: dict[str, Any] = {"plan": plan(PRICE, answer="it costs ${s1.price}")}
    ended: list[tuple[dict[str, Any], dict[str, Any]]]
    ended = [({"goal": GOAL}, {"goal": GOAL}), ({"plan": plan(PRICE, judged)}, given), ({"plan": plan(later)}, given)]
    for before, after in ended:
        endpoint.answers(BAD)
        assert (await agent.run(**before, thread_id="t", approve="none")).status == "failed"
        endpoint.answers(GOOD)
        assert (await agent.run(**after, thread_id="t", approve="none")).answer == "it costs 4", before


async def test_a_replan_that_nobody_can_write_is_asked_about(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The failed step is named, and what the person says leads to a plan around what is finished, outside the caps."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    judged = step("s2", "double", args={"number": "${s1.price}"}, success_when="number > `100`")
    endpoint.answers(BAD)
    result = await agent.run(plan=plan(PRICE, judged), thread_id="t", limits={"max_global_replans": 1})
    assert (result.status, result.usage.global_replans, len(endpoint.questions)) == ("paused", 1, 3)
    assert (result.approvals[0].kind, result.approvals[0].args["step"]) == ("question", "s2")
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": 60}))))
    done = await answered(agent, result, Respond("double 60"))
    assert (done.status, done.usage.global_replans, [each.id for each in done.steps]) == ("done", 1, ["s1", "n1"])
    assert shop.calls == {"price": 1, "double": 2}


async def test_a_failed_local_replan_counts_and_leads_to_a_global_one(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The small model's useless answers cost one local replan, which is not tried again for the same failure."""
    shop = Shop()
    shop.fails("double", ToolFailure("NOT_FOUND", "there is no such number"))
    other = plan(step("n1", "double", args={"number": 3}), answer="${n1.number}")
    same = plan(step("s1", "double", args={"number": 2}))
    endpoint.answers(*[json.dumps(same)] * 3, json.dumps(other))
    result = await (await agent_on([shop.kit], model=endpoint)).run(plan=same, thread_id="t")
    assert (result.status, result.answer) == ("done", "6")
    assert (result.usage.local_replans, result.usage.global_replans, len(endpoint.questions)) == (1, 1, 4)


async def test_a_local_replan_whose_model_fails_counts_too(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Where the small model is not there, what comes behind it in the table is done."""
    shop = Shop()
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    endpoint.answers(completion(None, refusal="no"))
    result = await (await agent_on([shop.kit], model=endpoint)).run(plan=plan(PRICE), thread_id="t")
    assert (result.status, result.steps[0].tool, result.usage.local_replans) == ("done", "cached_price", 1)
