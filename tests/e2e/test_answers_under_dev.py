"""Approvals under a running `langgraph dev`: whatever a client sends beside exact answers changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import BadRequestError

from tests.e2e.test_langgraph_dev import environment, served
from tests.graph.kits import plan, step
from tests.graph.program import COMMAND

YES, NO = {"type": "approve"}, {"type": "reject", "message": "no"}
MISUSES: list[dict[str, Any]] = [
    *({"command": {"goto": node}} for node in ("dispatch", "execute", "validate", "finish")),
    {"command": {"goto": [{"node": "execute", "input": {"edge": "run"}}]}},
    {"command": {"update": {"edge": "approved"}, "goto": "dispatch"}},
    {"command": {"update": {"approvals": []}, "resume": {"decisions": []}}},
    {"command": {"update": {"current_plan": None}, "resume": {"decisions": [YES]}}},
    {"command": {"resume": {"decisions": [YES, YES]}}},
    {"command": {"resume": "yes"}},
    {"input": None},
    {
        "input": {
            "edge": "approved",
            "approvals": [],
            "run": None,
            "status": "done",
            "drafted": {},
            "current_plan": None,
        }
    },
]


def mail(step_id: str, *after: str) -> dict[str, Any]:
    """A reply to a customer, which needs a person."""
    to = {"order_id": "A1234", "recipient": "hannah.becker@example.com"}
    return step(step_id, "send_reply", *after, args={**to, "subject": "s", "body": step_id})


def sent(database_url: str) -> list[str]:
    """The replies of these tests that were sent."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT body FROM shop.outbox WHERE subject = 's' ORDER BY queued_at")
        return [row[0] for row in rows.fetchall()]


async def waiting(client: LangGraphClient, *steps: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A new thread on which these steps wait; and its interrupt."""
    thread = (await client.threads.create(graph_id="agent"))["thread_id"]
    asked: Any = {"goal": "mail", "plan": plan(*steps)}
    told: Any = await client.runs.wait(thread, "agent", input=asked)
    [interrupt] = told["__interrupt__"]
    return thread, interrupt


async def _listed(client: LangGraphClient, thread: str) -> list[str]:
    state: Any = await client.threads.get_state(thread)
    return [each["approval_id"] for asked in state["interrupts"] for each in asked["value"]["action_requests"]]


async def _nothing_helps(client: LangGraphClient, thread: str, ids: list[str]) -> None:
    """Whatever a client sends, the thread waits for the same answer, and is found where people look for it."""
    for misuse in MISUSES:
        await client.runs.wait(thread, "agent", **misuse)
        assert await _listed(client, thread) == ids, misuse
    for values, node in (({"edge": "approved"}, "approve"), ({"status": "done"}, "finish"), ({"approvals": []}, None)):
        with pytest.raises(BadRequestError, match="written by its run alone"):
            await client.threads.update_state(thread, values, as_node=node)
    history: Any = await client.threads.get_history(thread, limit=50)
    for place in history[1:]:
        await client.runs.wait(thread, "agent", input=None, checkpoint=place["checkpoint"])
    assert await _listed(client, thread) == ids
    found = await client.threads.search(status="interrupted")
    assert thread in [each["thread_id"] for each in found]


async def _a_double_click_answers_one_question(client: LangGraphClient, thread: str) -> None:
    """Two answers without names, sent at once: the second is not taken for an answer to what comes next."""
    clicks = [
        await client.runs.create(
            thread, "agent", command={"resume": {"decisions": [YES]}}, multitask_strategy="enqueue"
        )
        for _ in range(2)
    ]
    told: Any = [await client.runs.join(thread, each["run_id"]) for each in clicks][-1]
    assert [each["code"] for each in told["refused"]] == ["STALE_DECISION"]


async def _a_copy_answers_nothing(client: LangGraphClient, thread: str) -> None:
    """The run of a copied thread goes on where it was begun."""
    copy: Any = await client.http.post(f"/threads/{thread}/copy", json=None)
    told: Any = await client.runs.wait(copy["thread_id"], "agent", command={"resume": {"decisions": [YES]}})
    assert [each["code"] for each in told["refused"]] == ["FOREIGN_DECISION"]


@pytest.mark.slow
async def test_only_an_exact_answer_lets_an_effect_happen(database_url: str, tmp_path: Path) -> None:
    """Commands with goto and update, bare input, updates of the state, older checkpoints, copies, a double click:
    nothing is sent by them, and the answers that are meant are taken one by one."""
    async with served(tmp_path, environment(database_url, tmp_path)) as (server, client):
        thread, asked = await waiting(client, mail("a"), mail("b", "a"))
        await _nothing_helps(client, thread, [asked["value"]["action_requests"][0]["approval_id"]])
        await _a_copy_answers_nothing(client, thread)
        assert sent(database_url) == []
        await _a_double_click_answers_one_question(client, thread)
        assert sent(database_url) == ["a"]
        [second] = await _listed(client, thread)
        named: Any = {"resume": {"decisions": {second: YES}}}
        done: Any = await client.runs.wait(thread, "agent", command=named)
        assert (done["status"], sent(database_url)) == ("done", ["a", "b"]), server.log()[-3000:]


@pytest.mark.slow
async def test_of_answers_from_two_programs_at_once_one_counts(database_url: str, tmp_path: Path) -> None:
    """The server is told no and the command line yes, at the same moment: one of them is taken, the other is told, and
    what was approved is done exactly once."""
    settings = environment(database_url, tmp_path)
    async with served(tmp_path, settings) as (_, client):
        for later_s in (0.0, 2.0, 4.0):  # a program needs a moment to start
            thread, asked = await waiting(client, mail("a"))
            before = len(sent(database_url))
            command = [*COMMAND, "approve", thread, "a", "--json"]
            typed = asyncio.to_thread(
                subprocess.run, command, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, check=False
            )
            answer: Any = {"resume": {asked["id"]: {"decisions": [NO]}}}

            async def clicked() -> Any:
                await asyncio.sleep(later_s)  # noqa: B023 (awaited in this round)
                return await client.runs.wait(thread, "agent", command=answer, raise_error=False)  # noqa: B023

            program, told = await asyncio.gather(typed, clicked())
            with psycopg.connect(database_url) as connection:
                rows = connection.execute(
                    "SELECT a.status, d.via FROM surestep.approvals a JOIN surestep.decisions d USING (approval_id)"
                    " WHERE a.thread_id = %s",
                    (thread,),
                ).fetchall()
            assert rows in ([("approved", "command line")], [("rejected", "graph")]), (rows, program, told)
            if rows[0][0] == "rejected":
                assert (program.returncode, json.loads(program.stdout)["error"]["type"]) == (2, "ConflictingDecision")
            assert len(sent(database_url)) - before == (rows[0][0] == "approved")
