"""Tests of the scheduler on a real database: edges, caps, no barriers, and no step with another step's result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from plans.decisions import Approve
from plans.failure import ToolFailure
from tests.nodes.model_server import ScriptedModel
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit

ONCE = {"max_attempts": 1}


class Stage:
    """Tools that a test holds up and lets go by name, and everything that was seen on the way."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.began: list[str] = []
        self.ended: list[str] = []
        self.now = self.most = 0
        self.fail_once: set[str] = set()
        self.kit = Toolkit("stage")
        self.kit.tool(effect="read", retry=ONCE)(self._act())
        self.kit.tool(effect="irreversible", retry=ONCE)(self._send())

    def hold(self, *names: str) -> None:
        """These step runs hang until they are let go."""
        self.gates |= {name: asyncio.Event() for name in names}

    async def until_began(self, *names: str) -> None:
        """Returns when all of these have begun."""
        async with asyncio.timeout(10):
            while not set(names) <= set(self.began):  # noqa: ASYNC110 (what is waited for has no event of its own)
                await asyncio.sleep(0.005)

    async def _enter(self, name: str, delay: float = 0.0) -> None:
        self.began.append(name)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(delay)
            if name in self.gates:
                await self.gates[name].wait()
            if name in self.fail_once:
                self.fail_once.discard(name)
                raise ToolFailure("CONFLICT", "not this time")
            self.ended.append(name)
        finally:
            self.now -= 1

    def _act(self) -> Any:
        async def act(ctx: ToolContext, given: Any = None, delay: float = 0.0) -> dict[str, Any]:
            """Give back who this is, and what it was given."""
            await self._enter(ctx.step_id, delay)
            return {"me": ctx.step_id, "given": given}

        return act

    def _send(self) -> Any:
        async def send(ctx: ToolContext, given: Any = None) -> dict[str, Any]:
            """The same, with an effect."""
            await self._enter(ctx.step_id)
            return {"me": ctx.step_id, "given": given}

        return send


@contextmanager
def one_agent(database_url: str, folder: Path, stage: Stage) -> Iterator[tuple[asyncio.Runner, Agent]]:
    """An agent for many examples of one property."""
    loaded = Settings.load(environment={}, database_url=database_url, folder=folder, output=folder / "out")
    opening = open_agent([stage.kit], settings=loaded)
    with asyncio.Runner() as runner:
        agent = runner.run(opening.__aenter__())
        try:
            yield runner, agent
        finally:
            runner.run(opening.__aexit__(None, None, None))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int]:
    """Steps that read some of those before them, some of them over a list, with delays of their own; and a cap."""
    count = draw(st.integers(1, 8))
    names = [f"s{number}" for number in range(count)]
    steps = []
    for place, name in enumerate(names):
        needed = draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        args: dict[str, Any] = {"given": {each: f"${{{each}}}" for each in needed}, "delay": draw(delays)}
        more: dict[str, Any] = {}
        if draw(st.integers(0, 3)) == 0:
            args["given"]["item"] = "${item}"
            args["delay"] = "${item}"
            more["for_each"] = "${inputs.delays}"
        tool = draw(st.sampled_from(["act", "act", "send"])) if not more else "act"
        if tool == "send":
            del args["delay"]
            args["given"]["by"] = name
        steps.append(step(name, tool, args=args, **more))
    return steps, draw(st.integers(1, 4))


delays = st.sampled_from([0.0, 0.001, 0.004])


@pytest.mark.timeout(300)
def test_every_step_gets_its_own_inputs_after_all_it_depends_on_within_the_cap(
    database_url: str, tmp_path: Path
) -> None:
    """Random graphs, random delays: each result is its own step's, made from its own dependencies' results, lists in
    order; nothing begins before what it reads has ended; never more at once than the cap, children counted."""
    stage = Stage()
    with one_agent(database_url, tmp_path, stage) as (runner, agent):

        @settings(max_examples=40)
        @given(graphs())
        def example(drawn: tuple[list[dict[str, Any]], int]) -> None:
            steps, cap = drawn
            stage.began.clear()
            stage.ended.clear()
            stage.most = 0
            items = [0.004, 0.0, 0.001]
            result = runner.run(
                agent.run(plan=plan(*steps), inputs={"delays": items}, limits={"concurrency": cap}, approve="all")
            )
            assert result.status == "done", result.answer
            assert stage.most <= cap
            expected = check_results(runner, agent, result.thread_id, steps, items)
            units = [
                unit for one in steps for unit in (children(one["id"], items) if "for_each" in one else [one["id"]])
            ]
            assert sorted(stage.began) == sorted(units)
            assert set(expected) == {one["id"] for one in steps}

        example()


def children(step_id: str, items: list[float]) -> list[str]:
    """The step runs of a step over a list."""
    return [f"{step_id}[{index}]" for index in range(len(items))]


def check_results(
    runner: asyncio.Runner, agent: Agent, thread_id: str, steps: list[dict[str, Any]], items: list[float]
) -> dict[str, Any]:
    """Every stored result is what its step makes of its dependencies' results."""
    stored: dict[str, Any] = {}
    for shown in runner.run(agent.show(thread_id)).steps:
        assert shown.output_ref is not None
        stored[shown.id] = json.loads(runner.run(agent.output(thread_id, shown.output_ref)))
    for one in steps:
        name = one["id"]
        wanted = {each: stored[each] for each in one["args"]["given"] if each in stored}
        made: Any = {"me": name, "given": {**wanted, **({"by": name} if one["tool"] == "send" else {})}}
        if "for_each" in one:
            pairs = zip(children(name, items), items, strict=True)
            made = [{"me": unit, "given": {**wanted, "item": item}} for unit, item in pairs]
        assert stored[name] == made
    return stored


