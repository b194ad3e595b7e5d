"""Whether a plan still holds is asked where it is marked, after judgements about money and before effects."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from werkzeug import Response

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Approve
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import Question, ScriptedModel, completion, refused

PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.price}"})
MARKED = {**PRICE, "verify_after": True}
SEND = step("s3", "send", "s1", args={"to": "ann", "text": "costs ${s1.price}"})
JUDGE: dict[str, Any] = {
    "id": "j", "action": "llm", "instruction": "What is due of ${s1.price}?", "reason": "test",
    "output_schema": {"type": "object", "properties": {"due": {"type": "number"}}, "required": ["due"]},
}  # fmt: skip
PAY = step("p", "book", args={"amount": "${j.due}"})
HOLDS, GONE = [json.dumps({"holds": holds, "reason": "the ball is not for sale"}) for holds in (True, False)]


class Till(Shop):
    """The shop, and a till whose bookings can be made twice without harm."""

    def __init__(self) -> None:
        super().__init__()

        @self.kit.tool(effect="idempotent", risk="low", sensitive_args=())
        async def book(amount: float) -> dict[str, float]:
            """Book so much."""
            self.take("book", amount)
            return {"paid": amount}


class Answers:
    """An endpoint's answers by what is asked: a check, a judgement or a plan."""

    def __init__(
        self, endpoint: ScriptedModel, *checks: str | Response, plans: tuple[dict[str, Any], ...] = ()
    ) -> None:
        self._checks = [completion(each) if isinstance(each, str) else each for each in checks]
        self._plans = [completion(json.dumps(each)) for each in plans]
        self.checks: list[str] = []
        self.plans: list[str] = []
        endpoint.answers(self)

    def __call__(self, question: Question) -> Response:
        """The answer to one question, which is noted under its kind."""
        rules, task = (message["content"] for message in question["messages"])
        if "You check a plan" in rules:
            self.checks.append(task)
            return self._checks.pop(0)
        if "one step of a plan" in rules:
            return completion('{"due": 3}')
        self.plans.append(task)
        return self._plans.pop(0)


async def told(agent: Agent, **run: Any) -> tuple[RunResult, list[str]]:
    """How a run ends, and its notices."""
    notices: list[str] = []
    result = await agent.run(
        **run, on_event=lambda event: notices.append(event.message or "") if event.kind == "notice" else None
    )
    return result, notices


async def test_a_plan_that_holds_goes_on_and_the_step_says_so(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """One question, whose tokens count; the step's result tells what came out, as JSON too."""
    shop, asked = Shop(), Answers(endpoint, HOLDS)
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE), thread_id="t")
    assert (result.status, shop.calls, result.usage.model_calls) == ("done", {"price": 1, "double": 1}, 1)
    assert result.usage.tokens == 18
    checked = {"when": "after", "by": "model", "holds": True, "reason": "the ball is not for sale", "of": ["s1"]}
    assert [each.get("check") for each in result.as_json()["steps"]] == [checked, None]
    assert (await agent.show("t")).steps[0].check == result.steps[0].check
    assert '"result":{"price":4}' in asked.checks[0]


