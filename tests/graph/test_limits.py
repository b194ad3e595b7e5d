"""Limits of a run, end to end: kept before they are passed, counted over resumes, and raised by who resumes it."""

from __future__ import annotations

import json

import pytest

from plans.errors import PlanRejected
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel, after, completion

PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.price}"})
WORDS = {"id": "w", "action": "llm", "instruction": "Say hello.", "reason": "test", "depends_on": ["s1"]}


async def test_a_plan_that_would_cost_too_many_tokens_is_not_asked_for(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Nothing is sent; the run is limited and says by how much; resumed as it proposes it plans and ends."""
    endpoint.answers(json.dumps(plan(PRICE, answer="${s1.price}")))
    agent = await agent_on([Shop().kit], model=endpoint)
    stopped = await agent.run("what does a ball cost?", thread_id="t", limits={"max_tokens": 1_500})
    assert (stopped.status, stopped.exit_code, endpoint.questions) == ("limited", 4, [])
    assert [failure.code for failure in stopped.failures] == ["LIMIT_TOKENS"]
    assert "1,500 of 1,500 are left" in (stopped.answer or "")
    again = await agent.resume("t")
    assert (again.status, endpoint.questions) == ("limited", [])
    done = await agent.resume("t", limits=stopped.raise_limits)
    assert (done.status, done.answer, done.usage.tokens, len(endpoint.questions)) == ("done", "4", 18, 1)
    assert 1_000 < endpoint.questions[0]["max_completion_tokens"] <= stopped.raise_limits["max_tokens"]


async def test_cost_is_reserved_like_tokens(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """An llm step whose answer could cost more than is left is not asked; what is finished stays, and is named."""
    endpoint.answers("hello")
    prices = {"scripted": {"prompt": 0, "completion": 1_000_000}}
    agent = await agent_on([Shop().kit], model=endpoint, prices=prices)
    stopped = await agent.run(plan=plan(PRICE, WORDS), thread_id="t", limits={"max_cost": 1_000})
    assert (stopped.status, endpoint.questions) == ("limited", [])
    assert [failure.code for failure in stopped.failures] == ["LIMIT_COST"]
    assert "Finished: s1. Still to be done: w." in (stopped.answer or "")
    done = await agent.resume("t", limits=stopped.raise_limits)
    assert (done.status, done.usage.cost, [s.status for s in done.steps]) == ("done", 7.0, ["done", "done"])


async def test_questions_that_fit_one_after_the_other_wait_for_each_other(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Room for one answer at a time: three are asked in turn, and none is refused for what another has reserved."""
    endpoint.answers(after(0.05, completion("hello")))
    agent = await agent_on([Shop().kit], model=endpoint)
    three = [{**WORDS, "id": name, "depends_on": []} for name in ("a", "b", "c")]
    done = await agent.run(plan=plan(*three), limits={"max_tokens": 3_000})
    assert (done.status, done.usage.model_calls, done.usage.tokens) == ("done", 3, 54)


async def test_a_model_is_not_waited_for_beyond_the_run_s_time(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The question is broken off when the run's time is over, and what it may have cost stays counted."""
    endpoint.answers(after(1.5, completion("hello")))
    agent = await agent_on([Shop().kit], model=endpoint)
    alone = {**WORDS, "depends_on": []}
    stopped = await agent.run(plan=plan(alone), thread_id="t", limits={"max_wall_s": 0.6})
    assert (stopped.status, [failure.code for failure in stopped.failures]) == ("limited", ["LIMIT_TIME"])
    assert stopped.usage.wall_s < 1.4
    assert stopped.usage.tokens > 2_000
    endpoint.answers("hello")
    assert (await agent.resume("t", limits={"max_wall_s": 60})).status == "done"


async def test_attempts_of_all_steps_together_are_capped(agent_on: OpenAgent) -> None:
    """Of four elements that are ready at once exactly two run; the count goes on after a resume. A plan that needs more
    attempts than are left is not begun."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    each = step("d", "double", args={"number": "${item}"}, for_each="${inputs.numbers}")
    limits = {"max_total_attempts": 2}
    stopped = await agent.run(plan=plan(each), inputs={"numbers": [1, 2, 3, 4]}, thread_id="t", limits=limits)
    assert (stopped.status, shop.calls["double"], stopped.usage.attempts) == ("limited", 2, 2)
    assert stopped.raise_limits == {"max_total_attempts": 4}
    three = await agent.resume("t", limits={"max_total_attempts": 3})
    assert (three.status, shop.calls["double"]) == ("limited", 3)
    assert (await agent.resume("t", limits={"max_total_attempts": 4})).status == "done"
    many = [step(f"d{number}", "double", args={"number": number}) for number in range(4)]
    never = await agent.run(plan=plan(*many), thread_id="n", limits=limits)
    assert (never.status, shop.calls["double"], [each.code for each in never.failures]) == (
        "limited", 4, ["LIMIT_ATTEMPTS"],
    )  # fmt: skip
    assert (await agent.resume("n", limits=never.raise_limits)).status == "done"


async def test_changes_of_the_plan_are_capped_and_go_on_when_that_is_raised(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """No model is asked for a change that may not be made; raised, the failure is decided about again, not lost."""
    shop = Shop()
    shop.fails("price", ToolFailure("NOT_FOUND", "there is no ball"))
    endpoint.answers(json.dumps(plan({**PRICE, "args": {"item": "cup"}})))
    agent = await agent_on([shop.kit], model=endpoint)
    stopped = await agent.run(plan=plan(PRICE, DOUBLE), thread_id="t", limits={"max_replans": 0})
    assert (stopped.status, stopped.usage.local_replans, endpoint.questions) == ("limited", 0, [])
    assert [failure.code for failure in stopped.failures] == ["NOT_FOUND", "LIMIT_REPLANS"]
    assert stopped.raise_limits == {"max_replans": 1}
    done = await agent.resume("t", limits=stopped.raise_limits)
    assert (done.status, done.usage.local_replans, shop.given[-1]) == ("done", 1, ("double", 3))


async def test_a_wait_beyond_the_run_s_time_is_not_begun(agent_on: OpenAgent) -> None:
    """The tool asks for a minute and the run has less: it ends at once, and says how long it would have to be."""
    shop = Shop()
    shop.fails("double", ToolFailure("RATE_LIMITED", "slow down", delay_s=60.0))
    agent = await agent_on([shop.kit])
    alone = step("d", "double", args={"number": 1})
    stopped = await agent.run(plan=plan(alone), thread_id="t", limits={"max_wall_s": 30.0})
    assert (stopped.status, shop.calls["double"], stopped.usage.wall_s < 20.0) == ("limited", 1, True)
    assert [failure.code for failure in stopped.failures] == ["RATE_LIMITED", "LIMIT_TIME"]
    assert stopped.raise_limits["max_wall_s"] > 61


async def test_the_preview_offers_what_the_run_would_offer(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Neither a tool that is switched off while running, nor one for other roles; and a plan that uses one all the same
    is refused as by the run, from a model or from a file."""
    shop = Shop()

    @shop.kit.tool(effect="read", roles=("owner",))
    def margin(item: str) -> int:
        """What is earned with it."""
        return len(item)

    endpoint.answers(json.dumps(plan(step("s1", "double", args={"number": 2}))))
    agent = await agent_on([shop.kit], model=endpoint)
    await agent.tools.disable("double")
    with pytest.raises(PlanRejected, match="TOOL_UNAVAILABLE"):
        await agent.plan("twice two")
    shown = json.dumps(endpoint.questions[0])
    assert "Price of an item." in shown
    assert "Twice a number." not in shown
    assert "What is earned with it." not in shown
    for given, code in (("margin", "NOT_PERMITTED"), ("double", "TOOL_UNAVAILABLE")):
        args = {"item": "x"} if given == "margin" else {"number": 1}
        with pytest.raises(PlanRejected, match=code):
            await agent.run(plan=plan(step("s1", given, args=args)))
    assert not shop.calls


async def test_a_plan_of_too_many_steps_is_taken_up_under_a_higher_limit(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """No plan, no person to ask, and nothing to mend: the run waits for its limit to be raised, and then the plan that
    was there runs, without another question."""
    endpoint.answers(json.dumps(plan(PRICE, DOUBLE)))
    agent = await agent_on([Shop().kit], model=endpoint)
    stopped = await agent.run("what do two balls cost?", thread_id="t", limits={"max_steps": 1})
    assert (stopped.status, [failure.code for failure in stopped.failures]) == ("limited", ["LIMIT_STEPS"])
    assert (stopped.raise_limits, stopped.plan, len(endpoint.questions)) == ({"max_steps": 2}, None, 3)
    done = await agent.resume("t", limits=stopped.raise_limits)
    assert (done.status, len(done.steps), len(endpoint.questions)) == ("done", 2, 3)


async def test_a_planner_that_reads_the_same_again_and_again_is_told_so_and_stopped(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """Each new plan asks for the price again and draws another conclusion from it: when the price has said the same
    often enough, the plan is refused; where that could not be seen beforehand, the call is."""
    kit = Shop()
    hopeless = {"success_when": "number > `100`"}
    agent = await agent_on([kit.kit], model=endpoint)

    def again(number: int, item: str) -> str:
        price = step(f"p{number}", "price", args={"item": item})
        double = step(f"d{number}", "double", f"p{number}", args={"number": number}, **hopeless)
        return json.dumps(plan(price, double))

    endpoint.answers(again(2, "ball"), again(3, "ball "), again(4, "ball"), again(5, "cup"))
    first = plan(PRICE, {**DOUBLE, **hopeless})
    await agent.run(plan=first, thread_id="t", limits={"max_repeats": 2, "max_global_replans": 2}, approve="none")
    assert kit.calls["price"] == 3
    assert [item for tool, item in kit.given if tool == "price"] == ["ball", "ball", "cup"]
    assert "price has been called 2 times with the same arguments" in endpoint.prompt(2)


async def test_an_instruction_takes_a_limited_run_another_way(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Whoever does not want to raise the limit says what to do instead; what is finished stays."""
    shop = Shop()
    each = step("e", "double", "s1", args={"number": "${item}"}, for_each="${inputs.numbers}")
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": "${s1.price}"}))))
    agent = await agent_on([shop.kit], model=endpoint)
    inputs = {"numbers": [1, 2, 3]}
    stopped = await agent.run(plan=plan(PRICE, each), inputs=inputs, thread_id="t", limits={"max_for_each": 2})
    assert stopped.status == "limited"
    done = await agent.run("only the ball, then", thread_id="t")
    assert (done.status, [s.id for s in done.steps], shop.calls) == ("done", ["s1", "n1"], {"price": 1, "double": 1})
