"""The library as a Python program uses it: what goes in, what comes out, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from graph.settings import Settings
from nodes.events import Event
from plans.decisions import Approve
from plans.errors import ConfigurationError, InvalidInput, PlanRejected, UnknownThread
from plans.plan import Plan, Step
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tools.registry import Toolkit

PRICE = step("s1", "price", args={"item": "ball"})
SEND = step("s2", "send", args={"to": "ann", "text": "costs ${s1.price}"}, require_approval=True)
EACH = step("each", "double", args={"number": "${item}"}, for_each="${inputs.numbers}")


async def test_the_documented_surface(database_url: str, tmp_path: Path) -> None:
    """A toolkit, a plan and an agent as the design shows them; every field of the result is there."""
    kit = Toolkit("orders")

    @kit.tool(effect="read", timeout_s=2)
    async def get_order(order_id: str) -> dict[str, str]:
        """Look one order up."""
        return {"order_id": order_id}

    settings = Settings.load(environment={}, database_url=database_url, folder=tmp_path, output=tmp_path / "out")
    written = Plan(plan_id="p", goal="look", steps=(Step(id="s1", tool="get_order", args={"order_id": "A1"}),))
    async with open_agent(toolkits=[kit], settings=settings) as agent:
        result = await agent.run(plan=written, thread_id="t1")
        assert (result.status, result.exit_code, result.thread_id) == ("done", 0, "t1")
        assert (result.approvals, result.usage.steps) == ((), 1)
        assert result.plan is not None
        assert result.plan.goal == "look"
        assert result.steps[0].output_ref is not None
        assert await agent.output("t1", result.steps[0].output_ref) == b'{"order_id":"A1"}'
        assert await agent.show("t1") == result
        assert agent.graph.name == "surestep"


async def test_events_tell_a_run_from_its_plan_to_its_end(agent_on: OpenAgent) -> None:
    """The plan first, then every start and end of a step."""
    told: list[Event] = []
    agent = await agent_on([Shop().kit])
    await agent.run(plan=plan(PRICE), on_event=told.append)
    assert told[0].kind == "plan"
    assert [(each.step_id, each.status) for each in told[1:]] == [("s1", "running"), ("s1", "done")]


async def test_who_resumes_is_told_where_the_run_stands(agent_on: OpenAgent) -> None:
    """A watcher that comes in the middle hears the plan, what is done and what waits, before anything new."""
    agent = await agent_on([Shop().kit])
    paused = await agent.run(plan=plan(PRICE, SEND), thread_id="t")
    told: list[Event] = []
    decisions = {paused.approvals[0].approval_id: Approve()}
    after = await agent.resume("t", decisions=decisions, on_event=told.append)
    assert after.status == "done"
    assert [(each.kind, each.step_id, each.status) for each in told[:3]] == [
        ("plan", None, None),
        ("step", "s1", "done"),
        ("approval", "s2", "pending"),
    ]
    assert ("step", "s2", "done") in [(each.kind, each.step_id, each.status) for each in told[3:]]


async def test_the_children_of_a_step_are_results_of_their_own(agent_on: OpenAgent) -> None:
    """Each has its result and attempts; the step counts them; the stable JSON stays as it is."""
    agent = await agent_on([Shop().kit])
    result = await agent.run(plan=plan(EACH), inputs={"numbers": [1, 2]})
    (each,) = result.steps
    assert [(child.id, child.status, child.attempts) for child in each.children] == [
        ("each[0]", "done", 1),
        ("each[1]", "done", 1),
    ]
    assert each.attempts == 2
    assert all(child.output_ref for child in each.children)
    assert "children" not in result.as_json()["steps"][0]


@pytest.mark.parametrize("thread", ["", "a\nb", "a\x00b", "-x", "x" * 201, "\ud800"])
async def test_an_id_that_cannot_be_used_is_refused(thread: str, agent_on: OpenAgent) -> None:
    """For threads and requests, before anything is stored; nothing reaches the database that it cannot hold."""
    agent = await agent_on([Shop().kit])
    with pytest.raises(InvalidInput, match="the thread id"):
        await agent.run(plan=plan(PRICE), thread_id=thread)
    with pytest.raises(InvalidInput, match="the request id"):
        await agent.run(plan=plan(PRICE), request_id=thread)
    with pytest.raises(InvalidInput, match="the thread id"):
        await agent.resume(thread)
    assert await agent.runs() == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limits": {"max_step": 1}}, "did you mean max_steps"),
        ({"limits": {"max_steps": 0}}, "max_steps is 0"),
        ({"inputs": {"1x": 1}}, "cannot name an input"),
        ({"inputs": {"x": float("nan")}}, "cannot be stored"),
        ({"inputs": {"x": object()}}, "cannot be stored"),
        ({"inputs": {"x": Path("/nowhere/at/all")}}, "no such file"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_words(given: Any, words: str, agent_on: OpenAgent) -> None:
    """The name, what came and what is expected, in one line."""
    agent = await agent_on([Shop().kit])
    with pytest.raises(InvalidInput, match=words) as refused:
        await agent.run(plan=plan(PRICE), **given)
    assert "\n" not in str(refused.value)


async def test_a_plan_that_is_none_is_refused_with_its_faults(agent_on: OpenAgent) -> None:
    """As a mapping and as a value that JSON cannot hold."""
    agent = await agent_on([Shop().kit])
    with pytest.raises(PlanRejected) as refused:
        await agent.run(plan={"goal": "x", "steps": [{"id": "a"}]})
    assert refused.value.faults
    with pytest.raises(PlanRejected, match="not JSON"):
        await agent.run(plan={"goal": "x", "steps": {object()}})


async def test_a_thread_that_never_ran_is_unknown(agent_on: OpenAgent) -> None:
    """To every call that takes one."""
    agent = await agent_on([Shop().kit])
    for call in (agent.show("nowhere"), agent.resume("nowhere"), agent.decide("nowhere", "s1", Approve(), "me")):
        with pytest.raises(UnknownThread, match="nowhere"):
            await call


async def test_a_misspelled_setting_opens_nothing() -> None:
    """Keywords of open_agent are settings: an unknown one is refused with the nearest."""
    with pytest.raises(ConfigurationError, match="did you mean model"):
        async with open_agent(modle="x"):
            raise AssertionError("it was opened")
