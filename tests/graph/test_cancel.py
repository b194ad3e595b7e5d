"""A run is ended from outside, whoever drives it: reads are cut off, effects end, nothing new starts."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

import pytest

from graph.gateway import Agent
from nodes.beginning import new_head
from nodes.events import Event
from nodes.observe import observe
from nodes.requests import run_record
from plans.errors import RunBusy, UnknownThread
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.graph.program import PATIENCE_S, Project, Run, stopped_by
from tests.nodes.model_server import ScriptedModel
from tests.nodes.rows import a_plan, a_step, failed, planned
from tools.registry import Toolkit

RUN = ("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t")
BUSY = plan(
    step("s1", "slow_send", args={"to": "ann", "seconds": 2}),
    step("s2", "wait", args={"seconds": 60}),
    step("s3", "block", args={"seconds": 60}),
    step("s4", "double", "s1", args={"number": 1}),
    step("s5", "send", "s1", args={"to": "bob", "text": "hi"}),
)
ASKING = plan(
    step("s1", "price", args={"item": "ball"}),
    step("s2", "send", args={"to": "ann", "text": "costs ${s1.price}"}, require_approval=True),
)


async def rows(agent: Agent) -> list[dict[str, Any]]:
    """Everything the journal holds."""
    return list(
        await agent.engine.database.fetch("SELECT kind, step_id FROM surestep.journal ORDER BY run_id, fence, n")
    )


def test_a_run_that_works_elsewhere_is_ended_from_another_process(project: Project, surestep: Run) -> None:
    """The reads are cut off, a thread's too; the effect is awaited and recorded; its dependents never start."""
    project.write("p.json", BUSY)
    child = project.start(*RUN)
    for call in ("begin ann", "wait 60.0", "block 60.0"):
        project.wait_for(call, child)
    begun = time.monotonic()
    ended = surestep("cancel", "t", "--json")
    assert time.monotonic() - begun < 15
    assert (ended.code, ended.json["status"]) == (5, "cancelled"), ended
    assert f":{child.pid} drives this run and was asked to end it" in ended.err
    assert [each["status"] for each in ended.json["steps"]] == ["done", *["pending"] * 4]
    assert "cancelled because somebody asked for it" in ended.json["answer"]
    out, _ = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, b"cancelled" in out) == (5, True), out
    assert sorted(project.calls()) == ["begin ann", "block 60.0", "end ann", "wait 60.0"]


def test_a_run_whose_worker_was_killed_is_ended_and_names_what_is_not_known(project: Project, surestep: Run) -> None:
    """The effect in doubt is named and stays recorded as such; nothing is sent again; a second cancel is none."""
    project.write("p.json", plan(step("s1", "slow_send", args={"to": "ann", "seconds": 60})))
    child = project.start(*RUN)
    project.wait_for("begin ann", child)
    stopped_by(child, signal.SIGKILL)
    ended = surestep("cancel", "t")
    assert ended.code == 5, ended
    assert "whether slow_send of step s1 has happened is not known" in ended.out
    shown = surestep("show", "t", "--json").json
    assert (shown["status"], shown["steps"][0]["status"]) == ("cancelled", "running")
    again = surestep("cancel", "t", "--json")
    assert (again.code, "had ended before (cancelled); nothing was changed" in again.err) == (5, True)
    assert again.json == shown
    assert surestep("resume", "t", "--toolkit", "mykit:kit").code == 5
    assert project.calls() == ["begin ann"]


async def test_a_paused_run_is_ended_and_its_questions_withdrawn(agent_on: OpenAgent) -> None:
    """Nobody drives it, so it is ended here; what it asked is asked no more; the thread takes the next goal."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    paused = await agent.run(plan=ASKING, thread_id="t")
    assert paused.status == "paused"
    ended = await agent.cancel("t")
    assert (ended.status, ended.exit_code, ended.approvals) == ("cancelled", 5, ())
    assert await agent.approvals() == []
    assert [each.status for each in await agent.engine.approvals.of_run(paused.run_id)] == ["withdrawn"]
    after = await agent.run(plan=plan(step("s1", "price", args={"item": "hat"})), thread_id="t")
    assert (after.status, after.run_id != paused.run_id) == ("done", True)
    assert shop.calls == {"price": 2}


async def test_two_cancels_at_once_are_one_end(agent_on: OpenAgent) -> None:
    """Both are told the same, and a third changes no row."""
    agents = [await agent_on([Shop().kit]) for _ in range(2)]
    await agents[0].run(plan=ASKING, thread_id="t")
    first, second = await asyncio.gather(*(agent.cancel("t") for agent in agents))
    assert (first, first.status) == (second, "cancelled")
    before = await rows(agents[0])
    assert [row["kind"] for row in before].count("finish") == 1
    assert await agents[1].cancel("t") == first
    assert await rows(agents[0]) == before


async def test_a_run_that_has_ended_stays_as_it_is(agent_on: OpenAgent) -> None:
    """Its result is given; a later run of the thread is not cancelled by it."""
    agent = await agent_on([Shop().kit])
    done = await agent.run(plan=plan(step("s1", "price", args={"item": "ball"})), thread_id="t")
    assert (await agent.cancel("t"), done.status) == (done, "done")
    again = await agent.run(plan=plan(step("s1", "price", args={"item": "ball"})), thread_id="t")
    assert again.status == "done"


async def test_a_limited_run_is_ended(agent_on: OpenAgent) -> None:
    """It could have gone on with a higher limit; now it does not."""
    agent = await agent_on([Shop().kit])
    limited = await agent.run(
        plan=plan(step("s1", "price", args={"item": "ball"})), thread_id="t", limits={"max_wall_s": 0.000001}
    )
    assert limited.status == "limited"
    assert (await agent.cancel("t")).status == "cancelled"
    assert (await agent.resume("t", limits={"max_wall_s": 60})).status == "cancelled"


async def test_who_asked_may_die_and_whoever_goes_on_ends_the_run(agent_on: OpenAgent) -> None:
    """The wish is on the lease row: a resume, even one with a yes to everything, ends the run as cancelled."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    paused = await agent.run(plan=ASKING, thread_id="t")
    await agent.engine.leases.request_cancel(paused.run_id)
    assert (await agent.resume("t", approve="all")).status == "cancelled"
    assert shop.calls == {"price": 1}


