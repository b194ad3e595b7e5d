"""`langgraph dev` leaves nobody waiting: silence ends there, and who decides elsewhere has its API go on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from graph.agent import open_agent
from graph.settings import Settings
from plans.decisions import Approve
from plans.errors import ServerUnavailable
from tests.e2e.dev_server import DevServer
from tests.e2e.test_auth_under_dev import ANN, BOB, KIT, SECRET, Served
from tests.e2e.test_langgraph_dev import GOAL, environment, sent, served

pytestmark = pytest.mark.slow


async def ended(client: LangGraphClient, thread: str) -> Any:
    """The thread's values, once it stands still and nothing is asked of anybody."""
    async with asyncio.timeout(30):
        while True:
            with suppress(NotFoundError):  # a development server that was killed has forgotten the thread at first
                state: Any = await client.threads.get_state(thread)
                if not state["next"] and state["values"].get("status") not in ("running", "paused"):
                    return state["values"]
            await asyncio.sleep(0.1)


async def test_silence_ends_on_the_server_also_when_it_was_killed_meanwhile(database_url: str, tmp_path: Path) -> None:
    """The question expires while the server is down: the next one writes the no and goes on, asked by nobody; the run
    that it makes of that is one of the server's own."""
    settings = environment(database_url, tmp_path) | {
        "SURESTEP_APPROVAL_EXPIRES_S": "3",
        "SURESTEP_SWEEP_EVERY_S": "0.3",
    }
    async with served(tmp_path, settings) as (server, client):
        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        result: Any = await client.runs.wait(thread, "agent", input={"goal": GOAL})
        assert result["status"] == "paused"
        before = sent(database_url)
        server.kill()
        await asyncio.sleep(3)
        server.start()
        values = await ended(client, thread)
        assert [failure["code"] for failure in values["failures"]] == ["APPROVAL_EXPIRED"], server.log()[-3000:]
        assert sent(database_url) == before
        runs = await client.runs.list(thread)
        assert [run["status"] for run in runs] == ["success"]
        assert (await client.threads.get(thread))["status"] == "idle"


async def test_a_server_that_asks_for_tokens_sweeps_by_itself_and_nobody_else_can(
    database_url: str, tmp_path: Path
) -> None:
    """Its own drive needs no token; the run stays its owner's, who sees the end, and another tenant does not."""
    (tmp_path / "talkkit.py").write_text(KIT, "utf-8")
    settings = environment(database_url, tmp_path) | {
        "SURESTEP_AUTH_KEY": SECRET, "SURESTEP_AUTH_AUDIENCE": "surestep", "SURESTEP_TOOLKITS": "talkkit:kit",
        "SURESTEP_APPROVAL_EXPIRES_S": "2", "SURESTEP_SWEEP_EVERY_S": "0.3",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }  # fmt: skip
    asks: Any = {"plan": {"goal": "tell", "steps": [{"id": "s1", "tool": "tell", "args": {"text": "x"}}]}}
    with DevServer(tmp_path, settings) as server:
        named = Served(server, database_url)
        async with (
            get_client(url=server.url, headers=named.headers(ANN)) as ann,
            get_client(url=server.url, headers=named.headers(BOB)) as bob,
        ):
            thread = (await ann.threads.create(graph_id="agent"))["thread_id"]
            result: Any = await ann.runs.wait(thread, "agent", input=asks, context={"role": "support"})
            assert result["status"] == "paused", server.log()[-3000:]
            values = await ended(ann, thread)
            assert [each["code"] for each in values["failures"]] == ["APPROVAL_EXPIRED"], server.log()[-3000:]
            assert [run["status"] for run in await ann.runs.list(thread)] == ["success", "success"]
            with pytest.raises(NotFoundError):
                await bob.threads.get(thread)


async def test_who_decides_elsewhere_has_the_server_go_on(database_url: str, tmp_path: Path) -> None:
    """A decision by the library creates the next run through the server's API: the thread's own list has it, and what
    was approved is done once, by the server."""
    settings = environment(database_url, tmp_path) | {"SURESTEP_SWEEP_EVERY_S": "none"}
    async with served(tmp_path, settings) as (server, client):
        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        await client.runs.wait(thread, "agent", input={"goal": GOAL})
        before = sent(database_url)
        own = Settings.load(
            environment={}, database_url=database_url, folder=tmp_path / "elsewhere", server_url=server.url
        )
        async with open_agent(settings=own) as agent:
            [request] = await agent.approvals(thread)
            done = await agent.resume(thread, decisions={request.approval_id: Approve()})
        assert (done.status, sent(database_url)) == ("done", before + 1), server.log()[-3000:]
        assert len(await client.runs.list(thread)) == 2
        assert (await client.threads.get(thread))["status"] == "idle"
        state: Any = await client.threads.get_state(thread)
        assert state["values"]["status"] == "done"


async def test_a_decision_made_while_the_server_is_down_is_gone_on_with_when_it_is_back(
    database_url: str, tmp_path: Path
) -> None:
    """Who decides is told that the server is away and that his word is stored; the server's own sweeper finds it."""
    settings = environment(database_url, tmp_path) | {"SURESTEP_SWEEP_EVERY_S": "0.3"}
    async with served(tmp_path, settings) as (server, client):
        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        await client.runs.wait(thread, "agent", input={"goal": GOAL})
        before = sent(database_url)
        server.kill()
        own = Settings.load(
            environment={}, database_url=database_url, folder=tmp_path / "elsewhere", server_url=server.url
        )
        async with open_agent(settings=own) as agent:
            [request] = await agent.approvals(thread)
            with pytest.raises(ServerUnavailable, match="What was decided is stored"):
                await agent.resume(thread, decisions={request.approval_id: Approve()})
            assert await agent.approvals(thread) == []
        assert sent(database_url) == before
        server.start()
        assert (await ended(client, thread))["status"] == "done", server.log()[-3000:]
        assert sent(database_url) == before + 1
