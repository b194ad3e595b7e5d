"""People under `langgraph dev`: a plan is looked at, the user is asked, and a run is told something meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk.client import LangGraphClient
from pytest_httpserver import HTTPServer

from tests.e2e.test_langgraph_dev import environment, served
from tests.nodes.model_server import ScriptedModel
from tests.running import plan, step

KIT = '''"""Tools that note what they do in a file."""

import asyncio
from pathlib import Path

from tools.registry import Toolkit

kit = Toolkit("desk")


def _noted(line: str) -> None:
    with Path("book").open("a") as book:
        book.write(f"{line}\\n")


@kit.tool(effect="idempotent", timeout_s=30, output_trust="trusted")
async def slow(text: str) -> dict[str, str]:
    """Note it in the book, which takes a moment."""
    await asyncio.to_thread(_noted, f"begun {text}")
    await asyncio.sleep(2)
    await asyncio.to_thread(_noted, text)
    return {"noted": text}


@kit.tool(effect="idempotent", output_trust="trusted")
async def note(text: str) -> dict[str, str]:
    """Note it in the book."""
    await asyncio.to_thread(_noted, text)
    return {"noted": text}
'''
FIRST = plan(step("s1", "note", args={"text": "one"}), answer="${s1.noted}")


def settings(database_url: str, folder: Path, endpoint: ScriptedModel) -> dict[str, str]:
    """A server with a scripted model, and with the tools above."""
    (folder / "desk.py").write_text(KIT, "utf-8")
    models = {"SURESTEP_MODEL": "scripted", "OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "key-1"}
    return environment(database_url, folder) | models | {"SURESTEP_TOOLKITS": "desk:kit", "SURESTEP_LEASE_S": "5"}


def written(book: Path) -> list[str]:
    """What the tools have noted so far."""
    return book.read_text("utf-8").splitlines() if book.exists() else []


def said(text: str) -> Any:
    """A person's message, as a chat client sends it."""
    return {"messages": [{"role": "user", "content": text}]}


async def _new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create(graph_id="agent"))["thread_id"])


async def _reviewed(client: LangGraphClient, book: Path, endpoint: ScriptedModel) -> None:
    """A plan is shown because the caller asks for it, changed in the inbox, and runs as it was changed."""
    endpoint.answers(json.dumps(FIRST))
    thread = await _new_thread(client)
    shown: Any = await client.runs.wait(thread, "agent", input={"goal": "note one"}, context={"review": "first"})
    [interrupt] = shown["__interrupt__"]
    [action], [config] = interrupt["value"]["action_requests"], interrupt["value"]["review_configs"]
    assert (action["kind"], action["name"], action["args"]["steps"][0]["args"]) == ("review", "plan", {"text": "one"})
    assert config["allowed_decisions"] == ["approve", "edit", "respond", "reject"]
    assert written(book) == []
    changed = {**action["args"], "steps": [{**action["args"]["steps"][0], "args": {"text": "uno"}}]}
    edit = {"type": "edit", "edited_action": {"name": "plan", "args": changed}}
    answer: Any = {interrupt["id"]: {"decisions": [edit]}}
    done: Any = await client.runs.wait(thread, "agent", command={"resume": answer})
    assert (done["status"], done["answer"], written(book)) == ("done", "uno", ["uno"])


async def _asked(client: LangGraphClient, endpoint: ScriptedModel) -> None:
    """The planner's question is a message of the conversation, and so is its answer."""
    asks = step("s1", "ask_user", args={"question": "Which?", "kind": "choice", "choices": ["red", "blue"]})
    endpoint.answers(
        json.dumps(plan(asks)),
        json.dumps(plan(step("s2", "note", args={"text": "${s1.answer}"}), answer="${s2.noted}")),
    )
    thread = await _new_thread(client)
    asked: Any = await client.runs.wait(thread, "agent", input=said("note a colour"))
    [interrupt] = asked["__interrupt__"]
    [action] = interrupt["value"]["action_requests"]
    assert (action["kind"], action["answer_schema"]["enum"]) == ("clarification", ["red", "blue"])
    assert asked["messages"][-1]["content"] == "Which?\n- red\n- blue"
    done: Any = await client.runs.wait(thread, "agent", input=said("blue"))
    assert (done["status"], done["answer"], done["messages"][-1]["content"]) == ("done", "blue", "blue")


async def _told(client: LangGraphClient, book: Path, endpoint: ScriptedModel) -> None:
    """A message that interrupts the server's run: an effect that has begun ends, once, and the rest is planned anew."""
    endpoint.answers(
        json.dumps(plan(step("s1", "slow", args={"text": "slowly"}), step("s2", "note", "s1", args={"text": "old"}))),
        json.dumps(plan(step("n1", "note", args={"text": "new ${s1.noted}"}), answer="${n1.noted}")),
    )
    thread = await _new_thread(client)
    first = await client.runs.create(thread, "agent", input=said("note it"))
    for _ in range(200):
        if "begun slowly" in written(book):
            break
        await asyncio.sleep(0.1)
    more = said("note something new")
    done: Any = await client.runs.wait(thread, "agent", input=more, multitask_strategy="interrupt")
    assert (done["status"], done["answer"]) == ("done", "new slowly")
    assert written(book)[2:] == ["begun slowly", "slowly", "new slowly"]
    assert (await client.runs.get(thread, first["run_id"]))["status"] == "interrupted"
    assert "note something new" in endpoint.prompt()


async def test_people_look_at_plans_answer_questions_and_change_their_minds_through_the_server(
    database_url: str, tmp_path: Path, httpserver: HTTPServer
) -> None:
    """By interrupts, by messages, and by a message that comes while the run is at work."""
    endpoint = ScriptedModel(httpserver)
    async with served(tmp_path, settings(database_url, tmp_path, endpoint)) as (server, client):
        try:
            await _reviewed(client, tmp_path / "book", endpoint)
            await _asked(client, endpoint)
            await _told(client, tmp_path / "book", endpoint)
        except (AssertionError, httpx.HTTPError) as error:
            raise AssertionError(server.log()[-3000:]) from error
