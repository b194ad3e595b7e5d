"""A plan that a person looks at before it runs: shown whole, approved, edited, sent back or rejected."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import ABOUT_PLAN, Approve, Decision, Edit, Reject, Respond
from plans.errors import ApprovalConflict, InvalidInput
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel

PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.price}"})
SEND = step("s3", "send", args={"to": "ann", "text": "costs ${s2.number}"}, require_approval=True)
PLAN = plan(PRICE, DOUBLE, answer="twice is ${s2.number}")


async def shown(agent: Agent, **more: Any) -> RunResult:
    """A run whose plan waits to be looked at, with nothing done yet."""
    result = await agent.run(thread_id="t", review="first", **more)
    assert (result.status, result.exit_code, [each.kind for each in result.approvals]) == ("paused", 3, ["review"])
    assert result.usage.attempts == 0
    return result


async def answered(agent: Agent, result: RunResult, decision: Decision) -> RunResult:
    """The run after a person has answered what it asks about its plan."""
    [request] = result.approvals
    return await agent.resume("t", decisions={request.approval_id: decision})


async def test_the_whole_plan_is_shown_and_runs_as_it_is(agent_on: OpenAgent) -> None:
    """Nothing runs before the yes; the question holds the plan as a file would, and it is asked once."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await shown(agent, plan=PLAN)
    [request] = result.approvals
    assert (request.step_id, request.tool, dict(shop.calls)) == (ABOUT_PLAN, "plan", {})
    assert [each["id"] for each in request.args["steps"]] == ["s1", "s2"]
    done = await answered(agent, result, Approve())
    assert (done.status, done.answer, done.plan and done.plan.revision) == ("done", "twice is 8", 1)
    with pytest.raises(ApprovalConflict):
        await answered(agent, result, Approve())


async def test_the_plan_is_edited_as_data_and_the_edit_is_checked(agent_on: OpenAgent) -> None:
    """A faulty edit is refused with its faults and changes nothing; a good one is a revision by a person, not shown."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await shown(agent, plan=PLAN)
    with pytest.raises(ApprovalConflict, match="UNKNOWN_TOOL"):
        await answered(agent, result, Edit(args=plan(step("s1", "prize"))))
    changed = {**result.approvals[0].args, "steps": [{**PRICE, "args": {"item": "football"}}], "answer": "${s1.price}"}
    done = await answered(agent, result, Edit(args=changed))
    assert (done.status, done.answer, shop.given) == ("done", "8", [("price", "football")])
    assert done.plan is not None
    assert (done.plan.revision, done.plan.source) == (2, "human")


async def test_a_rejected_plan_never_runs(agent_on: OpenAgent) -> None:
    """The run fails with the person's words, and a fork of it asks again."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    ended = await answered(agent, await shown(agent, plan=PLAN), Reject(message="too dear"))
    assert (ended.status, ended.failures[0].code, dict(shop.calls)) == ("failed", "REJECTED", {})
    assert "too dear" in (ended.answer or "")
    fork = await agent.fork("t", "s1", new_thread_id="u", approve="all")
    assert ([each.kind for each in fork.approvals], dict(shop.calls)) == (["review"], {})


async def test_what_a_person_says_of_a_plan_leads_to_another_that_is_shown_too(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The words reach the planner; the new question says what has changed, and the old one is gone."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    endpoint.answers(json.dumps(PLAN), json.dumps(plan(PRICE, answer="${s1.price}")))
    first = await shown(agent, goal="what does a ball cost?")
    second = await answered(agent, first, Respond("do not double it"))
    assert ([each.kind for each in second.approvals], second.status) == (["review"], "paused")
    assert "do not double it" in endpoint.prompt(-1)
    assert "- s2  double" in second.approvals[0].reason
    assert (second.approvals[0].approval_id != first.approvals[0].approval_id, dict(shop.calls)) == (True, {})
    assert (await answered(agent, second, Approve())).answer == "4"


async def test_replans_are_shown_only_where_every_revision_is_to_be(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """With "first" a repair goes on by itself, with "every" it waits; what runs meanwhile is not cut off."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    endpoint.answers(json.dumps(plan({**PRICE, "args": {"item": "cup"}})))
    found: list[RunResult] = []
    for review in ("first", "every"):
        shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
        result = await agent.run(plan=PLAN, thread_id=review, review=review)
        found.append(await agent.resume(review, decisions={result.approvals[0].approval_id: Approve()}))
    assert [(each.status, each.plan and each.plan.source) for each in found] == [
        ("done", "local_replan"), ("paused", "local_replan"),
    ]  # fmt: skip
    assert shop.calls["double"] == 1
    [request] = found[1].approvals
    assert "~ s1  args.item: ball → cup" in request.reason
    assert (await agent.resume("every", decisions={request.approval_id: Approve()})).answer == "twice is 6"


async def test_the_server_s_setting_is_the_least_that_is_looked_at(agent_on: OpenAgent) -> None:
    """A caller may ask for more and not for less; and who asks nobody cannot have a plan looked at."""
    agent = await agent_on([Shop().kit], review="first")
    result = await agent.run(plan=PLAN, review="none", approve="all")
    assert [each.kind for each in result.approvals] == ["review"]
    with pytest.raises(InvalidInput, match="asks nobody"):
        await agent.run(plan=PLAN, approve="none")


async def test_reads_do_not_begin_before_the_plan_is_looked_at(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Also not those that otherwise begin while the model still writes."""
    shop = Shop()
    endpoint.answers(json.dumps(PLAN))
    agent = await agent_on([shop.kit], model=endpoint, eager=True)
    await shown(agent, goal="what does a ball cost?")
    await asyncio.sleep(0.1)
    assert dict(shop.calls) == {}


async def test_everyone_who_waits_is_let_through_by_yes_to_all(agent_on: OpenAgent) -> None:
    """A run that goes on with "all" has its plan and its steps approved."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    await shown(agent, plan=plan(PRICE, DOUBLE, SEND))
    assert ((await agent.resume("t", approve="all")).status, shop.calls["send"]) == ("done", 1)