async def test_a_premise_that_is_gone_is_planned_around_and_what_is_finished_stays(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Nothing that depends on the step begins; the planner is told why; the checked step is not called again, and not
    looked at again."""
    shop = Shop()
    anew = plan(step("n1", "double", args={"number": "${s1.price}"}), answer="twice is ${n1.number}")
    asked = Answers(endpoint, GONE, plans=(anew,))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE, {**SEND, "depends_on": ["s2"]}))
    assert (result.status, result.answer, shop.calls) == ("done", "twice is 8", {"price": 1, "double": 1})
    assert (result.usage.global_replans, result.usage.local_replans) == (1, 0)
    assert [each.id for each in result.steps] == ["s1", "n1"]
    assert "PREMISE_BROKEN" in asked.plans[0]
    assert "the ball is not for sale" in asked.plans[0]
    assert len(asked.checks) == 1


async def test_without_a_planner_the_run_ends_and_says_why(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Also where what depends on the step could do without it: the plan does not hold."""
    shop = Shop()
    Answers(endpoint, GONE)
    agent = await agent_on([shop.kit], verifier_model="v", base_url=endpoint.base_url, api_key="k")
    result = await agent.run(plan=plan(MARKED, {**DOUBLE, "on_dependency_failure": "skip"}))
    assert (result.status, shop.calls, [each.code for each in result.failures]) == (
        "failed", {"price": 1}, ["PREMISE_BROKEN"],
    )  # fmt: skip
    assert "the ball is not for sale" in (result.answer or "")


async def test_without_a_model_the_run_goes_on_and_says_once_what_nobody_has_asked(agent_on: OpenAgent) -> None:
    """A mark never blocks; a condition settles it all the same, without a word."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    second = {**DOUBLE, "id": "s4", "verify_after": True}
    result, notices = await told(
        agent, plan=plan(MARKED, second, {**DOUBLE, "id": "s5", "args": {"number": "${s4.number}"}})
    )
    assert (result.status, shop.calls["double"]) == ("done", 2)
    assert [each.check and (each.check.by, each.check.holds) for each in result.steps] == [
        ("nobody", None), ("nobody", None), None,
    ]  # fmt: skip
    assert len([notice for notice in notices if "SURESTEP_VERIFIER_MODEL" in notice]) == 1
    judged = {**MARKED, "success_when": "price > `1`"}
    result, notices = await told(agent, plan=plan(judged, DOUBLE))
    assert (result.steps[0].check and result.steps[0].check.by, notices) == ("expression", [])


async def test_conditions_of_the_plan_come_before_a_model(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """A criterion, and preconditions of all that waits: no question is asked."""
    shop, asked = Shop(), Answers(endpoint)
    agent = await agent_on([shop.kit], model=endpoint)
    judged = {**MARKED, "success_when": "price > `1`"}
    result = await agent.run(
        plan=plan(
            judged, {**DOUBLE, "verify_after": True}, {**SEND, "requires": "s2.number > `1`", "depends_on": ["s2"]}
        )
    )
    assert (result.status, asked.checks) == ("done", [])
    assert [each.check and each.check.holds for each in result.steps] == [True, True, None]


async def test_a_judgement_that_becomes_money_is_looked_at(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Without any mark, in a plan of a person's too; nothing is paid before the answer, and nothing after a no."""
    till = Till()
    asked = Answers(endpoint, GONE, HOLDS, plans=(plan(step("n1", "double", args={"number": 1})),))
    agent = await agent_on([till.kit], model=endpoint)
    result = await agent.run(plan=plan(PRICE, JUDGE, PAY))
    assert (result.status, till.calls) == ("done", {"price": 1, "double": 1})
    assert '"result":{"due":3}' in asked.checks[0]
    result = await agent.run(plan=plan(PRICE, JUDGE, PAY))
    assert (result.status, till.given[-1]) == ("done", ("book", 3.0))


async def test_before_an_effect_that_a_model_has_planned_its_reads_are_looked_at_together(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """One question for all of them, and for all effects that rest on them; a no keeps the effect from beginning."""
    till = Till()
    cup = step("s2", "price", args={"item": "cup"})
    pays = [
        step(f"p{amount[3]}", "book", "s1", "s2", args={"amount": amount}) for amount in ("${s1.price}", "${s2.price}")
    ]
    anew = plan(step("n1", "double", args={"number": "${s2.price}"}), answer="not paid: ${n1.number}")
    asked = Answers(endpoint, HOLDS, GONE, plans=(plan(PRICE, cup, *pays), plan(PRICE, cup, pays[0]), anew))
    agent = await agent_on([till.kit], model=endpoint)
    result = await agent.run("pay twice")
    assert (result.status, till.calls["book"], len(asked.checks)) == ("done", 2, 1)
    assert '"next"' not in asked.checks[0]
    assert "<next>" in asked.checks[0]
    checked = [each.check for each in result.steps if each.check is not None]
    assert [(check.when, check.of, check.holds) for check in checked] == [("before", ("s1", "s2"), True)]
    result = await agent.run("pay once")
    assert (result.status, result.answer, till.calls["book"], till.calls["price"]) == ("done", "not paid: 6", 2, 4)
    assert "PREMISE_BROKEN" in asked.plans[2]


async def test_a_person_s_plan_is_looked_at_before_effects_only_by_a_verifier_of_its_own(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """A person has said where: the small model is not asked, nor is any that is switched off."""
    shop, asked = Shop(), Answers(endpoint, HOLDS)
    agent = await agent_on([shop.kit], model=endpoint)
    assert (await agent.run(plan=plan(PRICE, SEND))).status == "done"
    agent = await agent_on([shop.kit], model=endpoint, verifier_model="off")
    assert (await agent.run(plan=plan(MARKED, SEND))).status == "done"
    assert asked.checks == []
    agent = await agent_on([shop.kit], model=endpoint, verifier_model="v")
    assert (await agent.run(plan=plan(PRICE, SEND))).status == "done"
    assert (len(asked.checks), endpoint.questions[-1]["model"]) == (1, "v")


async def test_each_element_of_an_effect_shares_one_look(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The list is looked at before the first of them begins; a no keeps all of them from beginning."""
    till = Till()
    each = step("p", "book", "s1", args={"amount": "${item}"}, for_each="${inputs.amounts}")
    asked = Answers(endpoint, HOLDS, GONE, plans=(plan(PRICE, each), plan(PRICE, each), plan(DOUBLE)))
    agent = await agent_on([till.kit], model=endpoint)
    result = await agent.run("pay all", inputs={"amounts": [1, 2, 3]})
    assert (result.status, till.calls["book"], len(asked.checks)) == ("done", 3, 1)
    result = await agent.run("pay all again", inputs={"amounts": [1, 2, 3]})
    assert (result.status, till.calls["book"], len(asked.checks)) == ("done", 3, 2)


async def test_an_answer_of_no_use_asks_a_person_before_what_cannot_be_undone(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """It fails closed there, and once a person has said yes nobody is asked again; elsewhere it is told and goes on."""
    shop = Shop()
    asked = Answers(endpoint, '{"holds": "maybe"}', refused(400, "no"))
    agent = await agent_on([shop.kit], model=endpoint)
    result, notices = await told(agent, plan=plan(MARKED, DOUBLE, SEND), thread_id="t")
    assert (result.status, shop.calls) == ("paused", {"price": 1, "double": 1})
    assert "whether the plan still holds could not be found out" in result.approvals[0].reason
    assert any("could not be found out after step s1" in notice for notice in notices)
    result = await agent.resume("t", decisions={result.approvals[0].approval_id: Approve()})
    assert (result.status, shop.calls["send"], len(asked.checks)) == ("done", 1, 1)
    result = await agent.run(plan=plan(MARKED, DOUBLE))
    assert (result.status, result.steps[0].check and result.steps[0].check.holds) == ("done", None)


async def test_what_does_not_depend_on_a_step_goes_on_while_it_is_looked_at(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The verifier answers only when the other branch has ended, which a barrier would never let happen."""
    shop, ended = Shop(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @shop.kit.tool(effect="read")
    async def other() -> int:
        """Another branch."""
        shop.take("other", None)
        ended.set()
        return 1

    def patient(_: Question) -> Response:
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(ended.wait(), 20), loop).result()
        return completion(HOLDS)

    endpoint.answers(patient)
    agent = await agent_on([shop.kit], model=endpoint)
    first = step("a", "double", args={"number": 1})
    result = await agent.run(plan=plan(MARKED, DOUBLE, first, step("b", "other", "a")))
    assert (result.status, shop.given[-1]) == ("done", ("double", 4))


async def test_a_limit_in_the_way_of_a_look_ends_the_run_and_the_look_is_made_later(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Nothing goes on unlooked at: with a higher limit the question is asked, and the run goes on."""
    shop, asked = Shop(), Answers(endpoint, HOLDS)
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE), thread_id="t", limits={"max_tokens": 20})
    assert (result.status, shop.calls, asked.checks) == ("limited", {"price": 1}, [])
    result = await agent.resume("t", limits={"max_tokens": 50_000})
    assert (result.status, shop.calls, len(asked.checks)) == ("done", {"price": 1, "double": 1}, 1)


async def test_a_premise_that_is_gone_waits_for_a_higher_limit_of_replans(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The limit stops the run, as for any other replan; under a higher one the plan is written anew, the verifier's
    answer is known, and nothing that rests on the premise has run in between."""
    shop, asked = Shop(), Answers(endpoint, GONE, plans=(plan(step("n1", "double", args={"number": 5})),))
    agent = await agent_on([shop.kit], model=endpoint)
    result = await agent.run(plan=plan(MARKED, DOUBLE), thread_id="t", limits={"max_replans": 0})
    assert (result.status, result.exit_code, result.raise_limits) == ("limited", 4, {"max_replans": 1})
    assert "the ball is not for sale" in (result.answer or "")
    assert (await agent.resume("t")).status == "limited"
    result = await agent.resume("t", limits={"max_replans": 1})
    assert (result.status, [each.id for each in result.steps]) == ("done", ["s1", "n1"])
    assert (shop.given, len(asked.checks), len(asked.plans)) == ([("price", "ball"), ("double", 5)], 1, 1)
