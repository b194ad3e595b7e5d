"""What follows when nothing mends a step: its template's simplified plan, a person with a ticket, an honest end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from nodes.events import Event
from plans.decisions import Approve, Decision, Reject, Respond
from plans.errors import ApprovalConflict
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import ONCE, Shop, plan, step
from tests.nodes.model_server import ScriptedModel
from tools.orders import orders

GONE = ToolFailure("NOT_FOUND", "there is no such item")
TEMPLATE = """
name: quote
title: {en: Quote, zh: 报价}
toolkit: shop
critical: CRITICAL
match: {en: ["quote (?P<item>[a-z]+)"], zh: ["(?P<item>[a-z]+)报价"]}
parameters: {item: {about: {en: item, zh: 商品}}}
plan:
  steps:
    - {id: s1, tool: double, args: {number: 4}, reason: first}
    - {id: s2, tool: triple, args: {number: "${s1.number}", item: "<<item>>"}, reason: then}
  answer: "three times is ${s2.number}"
on_exhausted:
  steps:
    - {id: s1, tool: double, args: {number: 4}, reason: first}
    - {id: d1, tool: cached_price, args: {item: "<<item>>"}, depends_on: [s1], reason: what was known}
  answer: "only the old price of <<item>>, ${d1.price}, and twice four, ${s1.number}"
examples:
  - {goal: quote ball, parameters: {item: ball}}
  - {goal: ball报价, parameters: {item: ball}}
"""


class Till(Shop):
    """The shop with a tool that is critical and one that is not; both can be made to fail."""

    def __init__(self) -> None:
        super().__init__()

        async def triple(number: int, item: str = "") -> dict[str, int]:
            """Three times a number."""
            self.take("triple", number)
            return {"number": number * 3}

        async def charge(number: int) -> dict[str, int]:
            """Charge somebody."""
            self.take("charge", number)
            return {"charged": number}

        self.kit.tool(effect="read", retry=ONCE)(triple)
        self.kit.tool(effect="idempotent", retry=ONCE, critical=True)(charge)


def templates(folder: Path, *, critical: bool = False) -> Path:
    """A folder with the template."""
    (folder / "own").mkdir()
    (folder / "own" / "quote.yaml").write_text(TEMPLATE.replace("CRITICAL", str(critical).lower()))
    return folder / "own"


CHARGE = plan(
    step("s1", "double", args={"number": 2}),
    step("s2", "charge", args={"number": "${s1.number}"}),
    answer="charged ${s2.charged}",
)


async def ticketed(agent: Agent, shop: Shop, **more: Any) -> RunResult:
    """A run whose critical step has failed for good: it waits for a person."""
    shop.fails("charge", *[GONE] * 9)
    result = await agent.run(plan=CHARGE, thread_id="t", **more)
    assert (result.status, [each.kind for each in result.approvals]) == ("paused", ["ticket"])
    return result


async def answered(agent: Agent, result: RunResult, decision: Decision) -> RunResult:
    """The run after a person has answered its ticket."""
    [request] = result.approvals
    return await agent.resume("t", decisions={request.approval_id: decision})


async def test_a_simplified_plan_is_run_around_what_is_finished(agent_on: OpenAgent, tmp_path: Path) -> None:
    """The template's, with its holes filled; a revision of its own, whose finished step has not run again."""
    shop = Till()
    shop.fails("triple", GONE)
    agent = await agent_on([shop.kit], templates=templates(tmp_path))
    result = await agent.run("quote ball")
    assert (result.status, result.answer) == ("done", "only the old price of ball, 7, and twice four, 8")
    assert result.plan is not None
    assert (result.plan.source, result.plan.revision, result.plan.template) == ("degraded", 2, "quote")
    assert (dict(shop.calls), result.usage.global_replans) == ({"double": 1, "triple": 1, "cached_price": 1}, 0)


