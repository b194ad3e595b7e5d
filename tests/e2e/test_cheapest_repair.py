"""A hard, a soft and a semantic failure, each mended by the cheapest repair that suffices: verdicts, calls and tokens.

Everything goes over HTTP: one model plans, a small one mends single steps and says whether the plan still holds. Where
a repair asks a model, it is asked in each way in which it can be held to a schema. A question costs what its prompt is
long.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from graph.gateway import Agent
from graph.result import RunResult
from nodes.model_modes import MODES, Mode
from plans.failure import ToolFailure
from tests.nodes.model_server import Question, ScriptedModel, completion
from tests.running import plan, running, step
from tools.registry import Toolkit

ANSWER_TOKENS = 7
PLANNER = "scripted"
REPAIRS = {"retry", "local_replan", "global_replan"}
ORDER = step("order", "get_order", args={"order": "A-1"}, success_when="state == 'sent'")
WHO = step("who", "get_customer", args={"customer": "${order.customer}"}, success_when="level")
TRACK = step("track", "track", args={"shipment": "${order.shipment}"}, success_when="days > `0`")
NOTE = step("note", "write_note", args={"text": "${who.level}: ${track.days} days"})
GOAL = "Note why order A-1 of a good customer is late, and for how many days"
PLAN = plan(ORDER, WHO, TRACK, NOTE, answer="${track.days} days")
UNJUDGED = plan({**ORDER, "success_when": None}, WHO, TRACK, NOTE, answer="${track.days} days")
MENDED = {**TRACK, "tool": "ask_carrier", "args": {"order": "${order.order}"}}
ANEW = plan(step("closed", "write_note", "who", args={"text": "${order.state}"}), answer="it is ${order.state}")


class Desk:
    """The tools, how often each was called, and what they say of the order."""

    def __init__(self, *, state: str = "sent", track: ToolFailure | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.noted: list[str] = []
        self._state, self._track = state, [track] if track else []
        self.kit = Toolkit("desk")
        self._reads()

        @self.kit.tool(effect="idempotent", risk="low")
        async def write_note(text: str) -> dict[str, str]:
            """Write a note into the order's file."""
            self.calls["write_note"] += 1
            self.noted.append(text)
            return {"noted": text}

    def _reads(self) -> None:
        once = {"max_attempts": 1}

        @self.kit.tool(effect="read", retry=once)
        async def get_order(order: str) -> dict[str, Any]:
            """An order: its state, its customer and its shipment."""
            self.calls["get_order"] += 1
            return {"order": order, "state": self._state, "customer": "C-7", "shipment": "S-9"}

        @self.kit.tool(effect="read", retry=once)
        async def get_customer(customer: str) -> dict[str, str]:
            """A customer and how good a one."""
            self.calls["get_customer"] += 1
            return {"customer": customer, "level": "gold"}

        @self.kit.tool(effect="read", retry=once)
        async def track(shipment: str) -> dict[str, int]:
            """How many days a shipment is late."""
            self.calls["track"] += 1
            if self._track:
                raise self._track.pop()
            return {"days": len(shipment)}

        @self.kit.tool(effect="read", retry=once)
        async def ask_carrier(order: str) -> dict[str, int]:
            """How many days an order is late, by its carrier."""
            self.calls["ask_carrier"] += 1
            return {"days": len(order)}


class Models:
    """One endpoint with two models; what was asked of each, of what kind, and what it has cost."""

    def __init__(self, server: HTTPServer, mode: Mode, *plans: dict[str, Any]) -> None:
        self.endpoint = ScriptedModel(server)
        self.asked: list[tuple[str, str]] = []
        self.tokens: Counter[str] = Counter()
        self._mode, self._plans = mode, list(plans)
        self.endpoint.answers(self)

    def __call__(self, question: Question) -> Response:
        """The answer, in the way in which the endpoint is asked."""
        rules, task = (message["content"] for message in question["messages"])
        kind, said = self._said(rules)
        cost = (len(rules) + len(task)) // 4
        self.asked.append((question["model"], kind))
        self.tokens[kind] += cost + ANSWER_TOKENS
        text = json.dumps(said)
        if self._mode == "tools":
            return completion(None, calls=[("answer", text)], prompt_tokens=cost, completion_tokens=ANSWER_TOKENS)
        return completion(text, prompt_tokens=cost, completion_tokens=ANSWER_TOKENS)

    def _said(self, rules: str) -> tuple[str, Any]:
        if "You check a plan" in rules:
            return "check", {"holds": False, "reason": "the order is refunded, so it cannot be late"}
        if "You repair one step" in rules:
            return "mend", plan(MENDED)
        return f"plan {3 - len(self._plans)}", self._plans.pop(0)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    """How the endpoint is asked."""
    mode: Mode = request.param
    return mode


async def verdicts(agent: Agent, result: RunResult) -> tuple[list[str], list[str]]:
    """What was decided: by the journal, in order, and by the edges that the checkpointed state has taken."""
    rows = [row.body.get("verdict") for row in await agent.engine.journal.read(result.run_id)]
    config: Any = {"configurable": {"thread_id": result.thread_id}}
    states = [snapshot.values async for snapshot in agent.graph.aget_state_history(config)]
    edges = dict.fromkeys(state["edge"] for state in reversed(states) if state.get("edge") in REPAIRS)
    return [row["verdict"] for row in rows if row], list(edges)


