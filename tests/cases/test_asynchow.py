"""Task graphs with a known optimum: the schedule reaches it, and stays within its bound with few workers."""

from __future__ import annotations

import asyncio
import heapq
from pathlib import Path
from typing import Any

import pytest

from nodes import schemas
from nodes.beginning import new_head
from nodes.engine import Engine
from nodes.execute import execute
from nodes.given import given_draft
from nodes.plan import plan
from nodes.state import AgentState
from nodes.validate import validate
from plans.limits import Limits
from plans.moves import Status
from plans.schedule import cycle_in, in_order, ready, remaining_path
from tests.cases.shared import lines, needs
from tests.simulation.doors import Wire
from tests.simulation.memory_engine import open_memory_engine
from tests.simulation.server import Server
from tests.simulation.timeline import Timeline, chance, simulated
from tools.registry import Registry, Toolkit

FILE = "asynchow/plans.jsonl"
pytestmark = needs(FILE)

SCALE = 2.0**20
"""Some of these plans take years: a duration is divided by this, exactly, so that each step stays within a timeout."""

YEARS_S = 1e9
"""A lease that nobody needs to renew meanwhile."""

kit = Toolkit("asynchow")


@kit.tool(effect="read", timeout_s=86_400)
async def work(seconds: float) -> float:
    """Take so long."""
    await asyncio.sleep(seconds)
    return seconds


def makespan(edges: dict[str, tuple[str, ...]], duration: dict[str, float], workers: int) -> float:
    """When the last step ends in virtual time, longest remaining path first."""
    priority = remaining_path(edges, duration.__getitem__)
    statuses: dict[str, Status] = {}
    running: list[tuple[float, str]] = []
    now = 0.0
    while len(statuses) < len(edges) or running:
        waiting = sorted(ready(edges, statuses), key=lambda step: -priority[step])
        for step in waiting[: workers - len(running)]:
            statuses[step] = "running"
            heapq.heappush(running, (now + duration[step], step))
        now, ended = heapq.heappop(running)
        statuses[ended] = "done"
    return now


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines(FILE)])
def test_the_schedule_takes_no_longer_than_it_must(case: dict[str, Any]) -> None:
    """With enough workers the optimum exactly; with k, at most path × (1 - 1/k) + work / k."""
    edges = {step["id"]: tuple(step["depends_on"]) for step in case["steps"]}
    duration = {step["id"]: step["duration_s"] for step in case["steps"]}
    optimum, work = case["optimal_makespan_s"], sum(duration.values())
    assert cycle_in(edges) is None
    assert sorted(in_order(edges)) == sorted(edges)
    assert max(remaining_path(edges, duration.__getitem__).values()) == pytest.approx(optimum)
    assert makespan(edges, duration, len(edges)) == pytest.approx(optimum)
    for workers in (1, 2, 3):
        bound = optimum * (1 - 1 / workers) + work / workers
        assert makespan(edges, duration, workers) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("workers", [1_000, 2, 3])
def test_the_engine_itself_takes_no_longer_than_it_must(workers: int) -> None:
    """The real scheduler on virtual time, journal and all: with unlimited workers each plan takes its optimum to the
    second; with k, at most optimum × (1 - 1/k) + work / k."""
    schemas.load()
    timeline = Timeline()
    took = simulated(_all_on_one_engine(timeline, workers), timeline)
    late = []
    for case in lines(FILE):
        optimum, work_s = case["optimal_makespan_s"], sum(step["duration_s"] for step in case["steps"])
        bound = optimum + 1 if workers >= len(case["steps"]) else optimum * (1 - 1 / workers) + work_s / workers
        if not optimum - 1 <= took[case["id"]] <= bound * (1 + 1e-9):
            late.append((case["id"], took[case["id"]], optimum, bound))
    assert len(took) == 386
    assert late == []


async def _all_on_one_engine(timeline: Timeline, workers: int) -> dict[str, float]:
    wire = Wire(Server(timeline), chance(0))
    async with open_memory_engine(wire, Registry.of(kit), lease_s=YEARS_S) as engine:
        return {case["id"]: await _makespan(engine, timeline, case, workers) for case in lines(FILE)}


async def _makespan(engine: Engine, timeline: Timeline, case: dict[str, Any], workers: int) -> float:
    """Seconds from the start of the first step to the end of the last, in the case's own scale."""
    steps = [
        {"tool": "work", "args": {"seconds": step["duration_s"] / SCALE}, "reason": "a case"}
        | {"id": step["id"], "depends_on": step["depends_on"]}
        for step in case["steps"]
    ]
    head = new_head(
        output=Path("out"),
        thread_id=case["id"],
        request_id=case["id"],
        goal="do all of it",
        given_plan=given_draft({"goal": "do all of it", "steps": steps}),
        limits=Limits(concurrency=workers),
    )
    session = await engine.begin(head)
    state = AgentState()
    for before in (plan, validate):
        state.update(await before(state, session))  # type: ignore[typeddict-item]
    began = timeline.now
    await execute(state, session)
    took = timeline.now - began
    assert {session.fold.status(step["id"]) for step in steps} == {"done"}, case["id"]
    await engine.close_session(head.run_id)
    return took * SCALE