async def test_a_dependent_starts_although_an_unrelated_step_still_runs(database_url: str, tmp_path: Path) -> None:
    """There are no waves: three steps in a row end while a slow one that began with the first has not."""
    stage = Stage()
    stage.hold("slow")
    chain = [step("a", "act"), step("b", "act", "a"), step("c", "act", "b")]
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(step("slow", "act"), *chain)))
        await stage.until_began("slow", "c")
        assert "slow" not in stage.ended
        stage.gates["slow"].set()
        assert (await drive).status == "done"


async def test_the_verdict_on_a_failure_does_not_wait_for_an_unrelated_step(database_url: str, tmp_path: Path) -> None:
    """A step that fails is tried again, and its dependents run, while a slow one is still in flight."""
    stage = Stage()
    stage.hold("slow")
    stage.fail_once.add("a")
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(step("slow", "act"), step("a", "act"), step("b", "act", "a"))))
        await stage.until_began("b")
        assert stage.began.count("slow") == 1
        assert stage.began.count("a") == 2
        assert "slow" not in stage.ended
        stage.gates["slow"].set()
        assert (await drive).status == "done"
        assert stage.began.count("slow") == 1


async def test_an_approval_that_comes_while_others_run_is_picked_up_without_an_interrupt(
    database_url: str, tmp_path: Path
) -> None:
    """Somebody decides while a slow step runs: the approved step runs at once, and the run never pauses."""
    stage = Stage()
    stage.hold("slow")
    guarded = step("g", "send", require_approval=True)
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        drive = asyncio.create_task(
            agent.run(plan=plan(step("slow", "act"), guarded, step("after", "act", "g")), thread_id="t")
        )
        await stage.until_began("slow")
        while not await agent.approvals("t"):  # noqa: ASYNC110 (it is asked in the database)
            await asyncio.sleep(0.01)
        await agent.decide("t", "g", Approve(), "ann")
        await stage.until_began("after")
        assert "slow" not in stage.ended
        stage.gates["slow"].set()
        result = await drive
        kinds = await agent.engine.database.fetch("SELECT kind FROM surestep.journal WHERE kind = 'paused'")
    assert (result.status, kinds) == ("done", [])


async def test_a_read_whose_step_is_planned_anew_gives_no_result_and_is_not_started_twice(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """While two reads hang a third step makes the plan be written anew: what is dropped ends without a trace, what is
    redefined runs as what it is now, and what is kept by its id goes on."""
    stage = Stage()
    stage.hold("same", "changed", "dropped")
    wrong = step("wrong", "act", success_when="me == 'nobody'")
    old = [step("same", "act"), step("changed", "act", args={"given": "old"}), step("dropped", "act"), wrong]
    new = [step("same", "act", risk="low"), step("changed", "act", args={"given": "new"})]
    async with running(database_url, tmp_path, [stage.kit], model=endpoint) as agent:
        endpoint.answers(json.dumps(plan(*new, answer="${changed.given} ${same.me}")))
        drive = asyncio.create_task(agent.run(plan=plan(*old), thread_id="t"))
        await stage.until_began("same", "changed", "dropped")
        async with asyncio.timeout(10):
            while stage.began.count("changed") < 2:  # noqa: ASYNC110 (the new one hangs as well)
                await asyncio.sleep(0.005)
        for gate in stage.gates.values():
            gate.set()
        result = await drive
        rows = await agent.engine.database.fetch("SELECT step_id FROM surestep.journal WHERE kind = 'outcome'")
    assert (result.status, result.answer) == ("done", "new same")
    assert stage.began.count("same") == 1
    assert sorted(row["step_id"] for row in rows) == ["changed", "same", "wrong"]


async def test_cancelling_drops_reads_and_awaits_effects(database_url: str, tmp_path: Path) -> None:
    """Asked to cancel, a run that hangs ends as cancelled: the read is gone, the letter that was on its way has its
    outcome, nothing else begins."""
    stage = Stage()
    stage.hold("look", "letter")
    async with running(database_url, tmp_path, [stage.kit]) as agent:
        steps = [step("look", "act"), step("letter", "send"), step("after", "act", "letter")]
        drive = asyncio.create_task(agent.run(plan=plan(*steps), thread_id="t"))
        await stage.until_began("look", "letter")
        run_id = (await agent.runs())[0].run_id
        assert await agent.engine.leases.request_cancel(run_id) is not None
        async with asyncio.timeout(10):
            while stage.now > 1:  # noqa: ASYNC110 (the read goes, with nothing else to wake the run)
                await asyncio.sleep(0.01)
        assert not drive.done()
        stage.gates["letter"].set()
        result = await asyncio.wait_for(drive, 10)
        again = await agent.resume("t")
    assert (result.status, result.exit_code, again.status) == ("cancelled", 5, "cancelled")
    assert [one.status for one in result.steps] == ["pending", "done", "pending"]
    assert stage.ended == ["letter"]
