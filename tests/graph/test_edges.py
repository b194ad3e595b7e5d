"""Each edge of the graph, taken end to end through the compiled graph on PostgreSQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.gateway import Agent
from plans.decisions import Approve, Edit, Reject
from plans.errors import ApprovalConflict, ModelNotConfigured, PlanRejected, RunBusy, UnknownThread, UsageError
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel, completion, refused

PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.price}"})
SEND = step("s3", "send", args={"to": "ann", "text": "costs ${s2.number}"}, require_approval=True)


async def edges_taken(agent: Agent, thread_id: str) -> list[str]:
    """The decisions that the thread's checkpoints hold, in order."""
    config: Any = {"configurable": {"thread_id": thread_id}}
    states: list[Any] = [snapshot.values async for snapshot in agent.graph.aget_state_history(config)]
    return [state["edge"] for state in reversed(states) if "edge" in state]


async def test_a_given_plan_runs_to_its_answer(agent_on: OpenAgent) -> None:
    """Results flow by reference, and the answer is the plan's own with the results in it."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(PRICE, DOUBLE, answer="twice is ${s2.number}"))
    assert (result.status, result.answer, result.exit_code) == ("done", "twice is 8", 0)
    assert [s.status for s in result.steps] == ["done", "done"]
    assert shop.given == [("price", "ball"), ("double", 4)]


async def test_retry_a_soft_failure_is_tried_again(agent_on: OpenAgent) -> None:
    """A soft failure leads over the edge retry, and the step's second attempt counts."""
    shop = Shop()
    shop.fails("price", ToolFailure("CONFLICT", "somebody else was quicker"))
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(PRICE), thread_id="t")
    assert (result.status, result.steps[0].attempts, shop.calls["price"]) == ("done", 2, 2)
    assert "retry" in await edges_taken(agent, "t")


async def test_fallback_the_declared_alternative_answers_and_is_named(agent_on: OpenAgent) -> None:
    """When its attempts are used up, a step is answered by its tool's alternative, and the answer says so."""
    shop = Shop()
    shop.fails("price", *[ToolFailure("CONFLICT", "the price list is locked")] * 3)
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(PRICE, DOUBLE), thread_id="t")
    assert (result.status, result.steps[0].tool, shop.given[-1]) == ("done", "cached_price", ("double", 7))
    assert "cached_price" in (result.answer or "")
    assert "locked" in (result.answer or "")
    assert "fallback" in await edges_taken(agent, "t")


async def test_local_replan_a_small_model_mends_the_one_step(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A hard failure sends one step to the model; the rest of the plan stays byte for byte."""
    shop = Shop()
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    endpoint.answers(json.dumps(plan({**PRICE, "args": {"item": "football"}})))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(PRICE, DOUBLE), thread_id="t")
    assert (result.status, result.usage.local_replans) == ("done", 1)
    assert result.plan is not None
    assert (result.plan.revision, result.plan.source) == (2, "local_replan")
    assert shop.given == [("price", "ball"), ("price", "football"), ("double", 8)]
    assert "local_replan" in await edges_taken(agent, "t")


async def test_repatch_a_useless_mend_is_sent_back_once_more(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The failed step again, unchanged, is refused with NO_PROGRESS and asked for anew."""
    shop = Shop()
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    endpoint.answers(json.dumps(plan(PRICE)), json.dumps(plan({**PRICE, "args": {"item": "cup"}})))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(PRICE), thread_id="t")
    assert (result.status, shop.given[-1]) == ("done", ("price", "cup"))
    assert "repatch" in await edges_taken(agent, "t")
    assert "NO_PROGRESS" in endpoint.prompt(1)