async def test_a_simplified_plan_takes_over_where_a_premise_is_gone_and_nobody_can_plan(
    agent_on: OpenAgent, endpoint: ScriptedModel, tmp_path: Path
) -> None:
    """What a verifier has seen after a finished step ends no run whose template knows another way."""
    shop, folder = Till(), templates(tmp_path)
    written = (folder / "quote.yaml").read_text()
    (folder / "quote.yaml").write_text(written.replace("reason: first", "reason: first, verify_after: true"))
    endpoint.answers(json.dumps({"holds": False, "reason": "eight is no price"}))
    verifier: dict[str, Any] = {"verifier_model": "v", "base_url": endpoint.base_url, "api_key": "k"}
    agent = await agent_on([shop.kit], templates=folder, **verifier)
    result = await agent.run("quote ball")
    assert (result.status, dict(shop.calls)) == ("done", {"double": 1, "cached_price": 1})
    assert (result.plan.source if result.plan else None, len(endpoint.questions)) == ("degraded", 1)


async def test_a_simplified_plan_comes_after_every_replan(
    agent_on: OpenAgent, endpoint: ScriptedModel, tmp_path: Path
) -> None:
    """Where a model is there it has its replans first, useless drafts among them, and all of them are counted."""
    shop = Till()
    shop.fails("triple", *[GONE] * 9)
    endpoint.answers(json.dumps(plan(step("s1", "prize"))))
    agent = await agent_on([shop.kit], templates=templates(tmp_path), model=endpoint)
    result = await agent.run("quote ball")
    assert (result.status, result.plan and result.plan.source) == ("done", "degraded")
    assert (result.usage.local_replans, result.usage.global_replans, len(endpoint.questions)) == (1, 1, 6)


async def test_a_simplified_plan_that_fails_ends_honestly(agent_on: OpenAgent, tmp_path: Path) -> None:
    """It is turned to once in a run; then the answer says what failed, and what is finished."""
    shop = Till()
    shop.fails("triple", GONE)
    shop.fails("cached_price", GONE)
    agent = await agent_on([shop.kit], templates=templates(tmp_path))
    result = await agent.run("quote ball")
    assert (result.status, result.exit_code, dict(shop.calls)) == (
        "failed", 1, {"double": 1, "triple": 1, "cached_price": 1},
    )  # fmt: skip
    assert "there is no such item" in (result.answer or "")
    assert "Finished: s1 (double)" in (result.answer or "")
    rows = await agent.engine.journal.read(result.run_id)
    assert sum(row.body["verdict"]["degraded"] for row in rows if row.kind == "verdict") == 1


async def test_a_critical_template_has_a_person_see_to_it(agent_on: OpenAgent, tmp_path: Path) -> None:
    """After its simplified plan, for that may do: a ticket says all that was tried."""
    shop = Till()
    shop.fails("triple", GONE)
    shop.fails("cached_price", GONE)
    agent = await agent_on([shop.kit], templates=templates(tmp_path, critical=True))
    result = await agent.run("quote ball", thread_id="t")
    [request] = result.approvals
    assert (request.kind, request.step_id) == ("ticket", "d1")
    assert request.args["tried"] == ["1 attempt", "the template's simplified plan"]
    assert request.args["finished"] == ["s1 (double)"]
    assert request.args["failure"] == {"code": "NOT_FOUND", "message": "there is no such item"}


async def test_a_failed_critical_tool_opens_a_ticket(agent_on: OpenAgent) -> None:
    """After its single attempt; the stream tells the ticket with its id, which stands in the question too."""
    shop, told = Till(), list[Event]()
    result = await ticketed(await agent_on([shop.kit]), shop, on_event=told.append)
    tickets = [event for event in told if event.kind == "ticket"]
    assert [(event.step_id, event.status) for event in tickets] == [("s2", result.approvals[0].args["ticket"])]
    assert shop.calls["charge"] == 1


async def test_approving_a_ticket_tries_once_more(agent_on: OpenAgent) -> None:
    """One attempt with what has been mended outside; one that fails again is a ticket of its own."""
    shop = Till()
    agent = await agent_on([shop.kit])
    first = await ticketed(agent, shop)
    again = await answered(agent, first, Approve())
    assert (again.status, shop.calls["charge"]) == ("paused", 2)
    assert again.approvals[0].args["ticket"] != first.approvals[0].args["ticket"]
    shop.failing.clear()
    done = await answered(agent, again, Approve())
    assert (done.status, done.answer, done.steps[1].attempts) == ("done", "charged 4", 3)


