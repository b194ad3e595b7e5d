"""What a child process does: it drives the run of its order to the end, unless it dies at the point it was told."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from langgraph.types import Command

from checkpoints import crash_points
from graph.agent import build
from graph.gateway import Agent
from graph.opening import options_from, saver_for
from graph.result import RunResult
from graph.settings import Settings
from nodes import schemas
from nodes.engine import Engine
from nodes.engine_opening import open_engine
from nodes.model_settings import ModelSettings
from nodes.models import Model, ModelAnswer
from nodes.prompts import Rendered
from plans.decisions import DECISION, ApprovalRequest, Approve, Decision, Respond
from plans.errors import ApprovalConflict, RunBusy
from plans.values import JSON
from tests.recovery.kit import INPUTS, PLAN, World, model_answer
from tools.registry import Registry

Action = Literal["kill", "interrupt", "stop", "cut"]
Durability = Literal["sync", "async", "exit"]


@dataclass(frozen=True)
class Order:
    """What a child is to do.

    At its nth coming to the point `at` it is killed, interrupted, stopped (SIGSTOP), or all its connections to the
    database are cut. With `durability` the run is started and answered through LangGraph's own methods, as a foreign
    caller would; else, and whenever it is resumed, through the gateway. Questions are answered (`unknown` is the answer
    about what is in doubt; without it the ledger is asked), unless `answers` is false. With `request` it makes the same
    goal a new request on a thread whose run has ended, with `cancel` it cancels the run where it waits. One
    read takes `slow_s`; `patience_s` is how long it waits for a run that somebody else drives. `limits` are those of
    the run, from here on.
    """

    url: str
    folder: str
    book: str
    ledger: int
    name: str = "child"
    at: str | None = None
    nth: int = 1
    action: Action = "kill"
    durability: Durability | None = None
    lease_s: float = 30.0
    slow_s: float = 0.0
    answers: bool = True
    unknown: dict[str, str] | None = None
    request: str | None = None
    cancel: bool = False
    patience_s: float = 30.0
    limits: dict[str, float] | None = None

    @property
    def report(self) -> Path:
        """Where the child writes how it ended."""
        return Path(self.folder) / f"{self.name}.json"


class LedgerModel(Model):
    """The scripted model; the ledger notes each question."""

    def __init__(self, order: Order) -> None:
        super().__init__(ModelSettings("scripted"))
        self._order = order

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The answer that the script has for this prompt."""
        asked = {"tool": "model", "unit": "", "key": "", "args": prompt.sha256, "honour": False}
        await asyncio.to_thread(_say, self._order, asked)
        text = model_answer(f"{prompt.rules}\n{prompt.task}")
        return ModelAnswer(text, "stop", None, 11, 7, "scripted", 0.0)


def _say(order: Order, asked: Mapping[str, Any]) -> Any:
    with socket.create_connection(("127.0.0.1", order.ledger)) as line, line.makefile("rw") as text:
        text.write(json.dumps({"book": order.book, **asked}) + "\n")
        text.flush()
        return json.loads(text.readline())


class Listener:
    """Counts the points that are reached, and acts at the one of the order."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.reached: Counter[str] = Counter()

    def __call__(self, name: str) -> None:
        """The engine is at this point."""
        self.reached[name] += 1
        if (name, self.reached[name]) != (self._order.at, self._order.nth):
            return
        match self._order.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "cut":
                cut(self._order.url)


def cut(url: str) -> None:
    """End all sessions of this database but the one that says so."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def run(order: Order) -> None:
    """Do what the order says, and write down how it ended."""
    listener = crash_points.hook = Listener(order)
    result, state, waiting = asyncio.run(_drive(order))
    ended = {
        "status": result.status,
        "answer": result.answer,
        "steps": {step.id: step.output_ref for step in result.steps},
        "approvals": [request.model_dump(mode="json") for request in result.approvals],
        "state": state,
        "waiting": waiting,
        "run_id": result.run_id,
        "reached": dict(listener.reached),
        "modules": sorted(sys.modules),
    }
    order.report.write_text(json.dumps(ended), "utf-8")


@asynccontextmanager
async def _agent(order: Order) -> AsyncIterator[Agent]:
    folder = Path(order.folder)
    settings = Settings.load(environment={}, database_url=order.url, folder=folder, output=folder / "out")
    options = dataclasses.replace(options_from(settings), lease_s=order.lease_s)
    registry = Registry.of(World(order.ledger, order.book, order.slow_s).kit)
    schemas.load()
    async with open_engine(options, registry=registry, planner=LedgerModel(order)) as engine:

        async def same() -> Engine:
            return engine

        async with saver_for(engine) as saver:
            yield Agent(engine, build(same).compile(checkpointer=saver, name="surestep"))


async def _drive(order: Order) -> tuple[RunResult, str | None, int]:
    """The result of the run, how it stands by LangGraph's own state of the thread, and how many questions wait."""
    async with _agent(order) as agent:
        known = None if order.request else await agent.engine.runs.latest(order.book)
        if known is None and order.durability is not None:
            await _as_a_stranger(agent, order, order.durability)
        elif known is None:
            with suppress(RunBusy):
                request = order.request or order.book
                await agent.run(plan=PLAN, inputs=INPUTS, thread_id=order.book, request_id=request, limits=order.limits)
        result = await (agent.cancel(order.book) if order.cancel else _to_the_end(agent, order))
        state = await agent.graph.aget_state({"configurable": {"thread_id": order.book}})
        return result, state.values.get("status"), len(await agent.approvals(order.book))


async def _to_the_end(agent: Agent, order: Order) -> RunResult:
    until = time.monotonic() + order.patience_s
    while True:
        decisions = await _decisions(agent, order) if order.answers else {}
        try:
            result = await agent.resume(order.book, decisions=decisions, limits=order.limits)
        except (RunBusy, ApprovalConflict):  # another one drives it, or was quicker with the same answer
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
            continue
        if not order.answers or result.status not in ("paused", "running"):  # running: somebody else goes on with it
            return result


async def _decisions(agent: Agent, order: Order) -> dict[str, Decision]:
    return {each.approval_id: await _decision(order, each) for each in await agent.approvals(order.book)}


async def _decision(order: Order, request: ApprovalRequest) -> Decision:
    """A person who is asked whether something has happened looks into the ledger; anything else is approved."""
    if request.kind == "unknown_outcome" and order.unknown:
        return DECISION.validate_python(order.unknown)
    if request.kind == "unknown_outcome":
        calls = await asyncio.to_thread(_say, order, {})
        for call in calls:
            if call["unit"] == request.step_id and call["tool"] == request.tool:
                return Respond(json.dumps({"receipt": call["receipt"]}))
    return Approve()


async def _as_a_stranger(agent: Agent, order: Order, durability: Durability) -> None:
    config: Any = {"configurable": {"thread_id": order.book}}
    given: Any = {"goal": PLAN["goal"], "plan": PLAN, "inputs": INPUTS, "request_id": order.book}
    while True:
        await agent.graph.ainvoke(given, config, durability=durability)
        interrupts = (await agent.graph.aget_state(config)).interrupts
        if not interrupts:
            return
        decisions = [
            (await _decision(order, ApprovalRequest.model_validate(each))).model_dump()
            for each in await _asked(agent, order)
        ]
        given = Command(resume={interrupts[0].id: {"decisions": decisions}})


async def _asked(agent: Agent, order: Order) -> list[Any]:
    state = await agent.graph.aget_state({"configurable": {"thread_id": order.book}})
    return [request.model_dump() for request in state.values["approvals"]]
