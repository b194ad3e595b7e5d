"""The engine of one simulated process: everything real but wire, clock and chance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

from langgraph.checkpoint.memory import InMemorySaver

from checkpoints.approvals import Approvals
from checkpoints.leases import LEASE_S
from checkpoints.runs import Runs
from checkpoints.sealing import SealedSecrets, SealingKey
from checkpoints.workers import present
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
from tests.simulation.memory_saver import MemorySaver, SaverOfThisLoop
from tools.local import LocalBreakers, LocalCache, LocalFailures, LocalSettings
from tools.ports import Clock, Ports
from tools.registry import Registry
from tools.vault import Vault


def clock_of(wire: Wire) -> Clock:
    """Virtual time, and chance by the seed."""
    timeline = wire.server.timeline
    return Clock(monotonic=lambda: timeline.now, wall=timeline.wall, uniform=wire.chance.uniform)


@asynccontextmanager
async def open_memory_engine(
    wire: Wire,
    registry: Registry,
    *,
    owner: str = "one",
    worker: str = "",
    model: Asks | None = None,
    lease_s: float = LEASE_S,
) -> AsyncIterator[Engine]:
    """An engine on the server at the other end of the wire; what it opened is closed again."""
    clock, database, artifacts = clock_of(wire), MemoryDatabase(wire), MemoryArtifacts(wire)
    scripted = cast("Model | None", model)
    async with AsyncExitStack() as stack:
        engine = Engine(
            options=EngineOptions(output=Path("out")),
            database=database,
            journal=await stack.enter_async_context(MemoryJournal(wire, artifacts)),
            leases=await stack.enter_async_context(MemoryLeases(wire, clock.monotonic, lease_s)),
            runs=Runs(database),
            approvals=Approvals(database),
            artifacts=artifacts,
            connections=MemoryConnections(wire),
            registry=registry,
            ports=_ports(clock, database),
            planner=scripted,
            small=scripted,
            owner=owner,
            worker=stack.enter_context(present(worker)) if worker else "",
        )
        try:
            yield engine
        finally:
            for run_id in dict.fromkeys((*engine.sessions, *engine.closing)):
                await engine.close_session(run_id)


_KEY = SealingKey.of(Path("out"), "no story has secrets")


def _ports(clock: Clock, database: MemoryDatabase) -> Ports:
    failures = LocalFailures(now=clock.monotonic)
    vault = Vault(_KEY.hashing, SealedSecrets(database, _KEY))
    cache = LocalCache(now=clock.monotonic)
    return Ports(LocalBreakers(), LocalSettings(), cache, clock=clock, failures=failures, vault=vault)


_engines: dict[asyncio.AbstractEventLoop, Engine] = {}
_saver = SaverOfThisLoop()


async def _engine_of_this_loop() -> Engine:
    return _engines[asyncio.get_running_loop()]


_GRAPH = build(_engine_of_this_loop).compile(checkpointer=_saver, name="surestep")
"""Compiled once: that takes longer than a whole story."""


def agent_of(engine: Engine, wire: Wire, tables: InMemorySaver) -> Agent:
    """The gateway of the process whose loop runs now, with checkpoints in memory."""
    loop = asyncio.get_running_loop()
    _engines[loop], _saver.of_loop[loop] = engine, MemorySaver(wire, tables, engine.fences)
    return Agent(engine, _GRAPH)


def forget(loop: asyncio.AbstractEventLoop) -> None:
    """Drop what was kept for a process."""
    _engines.pop(loop, None)
    _saver.of_loop.pop(loop, None)
