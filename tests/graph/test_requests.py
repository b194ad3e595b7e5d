"""The same request, made more than once: one run and one answer, whoever drives it and whoever dies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from nodes.events import Event
from plans.decisions import Approve
from plans.errors import UsageError
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.graph.program import PATIENCE_S, Project

SLOW = plan(step("s1", "slow", args={}), step("s2", "price", "s1", args={"item": "ball"}), answer="${s2.price}")
REQUEST: dict[str, Any] = {"plan": SLOW, "request_id": "r-1"}


STUCK = '''
import asyncio
from mykit import CALLS, note
from tools.registry import Toolkit

kit = Toolkit("stuck")


@kit.tool(effect="read", timeout_s=100)
async def once() -> dict[str, bool]:
    """Hangs when it is called for the first time."""
    first = not CALLS.exists()
    note("once")
    await asyncio.sleep(60 if first else 0)
    return {"late": not first}
'''


class SlowShop(Shop):
    """A shop with a read that takes its time, and says when it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

        @self.kit.tool(effect="read", timeout_s=60)
        async def slow() -> dict[str, bool]:
            """Waits until it may go on."""
            self.calls["slow"] += 1
            self.begun.set()
            await self.go_on.wait()
            return {"slow": True}


async def test_a_request_made_again_while_it_is_served_waits_for_the_one_answer(agent_on: OpenAgent) -> None:
    """Ten callers at once, on threads of their own: each step runs once, and all ten have the same result."""
    shop = SlowShop()
    agent = await agent_on([shop.kit])
    callers = [asyncio.create_task(agent.run(thread_id=f"t{n}", **REQUEST)) for n in range(10)]
    await shop.begun.wait()
    shop.go_on.set()
    results = await asyncio.gather(*callers)
    assert {(result.run_id, result.status, result.answer) for result in results} == {(results[0].run_id, "done", "4")}
    assert (shop.calls["slow"], shop.calls["price"]) == (1, 1)


async def test_another_worker_s_run_is_waited_for_and_told_of(database_url: str, tmp_path: Path) -> None:
    """Two agents on one database: the second says whose run it waits for, and gives the first one's answer."""
    shop, told, heard = SlowShop(), list[Event](), asyncio.Event()

    def hear(event: Event) -> None:
        told.append(event)
        heard.set()

    settings = Settings.load(environment={}, database_url=database_url, folder=tmp_path, output=tmp_path / "out")
    async with open_agent([shop.kit], settings=settings) as first, open_agent([shop.kit], settings=settings) as second:
        serving = asyncio.create_task(first.run(**REQUEST))
        await shop.begun.wait()
        waiting = asyncio.create_task(second.run(**REQUEST, on_event=hear))
        await heard.wait()
        assert not waiting.done()
        shop.go_on.set()
        assert (await waiting).answer == (await serving).answer == "4"
    assert "being driven by" in (told[0].message or "")
    assert (shop.calls["slow"], shop.calls["price"]) == (1, 1)


async def test_a_run_that_pauses_gives_its_question_to_all_who_made_the_request(agent_on: OpenAgent) -> None:
    """Each caller gets the handle of the one run; after the answer the same request gives the end."""
    agent: Agent = await agent_on([Shop().kit])
    asking: dict[str, Any] = {
        "plan": plan(step("s1", "price", args={"item": "ball"}, require_approval=True)),
        "request_id": "r-2",
    }
    results = await asyncio.gather(*(agent.run(**asking) for _ in range(3)))
    [approval] = {result.approvals[0].approval_id for result in results}
    assert {result.status for result in results} == {"paused"}
    await agent.resume(results[0].thread_id, decisions={approval: Approve()})
    assert (await agent.run(**asking)).status == "done"


def test_who_waits_takes_over_when_the_other_process_dies(project: Project) -> None:
    """The first process is killed in the middle: the second, which waited, goes on and answers."""
    project.write("stuck.py", STUCK)
    project.write("p.json", plan(step("s1", "once"), step("s2", "double", "s1", args={"number": 2})))
    run = ("run", "--plan", "p.json", "--request-id", "r-3", "--toolkit", "mykit:kit", "--toolkit", "stuck:kit")
    first = project.start(*run)
    project.wait_for("once", first)
    second = project.start(*run)
    assert second.stderr is not None
    heard = next((line for line in second.stderr if b"is waited for" in line), b"")
    first.kill()
    second.communicate(timeout=PATIENCE_S)
    first.communicate()
    assert f":{first.pid}" in heard.decode()
    assert second.returncode == 0
    assert project.calls() == ["once", "once", "double 2"]


async def test_a_request_at_the_graph_s_own_door_is_waited_for_on_another_thread(agent_on: OpenAgent) -> None:
    """Two threads of a server with one request id: the steps run once, and both threads end with the answer."""
    shop = SlowShop()
    agent = await agent_on([shop.kit])
    given: Any = {"plan": SLOW, "goal": "slowly", "request_id": "r-4"}
    first = asyncio.create_task(agent.graph.ainvoke(given, {"configurable": {"thread_id": "a"}}))
    await shop.begun.wait()
    second = asyncio.create_task(agent.graph.ainvoke(given, {"configurable": {"thread_id": "b"}}))
    await asyncio.sleep(0.5)
    assert not second.done()
    shop.go_on.set()
    ends = [await first, await second]
    assert [(end["status"], end["answer"]) for end in ends] == [("done", "4")] * 2
    assert (shop.calls["slow"], shop.calls["price"]) == (1, 1)


async def test_an_input_sent_again_after_a_crash_before_any_checkpoint_is_the_same_run(agent_on: OpenAgent) -> None:
    """A server that kept nothing of the run sends its input again under an id of its own: what is done stays done."""
    shop = SlowShop()
    agent = await agent_on([shop.kit])
    price = step("s1", "price", args={"item": "ball"})
    given: Any = {"plan": plan(price, step("s2", "slow", "s1")), "goal": "and then it died"}
    config: Any = {"configurable": {"thread_id": "t"}}
    drive = asyncio.create_task(agent.graph.ainvoke(given, config, durability="exit"))
    await shop.begun.wait()
    drive.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drive
    await agent.engine.database.execute("TRUNCATE checkpoints")
    with pytest.raises(UsageError, match="has a run that is not finished"):
        await agent.graph.ainvoke({"goal": "another", "plan": plan(price)}, config)
    shop.go_on.set()
    ended = await agent.graph.ainvoke(given, config)
    assert ended["status"] == "done"
    assert shop.calls["price"] == 1
    assert len(await agent.runs()) == 1