async def test_a_run_that_was_only_stored_is_ended_without_a_plan(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Its worker died before it did anything: no model is asked for a plan that nobody wants."""
    agent = await agent_on([Shop().kit], model=endpoint)
    head = new_head(output=agent.engine.options.output, thread_id="t", request_id="q", goal="something new")
    await agent.engine.runs.create(run_record(head))
    ended = await agent.cancel("t")
    assert (ended.status, ended.plan, ended.answer) == ("cancelled", None, "cancelled because somebody asked for it")
    assert endpoint.questions == []


async def test_a_driver_that_takes_its_time_is_named(agent_on: OpenAgent) -> None:
    """The wait is bounded: who drives the run is told, and the run ends all the same once the effect has."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    kit = Toolkit("slow")

    @kit.tool(effect="irreversible")
    async def send() -> str:
        """Sends when it is allowed to."""
        begun.set()
        await may_end.wait()
        return "sent"

    there, here = await agent_on([kit]), await agent_on([kit])
    told: list[Event] = []
    running = asyncio.create_task(there.run(plan=plan(step("s1", "send"), step("s2", "send", "s1")), thread_id="t"))
    await begun.wait()
    with pytest.raises(RunBusy, match=f"asked to end and has not within 0.3 s.*{there.engine.owner}"):
        await here.cancel("t", wait_s=0.3, on_event=told.append)
    assert [event.kind for event in told] == ["notice"]
    may_end.set()
    assert ((await here.cancel("t")).status, (await running).status) == ("cancelled", "cancelled")
    assert [row["step_id"] for row in await rows(here) if row["kind"] == "intent"] == ["s1"]


async def test_an_effect_that_is_about_to_start_does_not(agent_on: OpenAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wish comes while the step asks whether its tool is switched on: no intent is written, nothing is sent."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    settings = agent.engine.ports.settings
    look_up = settings.get

    async def and_then_somebody_cancels(tool: str) -> Any:
        for session in agent.engine.sessions.values():
            session.lease.cancel.set()
        return await look_up(tool)

    monkeypatch.setattr(settings, "get", and_then_somebody_cancels)
    result = await agent.run(plan=plan(step("s1", "send", args={"to": "ann", "text": "hi"})), thread_id="t")
    assert (result.status, result.steps[0].status, shop.calls["send"]) == ("cancelled", "pending", 0)
    assert "intent" not in {row["kind"] for row in await rows(agent)}


async def test_nothing_is_mended_once_the_run_is_to_end(agent_on: OpenAgent) -> None:
    """A step that has failed as the wish comes gets no verdict: no retry, no alternative, no model that repairs it."""
    agent = await agent_on([Shop().kit])
    head = new_head(output=agent.engine.options.output, thread_id="t", request_id="q", goal="something new")
    session = await agent.engine.begin(head)
    for kind, unit, attempt, body in (planned(a_plan(a_step("s1", tool="price"))), failed("s1", code="NOT_FOUND")):
        await session.record(kind, unit, attempt, body=body)
    session.lease.cancel.set()
    assert await observe({}, session) == {"edge": "next"}
    assert list(session.fold.undecided) == ["s1"]


async def test_an_unknown_thread_cannot_be_cancelled(agent_on: OpenAgent) -> None:
    """The sentence says where to look."""
    agent = await agent_on([Shop().kit])
    with pytest.raises(UnknownThread, match="no run was ever started on thread 'nope'; `surestep runs`"):
        await agent.cancel("nope")


def test_the_command_refuses_an_unknown_thread(surestep: Run) -> None:
    """One sentence, exit 2."""
    surestep("cancel", "nope").refuses("no run was ever started on thread 'nope'")
