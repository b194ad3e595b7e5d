"""The engine of one simulated process: everything real but wire, clock and chance."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

from langgraph.checkpoint.memory import InMemorySaver

from checkpoints.approvals import Approvals
from checkpoints.leases import LEASE_S
from checkpoints.runs import Runs
from graph.agent import build
from graph.gateway import Agent
from nodes.engine import Engine, EngineOptions
from nodes.models import Asks, Model
from tests.simulation.doors import (
    MemoryArtifacts,
    MemoryConnections,
    MemoryDatabase,
    MemoryJournal,
    MemoryLeases,
    Wire,
)
from tests.simulation.memory_saver import MemorySaver
from tools.local import LocalBreakers, LocalCache, LocalSettings
from tools.ports import Clock, Ports
from tools.registry import Registry


def clock_of(wire: Wire) -> Clock:
    """Virtual time, and chance by the seed."""
    timeline = wire.server.timeline
    return Clock(monotonic=lambda: timeline.now, wall=timeline.wall, uniform=wire.chance.uniform)


@asynccontextmanager
async def open_memory_engine(
    wire: Wire, registry: Registry, *, owner: str = "one", model: Asks | None = None, lease_s: float = LEASE_S
) -> AsyncIterator[Engine]:
    """An engine on the server at the other end of the wire; what it opened is closed again."""
    clock, database = clock_of(wire), MemoryDatabase(wire)
    scripted = cast("Model | None", model)
    async with AsyncExitStack() as stack:
        engine = Engine(
            options=EngineOptions(output=Path("out")),
            database=database,
            journal=await stack.enter_async_context(MemoryJournal(wire)),
            leases=await stack.enter_async_context(MemoryLeases(wire, clock.monotonic, lease_s)),
            runs=Runs(database),
            approvals=Approvals(database),
            artifacts=MemoryArtifacts(wire),
            connections=MemoryConnections(wire),
            registry=registry,
            ports=Ports(LocalBreakers(), LocalSettings(), LocalCache(now=clock.monotonic), clock=clock),
            planner=scripted,
            small=scripted,
            owner=owner,
        )
        try:
            yield engine
        finally:
            for run_id in dict.fromkeys((*engine.sessions, *engine.closing)):
                await engine.close_session(run_id)


def agent_of(engine: Engine, wire: Wire, tables: InMemorySaver) -> Agent:
    """The gateway on this engine, with checkpoints in memory."""

    async def same() -> Engine:
        return engine

    saver = MemorySaver(wire, tables)
    return Agent(engine, build(same).compile(checkpointer=saver, name="surestep"))
