"""The graph, top to bottom: one run can be read here. And `open_agent`, the way in for a Python program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph

from checkpoints.background import stop
from graph import names  # noqa: F401  # first: a foreign package under one of our names is told plainly
from graph.leaving import EndOfDrive
from graph.one_door import one_door
from graph.opening import engine_from, saver_for
from graph.settings import Settings
from nodes.dispatch import dispatch
from nodes.engine import Engine
from nodes.entering import EngineSource, Node, asking, in_session
from nodes.execute import execute
from nodes.fallback import fallback
from nodes.finish import finish
from nodes.inbox import entry
from nodes.observe import observe
from nodes.plan import plan
from nodes.replan import replan
from nodes.state import AgentInput, AgentOutput, AgentState, Context
from nodes.validate import validate

if TYPE_CHECKING:
    from graph.gateway import Agent
    from tools.registry import Registry, Toolkit


def build(engines: EngineSource) -> StateGraph[AgentState, Context, AgentInput, AgentOutput]:
    """The graph of one run. Every edge is a decision that a node has written into `state["edge"]`."""
    flow = StateGraph(AgentState, context_schema=Context, input_schema=AgentInput, output_schema=AgentOutput)
    nodes: tuple[Node, ...] = (plan, validate, dispatch, execute, observe, fallback, replan, finish)
    for node in nodes:
        flow.add_node(node.__name__, in_session(node, engines))
    flow.add_node("approve", asking(engines))

    flow.add_conditional_edges(START, entered, {"new_goal": "plan", "instruction": "observe", "continue": "dispatch"})
    flow.add_edge("plan", "validate")
    flow.add_conditional_edges(
        "validate", chosen, {"ready": "dispatch", "redraft": "plan", "repatch": "replan", "give_up": "finish"}
    )
    flow.add_conditional_edges("dispatch", chosen, {"run": "execute", "human_interrupt": "approve", "finish": "finish"})
    flow.add_edge("execute", "observe")
    flow.add_conditional_edges("observe", chosen, AFTER_OBSERVE)
    flow.add_edge("fallback", "dispatch")
    flow.add_edge("replan", "validate")
    flow.add_conditional_edges("approve", chosen, {"approved": "dispatch", "edited": "validate", "rejected": "observe"})
    flow.add_edge("finish", END)
    return flow


AFTER_OBSERVE: dict[Hashable, str] = {
    "next": "dispatch",
    "retry": "execute",
    "fallback": "fallback",
    "local_replan": "replan",
    "global_replan": "plan",
    "finish": "finish",
}


async def entered(state: AgentState) -> str:
    """Where a new invocation enters: a run that a limit has stopped before it had a plan goes on with its goal.

    Routers are coroutines: LangGraph sends a plain function to a thread.
    """
    where = entry(state)
    return "new_goal" if where == "continue" and state.get("current_plan") is None else where


async def chosen(state: AgentState) -> str:
    """The decision that the node before has made; a router names decisions, it does not make them."""
    return state["edge"]


_opened: dict[asyncio.AbstractEventLoop, asyncio.Task[tuple[Engine, AsyncExitStack]]] = {}


async def engine_of_this_loop() -> Engine:
    """The engine for a server that runs the graph (`langgraph dev`): opened on first use, one per event loop."""
    loop = asyncio.get_running_loop()
    opening = _opened.get(loop)
    if opening is None or (opening.done() and opening.exception() is not None):
        opening = _opened[loop] = loop.create_task(_open_for_good())
    engine, _ = await asyncio.shield(opening)
    return engine


async def _open_for_good() -> tuple[Engine, AsyncExitStack]:
    settings = await asyncio.to_thread(Settings.load)
    stack = AsyncExitStack()  # kept beside the engine: a stack that is collected closes what it holds
    engine = await stack.enter_async_context(engine_from(settings, served=True))
    agent = await stack.enter_async_context(_agent_of(engine, settings, served=True))
    if settings.sweep_every_s is not None:
        sweeping = asyncio.create_task(agent.sweeper.forever(settings.sweep_every_s), name="sweeper")
        stack.push_async_callback(stop, sweeping)
    return engine, stack


def engine_if_open() -> Engine | None:
    """The engine that `engine_of_this_loop` has opened; None before it has."""
    opening = _opened.get(asyncio.get_running_loop())
    return opening.result()[0] if opening is not None and opening.done() and opening.exception() is None else None


graph = one_door(build(engine_of_this_loop).compile(name="surestep")).with_config(
    callbacks=[EndOfDrive(engine_if_open)]
)
"""For `langgraph.json`: compiled without a checkpointer, because the server brings its own."""


@asynccontextmanager
async def open_agent(
    toolkits: Sequence[Toolkit] | Registry | None = None,
    *,
    settings: Settings | None = None,
    **overrides: Any,
) -> AsyncIterator[Agent]:
    """An agent that owns its database pool, journal and work in flight; leaving the block ends all of them.

    `toolkits` are exactly these; None means those of the settings and the built-in ones. Keywords override settings:
    `database_url=None` is the embedded PostgreSQL, `model="…"` the planner. Raises ConfigurationError.
    """
    loaded = settings if settings is not None else await asyncio.to_thread(lambda: Settings.load(**overrides))
    async with engine_from(loaded, toolkits) as engine, _agent_of(engine, loaded, served=False) as agent:
        yield agent


@asynccontextmanager
async def _agent_of(engine: Engine, settings: Settings, *, served: bool) -> AsyncIterator[Agent]:
    """The agent of an open engine. What a server has begun goes on by it: `served` says that this process is one."""
    from graph.gateway import Agent
    from graph.notifying import notifier_from, telling
    from graph.served import Server, server_from

    async def same() -> Engine:
        return engine

    server = server_from(settings) or (Server(None) if served else None)
    notifier = notifier_from(settings, engine)
    async with saver_for(engine) as saver, telling(notifier):
        flow = one_door(build(same).compile(checkpointer=saver, name="surestep"))
        yield Agent(engine, flow, notifier=notifier, server=server)
