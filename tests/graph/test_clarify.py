"""The user is asked: by a step, or by a planner that cannot plan yet; and what they say is the step's result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from nodes.hitl import inbox_request
from plans.decisions import Approve, Decision, Reject, Respond
from plans.errors import ApprovalConflict, PlanRejected
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel

WHICH = step("s1", "ask_user", args={"question": "Which item?"})
PRICE = step("s2", "price", args={"item": "${s1.answer}"})
PLAN = plan(WHICH, PRICE, answer="${s1.answer} costs ${s2.price}")


async def said(agent: Agent, result: RunResult, *decisions: Decision) -> RunResult:
    """The run after the user has answered what waits, in its order."""
    answers = {request.approval_id: each for request, each in zip(result.approvals, decisions, strict=True)}
    return await agent.resume("t", decisions=answers)


async def test_the_user_s_words_are_the_step_s_result(agent_on: OpenAgent) -> None:
    """What depends on the question waits, the rest goes on, and nothing of it counts as a call of a tool."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    waiting = await agent.run(plan=plan(WHICH, PRICE, step("f", "double", args={"number": 2})), thread_id="t")
    [request] = waiting.approvals
    assert (waiting.status, request.kind, request.step_id, request.reason) == (
        "paused", "clarification", "s1", "Which item?",
    )  # fmt: skip
    assert dict(shop.calls) == {"double": 1}
    done = await said(agent, waiting, Respond(" ball "))
    assert (done.status, shop.given[-1], done.usage.steps, done.usage.attempts) == ("done", ("price", "ball"), 3, 2)
    assert done.steps[0].output_ref
    assert json.loads(await agent.output("t", done.steps[0].output_ref)) == {"answer": "ball"}


async def test_choices_and_confirmations_are_typed_and_their_answers_checked(agent_on: OpenAgent) -> None:
    """An answer that is none is refused and changes nothing; a yes is true, and a condition may read it."""
    shop = Shop()
    colour = step("c", "ask_user", args={"question": "Which?", "kind": "choice", "choices": ["ball", "cup"]})
    sure = step("k", "ask_user", args={"question": "Sure?", "kind": "confirmation"})
    told = step("p", "price", args={"item": "${c.answer}"}, when="k.answer == `true`")
    agent = await agent_on([shop.kit])
    waiting = await agent.run(plan=plan(colour, sure, told), thread_id="t")
    schemas = [each["answer_schema"] for each in inbox_request(waiting.approvals)["action_requests"]]
    assert [each["enum"] for each in schemas] == [["ball", "cup"], ["yes", "no"]]
    for wrong in ((Respond("tea"), Respond("yes")), (Respond("cup"), Respond("perhaps")), (Approve(), Approve())):
        with pytest.raises(ApprovalConflict):
            await said(agent, waiting, *wrong)
    assert len(await agent.approvals("t")) == 2
    done = await said(agent, waiting, Respond("CUP"), Respond("Yes"))
    assert (done.status, shop.given) == ("done", [("price", "cup")])


async def test_who_does_not_answer_lets_the_step_fail(agent_on: OpenAgent) -> None:
    """What goes on without it does; the same question is not put again."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    alone = {**PRICE, "args": {"item": "ball"}, "depends_on": ["s1"], "on_dependency_failure": "degrade"}
    done = await said(agent, await agent.run(plan=plan(WHICH, alone), thread_id="t"), Reject(message="not now"))
    assert (done.status, done.steps[0].status, shop.calls["price"]) == ("done", "failed", 1)
    assert done.steps[0].failure is not None
    assert (done.steps[0].failure.code, "the user does not answer" in done.steps[0].failure.message) == (
        "REJECTED",
        True,
    )


async def test_an_answer_that_the_step_s_own_criterion_refuses_is_asked_for_again(agent_on: OpenAgent) -> None:
    """The next question is another one, and the first cannot be answered twice."""
    agent = await agent_on([Shop().kit])
    asks = {**WHICH, "success_when": "contains(answer, 'ball')"}
    first = await agent.run(plan=plan(asks, PRICE), thread_id="t")
    again = await said(agent, first, Respond("cup"))
    assert (again.status, again.approvals[0].approval_id != first.approvals[0].approval_id) == ("paused", True)
    assert (await said(agent, again, Respond("football"))).status == "done"


async def test_each_element_of_a_list_has_its_question(agent_on: OpenAgent) -> None:
    """The results come in the list's order, whoever is answered first."""
    each = step("q", "ask_user", args={"question": "How many ${item}?"}, for_each="${inputs.items}")
    agent = await agent_on([Shop().kit])
    waiting = await agent.run(plan=plan(each, answer="${q}"), inputs={"items": ["cups", "balls"]}, thread_id="t")
    assert [request.args["question"] for request in waiting.approvals] == ["How many cups?", "How many balls?"]
    half = await agent.resume("t", decisions={waiting.approvals[1].approval_id: Respond("2")})
    assert len(half.approvals) == 1
    done = await said(agent, half, Respond("3"))
    assert json.loads(done.answer or "") == [{"answer": "3"}, {"answer": "2"}]