async def pursued(
    models: Models, desk: Desk, mode: Mode, where: tuple[str, Path], **run: Any
) -> tuple[RunResult, tuple[list[str], list[str]]]:
    """How the goal ends, and by which verdicts."""
    async with running(*where, [desk.kit], model=models.endpoint, small_model="small", structured_output=mode) as agent:
        result = await agent.run(GOAL, approve="all", **run)
        return result, await verdicts(agent, result)


@pytest.fixture
def where(database_url: str, tmp_path: Path) -> tuple[str, Path]:
    """A database and a folder of the test's own."""
    return database_url, tmp_path


async def test_a_soft_failure_costs_a_retry_and_no_token(httpserver: HTTPServer, where: tuple[str, Path]) -> None:
    """The step's second attempt is all: no model is asked, and conditions of the plan say that it still holds."""
    models, desk = Models(httpserver, "text", PLAN, ANEW), Desk(track=ToolFailure("CONFLICT", "somebody was quicker"))
    result, decided = await pursued(models, desk, "text", where)
    assert (result.status, result.answer, desk.noted) == ("done", "3 days", ["gold: 3 days"])
    assert decided == (["retry"], ["retry"])
    assert models.asked == [(PLANNER, "plan 1")]
    assert result.usage.tokens == models.tokens["plan 1"]
    assert desk.calls == {"get_order": 1, "get_customer": 1, "track": 2, "write_note": 1}


async def test_a_hard_failure_costs_one_question_to_the_small_model(
    mode: Mode, httpserver: HTTPServer, where: tuple[str, Path]
) -> None:
    """The one step is another; the planner is not asked, and nothing that has finished is called again."""
    models, desk = Models(httpserver, mode, PLAN, ANEW), Desk(track=ToolFailure("NOT_FOUND", "there is no shipment"))
    result, decided = await pursued(models, desk, mode, where)
    assert (result.status, result.answer, desk.noted) == ("done", "3 days", ["gold: 3 days"])
    assert decided == (["local_replan"], ["local_replan"])
    assert models.asked == [(PLANNER, "plan 1"), ("small", "mend")]
    assert result.usage.tokens == models.tokens["plan 1"] + models.tokens["mend"]
    assert (result.usage.local_replans, result.usage.global_replans) == (1, 0)
    assert desk.calls == {"get_order": 1, "get_customer": 1, "track": 1, "ask_carrier": 1, "write_note": 1}


async def test_a_premise_that_is_gone_costs_a_look_and_a_plan(
    mode: Mode, httpserver: HTTPServer, where: tuple[str, Path]
) -> None:
    """Before its effect the small model sees that the plan does not hold; the planner plans the rest anew, and what has
    finished is kept and not called again."""
    models, desk = Models(httpserver, mode, UNJUDGED, ANEW), Desk(state="refunded")
    result, decided = await pursued(models, desk, mode, where)
    assert (result.status, result.answer, desk.noted) == ("done", "it is refunded", ["refunded"])
    assert decided == (["global_replan"], ["global_replan"])
    assert models.asked == [(PLANNER, "plan 1"), ("small", "check"), (PLANNER, "plan 2")]
    assert result.usage.tokens == sum(models.tokens.values())
    assert [each.id for each in result.steps] == ["order", "who", "track", "closed"]
    assert desk.calls == {"get_order": 1, "get_customer": 1, "track": 1, "write_note": 1}


async def test_a_criterion_that_is_false_costs_a_plan_and_no_look(
    httpserver: HTTPServer, where: tuple[str, Path]
) -> None:
    """Where the plan's own condition sees it, no model is asked whether the plan holds."""
    anew = plan(step("closed", "write_note", args={"text": "not sent"}), answer="it was not sent")
    models, desk = Models(httpserver, "text", PLAN, anew), Desk(state="refunded")
    result, decided = await pursued(models, desk, "text", where)
    assert (result.status, result.answer, desk.noted) == ("done", "it was not sent", ["not sent"])
    assert decided == (["global_replan"], ["global_replan"])
    assert models.asked == [(PLANNER, "plan 1"), (PLANNER, "plan 2")]


async def test_the_cheaper_repair_is_cheaper(httpserver: HTTPServer, where: tuple[str, Path]) -> None:
    """For the same hard failure, where mending the step is not allowed, the plan is written anew: for more than three
    times the tokens. A look at whether the plan holds costs less than mending."""
    costs = {}
    for most in (2, 0):
        anew = plan({**MENDED, "id": "carrier"}, step("n", "write_note", args={"text": "${carrier.days} days"}))
        models, desk = Models(httpserver, "text", PLAN, anew), Desk(track=ToolFailure("NOT_FOUND", "no shipment"))
        limits = {"max_local_replans": most}
        result, decided = await pursued(models, desk, "text", where, limits=limits)
        assert (result.status, decided[0]) == ("done", ["local_replan" if most else "global_replan"])
        costs[most] = models.tokens["mend"] + models.tokens["plan 2"]
    look, desk = Models(httpserver, "text", UNJUDGED, ANEW), Desk(state="refunded")
    await pursued(look, desk, "text", where)
    assert look.tokens["check"] < costs[2] < costs[0] / 3