async def test_a_ticket_about_a_list_tries_its_failed_elements_again(agent_on: OpenAgent) -> None:
    """What has succeeded of it is not done twice."""
    shop = Till()
    shop.fails("charge", GONE)
    each = step("s1", "charge", args={"number": "${item}"}, for_each="${inputs.numbers}")
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan(each, answer="${s1[1].charged}"), thread_id="t", inputs={"numbers": [1, 2]})
    assert (result.status, result.approvals[0].step_id, shop.calls["charge"]) == ("paused", "s1", 2)
    done = await answered(agent, result, Approve())
    assert (done.status, done.answer, [each.attempts for each in done.steps[0].children]) == ("done", "2", [2, 1])


async def test_an_instruction_to_a_ticket_is_planned_outside_the_caps(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The planner is told the failure and the words, and no replan is counted."""
    shop = Till()
    agent = await agent_on([shop.kit], model=endpoint)
    result = await ticketed(agent, shop, limits={"max_local_replans": 0, "max_global_replans": 0})
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": 5}), answer="${n1.number}")))
    done = await answered(agent, result, Respond("double five instead"))
    assert (done.status, done.answer, done.usage.global_replans) == ("done", "10", 0)
    for words in ("double five instead", "there is no such item"):
        assert words in endpoint.prompt(-1)


async def test_rejecting_a_ticket_is_an_honest_end(agent_on: OpenAgent) -> None:
    """It says what failed, what a person has said, and what is finished."""
    shop = Till()
    agent = await agent_on([shop.kit])
    result = await ticketed(agent, shop)
    ended = await answered(agent, result, Reject(message="write it off"))
    assert (ended.status, ended.exit_code) == ("failed", 1)
    for words in ("there is no such item", result.approvals[0].args["ticket"], "write it off", "Finished: s1"):
        assert words in (ended.answer or "")


async def test_without_a_model_a_ticket_takes_no_instruction(agent_on: OpenAgent) -> None:
    """Nobody could follow it: it is refused, with what can be answered."""
    shop = Till()
    agent = await agent_on([shop.kit])
    result = await ticketed(agent, shop)
    with pytest.raises(ApprovalConflict, match="SURESTEP_MODEL"):
        await answered(agent, result, Respond("do it by hand"))


@pytest.mark.parametrize("mode", ["none", "all"])
async def test_who_asks_nobody_opens_no_ticket(agent_on: OpenAgent, mode: Any) -> None:
    """Saying yes to everything is no repair: the run ends, and says why."""
    shop = Till()
    shop.fails("charge", *[GONE] * 9)
    result = await (await agent_on([shop.kit])).run(plan=CHARGE, approve=mode)
    assert (result.status, result.approvals, shop.calls["charge"]) == ("failed", (), 1)


async def test_a_critical_step_that_its_plan_can_do_without_is_no_ticket(agent_on: OpenAgent) -> None:
    """The plan says what to do without it, and that is done."""
    shop = Till()
    shop.fails("charge", *[GONE] * 9)
    rest = step("s3", "double", "s2", args={"number": 3}, on_dependency_failure="degrade")
    result = await (await agent_on([shop.kit])).run(plan=plan(*CHARGE["steps"], rest))
    assert (result.approvals, result.steps[2].status) == ((), "done")


async def test_other_branches_go_on_while_a_ticket_waits(agent_on: OpenAgent) -> None:
    """Only what depends on the failed step waits for the person."""
    shop = Till()
    slow = step("s3", "triple", args={"number": 5})
    shop.fails("charge", *[GONE] * 9)
    result = await (await agent_on([shop.kit])).run(
        plan=plan(*CHARGE["steps"], slow, step("s4", "double", "s2", "s3", args={"number": 1}))
    )
    assert [each.status for each in result.steps] == ["done", "failed", "done", "pending"]


async def test_a_template_that_is_near_does_what_no_model_could_plan(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """No pattern covers the goal, but words alone say that it does all of it and only reads: nobody is asked."""
    endpoint.answers(json.dumps(plan(step("s1", "prize"))))
    agent = await agent_on([orders], model=endpoint)
    result = await agent.run("上周被退回来、款还没退的货有哪些")
    assert (result.status, result.approvals) == ("done", ())
    assert (result.plan and result.plan.source, result.plan and result.plan.template) == (
        "template",
        "unrefunded_returns",
    )