@pytest.mark.parametrize("mode", ["all", "none"])
async def test_a_run_that_asks_nobody_has_no_answers(agent_on: OpenAgent, mode: Any) -> None:
    """No yes to everything answers a question: the step fails at once."""
    result = await (await agent_on([Shop().kit])).run(plan=PLAN, approve=mode)
    assert (result.status, result.approvals, result.failures[0].code) == ("failed", (), "REJECTED")


async def test_a_question_that_cannot_be_put_is_a_fault_of_the_plan(agent_on: OpenAgent) -> None:
    """Found before anything runs, as a broken rule of the tool."""
    agent = await agent_on([Shop().kit])
    for args in (
        {"question": "Which?", "kind": "choice", "choices": ["one"]},
        {"question": "?", "choices": ["a", "b"]},
    ):
        with pytest.raises(PlanRejected, match="RULE_VIOLATED"):
            await agent.plan(plan=plan(step("s1", "ask_user", args=args)))


async def test_a_planner_asks_instead_of_planning_and_plans_with_the_answers(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """A plan of nothing but questions is planned anew once they are answered; what the user said stands in the prompt
    in full, and no repair of the run is used up by it."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    endpoint.answers(json.dumps(plan(WHICH)), json.dumps(plan(PRICE, answer="${s2.price}")))
    waiting = await agent.run("what does it cost?", thread_id="t")
    assert ([each.kind for each in waiting.approvals], "The user can be asked" in endpoint.prompt(0)) == (
        ["clarification"], True,
    )  # fmt: skip
    done = await said(agent, waiting, Respond("the red ball"))
    assert (done.status, done.answer, len(endpoint.questions)) == ("done", str(len("the red ball")), 2)
    assert "the red ball" in endpoint.prompt(1)
    assert "This went wrong" not in endpoint.prompt(1)
    assert (done.usage.global_replans, [each.id for each in done.steps]) == (0, ["s1", "s2"])


async def test_a_planner_that_only_asks_is_stopped(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """After three rounds its questions are faults, and the person is asked what to do."""
    agent = await agent_on([Shop().kit], model=endpoint)
    result = None
    for number in range(4):
        endpoint.answers(json.dumps(plan(step(f"q{number}", "ask_user", args={"question": f"And {number}?"}))))
        result = await (said(agent, result, Respond("well")) if result else agent.run("tell me", thread_id="t"))
    assert result is not None
    assert [each.kind for each in result.approvals] == ["question"]
    assert "asked 3 times already" in result.approvals[0].reason


async def test_a_run_that_asks_nobody_offers_no_questions(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Neither the tool nor the words about it stand in the prompt, and a plan that asks all the same has a fault."""
    agent = await agent_on([Shop().kit], model=endpoint)
    endpoint.answers(json.dumps(plan(WHICH)), json.dumps(plan(step("s1", "price", args={"item": "ball"}))))
    result = await agent.run("what does it cost?", approve="none")
    assert (result.status, "ask_user" in endpoint.prompt(0), "asks nobody" in endpoint.prompt(1)) == (
        "done",
        False,
        True,
    )
