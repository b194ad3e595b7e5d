"""The graph under `langgraph dev`, spoken to through langgraph_sdk: it shows its labels, runs, and survives a kill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.e2e.dev_server import DevServer
from tests.graph.test_wiring import LABELLED

GOAL = "why is order A1234 late, tell the customer"


def environment(database_url: str, folder: Path) -> dict[str, str]:
    """A server on this test's database, with no model and no tracing."""
    (folder / "inputs").mkdir()
    return {
        "SURESTEP_DATABASE_URL": database_url,
        "SURESTEP_FOLDER": "kept",  # relative, as a person would have it: nothing may ask where it is on the loop
        "SURESTEP_OUTPUT": "out",
        "SURESTEP_INPUT_ROOT": str(folder / "inputs"),
        "LANGSMITH_TRACING": "false",
    }


@asynccontextmanager
async def served(folder: Path, settings: dict[str, str]) -> AsyncIterator[tuple[DevServer, LangGraphClient]]:
    """A running server and a client of it."""
    with DevServer(folder, settings) as server:
        async with get_client(url=server.url) as client:
            yield server, client


def sent(database_url: str) -> int:
    """How many replies the shop's outbox holds for the order of the goal."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM shop.outbox WHERE order_id = 'A1234'").fetchone()
    assert row is not None
    return int(row[0])


def _written(folder: Path) -> list[Path]:
    """The files that runs have written for people."""
    return list((folder / "out").rglob("*.html"))


async def test_an_interrupted_thread_survives_kill_9_and_its_approved_effect_happens_once(
    database_url: str, tmp_path: Path
) -> None:
    """The server is killed while a thread waits for a person; a new one brings the same interrupt back and goes on."""
    async with served(tmp_path, environment(database_url, tmp_path)) as (server, client):
        drawn: Any = await client.assistants.get_graph("agent")
        assert {label for _, _, label in LABELLED} <= {edge.get("data") for edge in drawn["edges"]}

        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        result: Any = await client.runs.wait(thread, "agent", input={"goal": GOAL})
        [interrupt] = result["__interrupt__"]
        assert result["status"] == "paused"
        assert interrupt["value"]["action_requests"][0]["name"] == "send_reply"
        before = sent(database_url)

        server.kill()
        server.start()
        await client.threads.create(thread_id=thread, graph_id="agent", if_exists="do_nothing")
        state: Any = await client.threads.get_state(thread)
        assert [each["id"] for each in state["interrupts"]] == [interrupt["id"]]

        answer: Any = {interrupt["id"]: {"decisions": [{"type": "approve"}]}}
        done: Any = await client.runs.wait(thread, "agent", command={"resume": answer})
        assert (done["status"], sent(database_url)) == ("done", before + 1), server.log()[-3000:]
        again: Any = await client.runs.wait(thread, "agent", command={"resume": answer})
        assert sent(database_url) == before + 1
        assert again["status"] == "done"


async def test_a_malformed_answer_changes_nothing_and_stays_pending(database_url: str, tmp_path: Path) -> None:
    """Anything but an exact decision is no decision: the thread interrupts again with the same request."""
    async with served(tmp_path, environment(database_url, tmp_path)) as (_, client):
        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        first: Any = await client.runs.wait(thread, "agent", input={"goal": GOAL})
        before = sent(database_url)
        wrongs: list[Any] = [
            "yes",
            {"decisions": []},
            {"decisions": [{"type": "approve", "extra": 1}]},
            {"approve": True},
        ]
        for wrong in wrongs:
            [interrupt] = first["__interrupt__"]
            first = await client.runs.wait(thread, "agent", command={"resume": {interrupt["id"]: wrong}})
            assert first["status"] == "paused", wrong
        assert sent(database_url) == before


async def test_a_chat_client_gets_its_answer_as_a_message_and_files_stay_inside_the_input_folder(
    database_url: str, tmp_path: Path
) -> None:
    """`messages` in, `messages` out; a client names files under the server's input folder only."""
    settings = environment(database_url, tmp_path)
    (tmp_path / "inputs" / "orders.csv").write_text("order_id,amount\nA1,5\nA2,-3\n", "utf-8")
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", "utf-8")
    async with served(tmp_path, settings) as (server, client):
        thread = (await client.threads.create(graph_id="agent"))["thread_id"]
        goal = {"role": "user", "content": "Find anomalous orders in this file and summarise them"}
        asked: Any = {"messages": [goal], "inputs": {"orders": {"file": "orders.csv"}}}
        done: Any = await client.runs.wait(thread, "agent", input=asked)
        assert done["status"] == "done", server.log()[-3000:]
        assert done["messages"][-1]["type"] == "ai"
        assert "anomalous" in done["messages"][-1]["content"]
        assert done["report_ref"] in map(str, _written(tmp_path))

        other = (await client.threads.create(graph_id="agent"))["thread_id"]
        outside: Any = {"messages": [goal], "inputs": {"orders": {"file": "../secret.csv"}}}
        refused: Any = await client.runs.wait(other, "agent", input=outside, raise_error=False)
        assert "__error__" in refused or refused["status"] == "failed"