async def test_global_replan_keeps_what_is_finished(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A false criterion means the plan's premise is gone: the rest is planned anew, and no finished step runs again."""
    shop = Shop()
    judged = {**DOUBLE, "success_when": "number > `100`"}
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": 21}))))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(PRICE, judged), thread_id="t")
    assert (result.status, result.usage.global_replans) == ("done", 1)
    assert [s.id for s in result.steps] == ["s1", "n1"]
    assert shop.calls == {"price": 1, "double": 2}
    assert "global_replan" in await edges_taken(agent, "t")


async def test_redraft_a_faulty_plan_goes_back_with_its_faults(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The model is told every fault of its plan, and its next plan runs."""
    endpoint.answers(json.dumps(plan(step("s1", "prize", args={}))), json.dumps(plan(PRICE)))
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run("what does a ball cost?", thread_id="t")
    assert (result.status, result.usage.model_calls) == ("done", 2)
    assert result.plan is not None
    assert result.plan.source == "model"
    assert result.plan.goal == "what does a ball cost?"
    assert "UNKNOWN_TOOL" in endpoint.prompt(1)
    assert "redraft" in await edges_taken(agent, "t")


async def test_a_toolkit_s_examples_are_shown_where_all_their_tools_may_be_used(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The first two of a toolkit; one with a tool that this run may not use stays out, as the tool does."""
    shop = Shop()

    @shop.kit.tool(effect="read", roles=("owner",))
    def margin(item: str) -> int:
        """What is earned with it."""
        return len(item)

    for number, tool in enumerate(("margin", "price", "price", "price")):
        shop.kit.example(f"goal-{number}", {"steps": [step("s1", tool, args={"item": f"item-{number}"})]})
    endpoint.answers(json.dumps(plan(PRICE)))
    agent = await agent_on([shop.kit], model=endpoint)
    await agent.run("what does a ball cost?")
    assert [name for name in map("goal-{}".format, range(4)) if name in endpoint.prompt(0)] == ["goal-1", "goal-2"]


async def test_what_a_model_cannot_undo_a_person_is_asked_about(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The same step runs unasked where a person has written the plan; where a model has, it waits. A replan by a model
    leaves the steps that it keeps as they are."""
    shop = Shop()
    sending = step("s3", "send", args={"to": "ann", "text": "hi"})
    agent = await agent_on([shop.kit], model=endpoint)
    assert (await agent.run(plan=plan(sending))).status == "done"
    endpoint.answers(json.dumps(plan({**sending, "risk": "low"})))
    asking = await agent.run("tell ann")
    assert (asking.status, [a.risk for a in asking.approvals], shop.calls["send"]) == ("paused", ["high"], 1)
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    endpoint.answers(json.dumps(plan({**PRICE, "args": {"item": "cup"}})))
    mended = await agent.run(plan=plan(PRICE, {**sending, "depends_on": ["s1"]}))
    assert (mended.status, mended.usage.local_replans, shop.calls["send"]) == ("done", 1, 2)


async def test_the_preview_of_a_model_s_plan_says_where_a_person_is_asked(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """As the run would: before what cannot be undone; and a plan that is kept as a file says so too."""
    endpoint.answers(json.dumps(plan(step("s1", "send", args={"to": "ann", "text": "hi"}))))
    shown = await (await agent_on([Shop().kit], model=endpoint)).plan("tell ann")
    assert (shown.approvals, shown.plan.steps[0].risk) == (("s1",), "high")
    endpoint.answers(completion(None, refusal="no"))
    with pytest.raises(PlanRejected, match="PLAN_REFUSED"):
        await (await agent_on([Shop().kit], model=endpoint)).plan("tell ann")
    assert len(endpoint.questions) == 2


async def test_a_limit_of_cost_needs_a_price(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A model that costs nothing as far as anybody knows would never reach it: the run does not begin."""
    agent = await agent_on([Shop().kit], model=endpoint)
    with pytest.raises(UsageError, match=r"SURESTEP_PRICES=scripted=PROMPT/COMPLETION"):
        await agent.run(plan=plan(PRICE), limits={"max_cost": 1})


async def test_a_refusal_is_not_argued_with(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A model that declines is asked once; the run ends with what it said."""
    endpoint.answers(completion(None, refusal="I do not help with balls."))
    result = await (await agent_on([Shop().kit], model=endpoint)).run("what does a ball cost?")
    assert (result.status, len(endpoint.questions)) == ("failed", 1)
    assert "I do not help with balls." in (result.answer or "")


async def test_give_up_is_an_honest_end_with_every_fault(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """After two refused redrafts a run that asks nobody fails, says why, and nothing has run."""
    endpoint.answers(json.dumps(plan(step("s1", "prize", args={}))))
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run("what does a ball cost?", thread_id="t", approve="none")
    assert (result.status, result.exit_code, len(endpoint.questions)) == ("failed", 1, 3)
    assert "UNKNOWN_TOOL" in (result.answer or "")
    assert (await edges_taken(agent, "t"))[-1] == "give_up"
    assert not shop.calls


async def test_a_model_that_cannot_be_reached_ends_the_run_in_plain_words(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """A refusal by the endpoint is no plan: the run fails and says what the endpoint said."""
    endpoint.answers(refused(401, "wrong key"))
    result = await (await agent_on([Shop().kit], model=endpoint)).run("what does a ball cost?")
    assert (result.status, result.plan) == ("failed", None)
    assert "401" in (result.answer or "") or "key" in (result.answer or "")


async def test_human_interrupt_waits_and_holds_up_only_its_dependents(agent_on: OpenAgent) -> None:
    """Nothing of an unapproved step runs; independent branches finish; after the yes it runs once."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    free = step("f", "double", args={"number": 5})
    result = await agent.run(plan=plan(PRICE, DOUBLE, SEND, free), thread_id="t")
    assert (result.status, result.exit_code, shop.calls["send"], shop.calls["double"]) == ("paused", 3, 0, 2)
    assert result.approvals[0].args == {"to": "ann", "text": "costs 8"}
    assert await agent.approvals("t") == list(result.approvals)
    after = await agent.resume("t", decisions={result.approvals[0].approval_id: Approve()})
    assert (after.status, shop.calls["send"], after.approvals) == ("done", 1, ())
    assert "human_interrupt" in await edges_taken(agent, "t")
    assert "approved" in await edges_taken(agent, "t")


async def test_resume_without_a_decision_stays_paused(agent_on: OpenAgent) -> None:
    """Nobody has decided: nothing moves and nothing is lost."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    await agent.run(plan=plan(PRICE, DOUBLE, SEND), thread_id="t")
    again = await agent.resume("t")
    assert (again.status, len(again.approvals), shop.calls["send"]) == ("paused", 1, 0)


async def test_rejected_leads_to_observe_and_never_runs(agent_on: OpenAgent) -> None:
    """A no is final: the step fails with REJECTED, and the run ends without the effect."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(PRICE, DOUBLE, SEND), thread_id="t")
    after = await agent.resume("t", decisions={result.approvals[0].approval_id: Reject(message="not today")})
    assert (after.status, after.steps[2].status, shop.calls["send"]) == ("failed", "failed", 0)
    assert after.steps[2].failure is not None
    assert after.steps[2].failure.code == "REJECTED"
    assert "not today" in (after.answer or "")
    assert "rejected" in await edges_taken(agent, "t")


async def test_edited_arguments_are_validated_and_are_what_runs(agent_on: OpenAgent) -> None:
    """An edit makes a new revision; its text is literal, and it is not asked about again."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(PRICE, DOUBLE, SEND), thread_id="t")
    approval = result.approvals[0].approval_id
    with pytest.raises(ApprovalConflict, match="does not take the edited arguments"):
        await agent.resume("t", decisions={approval: Edit(args={"to": 3})})
    after = await agent.resume("t", decisions={approval: Edit(args={"to": "bob", "text": "a ${s9} b"})})
    assert (after.status, shop.given[-1][1][:2]) == ("done", ("bob", "a ${s9} b"))
    assert after.plan is not None
    assert (after.plan.revision, after.plan.source) == (2, "human")
    assert "edited" in await edges_taken(agent, "t")


async def test_instruction_a_message_to_an_open_run_replans_around_what_is_finished(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """A second goal on a paused thread is an instruction: finished steps stay, the rest is written anew."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    await agent.run(plan=plan(PRICE, DOUBLE, SEND), thread_id="t")
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": "${s1.price}"}))))
    after = await agent.run("do not send anything, double the price again", thread_id="t")
    assert (after.status, shop.calls) == ("done", {"price": 1, "double": 2})
    assert "do not send anything" in endpoint.prompt()
    assert "instruction" not in await edges_taken(agent, "t")
    assert "global_replan" in await edges_taken(agent, "t")


async def test_continue_a_limited_run_goes_on_with_a_higher_limit(agent_on: OpenAgent) -> None:
    """A run that stopped at a limit keeps what is finished, and goes on when a person raises it."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    each = step("e", "double", "s1", args={"number": "${item}"}, for_each="${inputs.numbers}")
    result = await agent.run(
        plan=plan(PRICE, each), inputs={"numbers": [1, 2, 3]}, thread_id="t", limits={"max_for_each": 2}
    )
    assert (result.status, result.exit_code) == ("limited", 4)
    after = await agent.resume("t", limits={"max_for_each": 10})
    assert (after.status, shop.calls) == ("done", {"price": 1, "double": 3})


async def test_a_finished_thread_takes_the_next_goal_as_a_new_run(agent_on: OpenAgent) -> None:
    """The second run starts empty: nothing of the first is in its steps or its answer."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    first = await agent.run(plan=plan(PRICE), thread_id="t")
    second = await agent.run(plan=plan(step("x", "double", args={"number": 2})), thread_id="t")
    assert first.run_id != second.run_id
    assert [s.id for s in second.steps] == ["x"]
    assert second.usage.steps == 1


async def test_a_request_sent_twice_is_one_run_and_one_answer(agent_on: OpenAgent) -> None:
    """The same request id gives the first run's result, and runs nothing again."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    first = await agent.run(plan=plan(PRICE), thread_id="t", request_id="r-1")
    again = await agent.run(plan=plan(PRICE), thread_id="t2", request_id="r-1")
    assert (again.run_id, again.answer, shop.calls["price"]) == (first.run_id, first.answer, 1)
    with pytest.raises(UsageError, match="r-1"):
        await agent.run(plan=plan(DOUBLE | {"args": {"number": 1}}), request_id="r-1")


async def test_refusals_before_anything_is_stored(agent_on: OpenAgent) -> None:
    """What could never run is refused with its reason, and leaves no run behind."""
    agent = await agent_on([Shop().kit])
    with pytest.raises(ModelNotConfigured, match="SURESTEP_MODEL"):
        await agent.run("bake a cake")
    with pytest.raises(PlanRejected) as refusal:
        await agent.run(plan=plan(step("a", "nope", "b"), step("b", "price", "a", args={"item": 3})))
    assert {fault.code for fault in refusal.value.faults} >= {"UNKNOWN_TOOL", "INVALID_ARGS", "CYCLE"}
    with pytest.raises(UnknownThread, match="nowhere"):
        await agent.resume("nowhere")
    assert await agent.runs() == []


async def test_two_runs_on_one_thread_the_second_is_told(agent_on: OpenAgent) -> None:
    """While one program drives a thread, another start on it is refused and disturbs nothing."""
    import asyncio

    shop = Shop()
    agent = await agent_on([shop.kit])
    both = await asyncio.gather(
        agent.run(plan=plan(PRICE, DOUBLE), thread_id="t", request_id="a"),
        agent.run(plan=plan(PRICE, DOUBLE), thread_id="t", request_id="b"),
        return_exceptions=True,
    )
    results = [one for one in both if not isinstance(one, BaseException)]
    refusals = [one for one in both if isinstance(one, BaseException)]
    assert [result.status for result in results] == ["done"]
    assert len(refusals) == 1
    assert isinstance(refusals[0], (RunBusy, UsageError)), refusals
    assert shop.calls["price"] == 1


async def test_state_holds_no_results(agent_on: OpenAgent) -> None:
    """A large result is an artifact: no checkpoint and no channel holds it."""
    shop = Shop()
    secret = "pineapple" * 500

    @shop.kit.tool(effect="read")
    def big() -> dict[str, str]:
        """A large text."""
        return {"text": secret}

    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(step("b", "big")), thread_id="t")
    assert result.steps[0].output_ref
    assert secret.encode() in await agent.output("t", result.steps[0].output_ref)
    rows = await agent.engine.database.fetch("SELECT c.*, b.blob FROM checkpoints c, checkpoint_blobs b")
    assert rows
    assert not any("pineapplepineapple" in str(row) for row in rows if "answer" not in str(row))
