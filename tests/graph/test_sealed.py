"""Secrets of runs over processes, threads and doors: sealed in the database, opened where their key is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from plans.decisions import Approve
from plans.errors import PlanRejected
from tests.graph.conftest import OpenAgent
from tests.graph.test_secrets import stored
from tests.running import plan, running, step
from tools.registry import Toolkit

SECRET = "9q-terces-neddih"[::-1]


class Crm:
    """A toolkit that notes what it was given."""

    def __init__(self) -> None:
        self.kit = Toolkit("crm")
        self.given: list[tuple[str, ...]] = []

        @self.kit.tool(effect="irreversible", risk="high")
        async def change(password: str) -> str:
            """Change a password."""
            self.given.append(("change", password))
            return "changed"

        @self.kit.tool(effect="read", cache_ttl_s=60)
        async def login(user: str) -> dict[str, str]:
            """Log in."""
            self.given.append(("login", user))
            return {"session_id": SECRET}

        @self.kit.tool(effect="read")
        async def look(session: str) -> str:
            """Look."""
            self.given.append(("look", session))
            return "seen"


def rows_of(url: str) -> int:
    """How many secrets the database keeps."""
    with psycopg.connect(url) as connection:
        [row] = connection.execute("SELECT count(*) FROM surestep.secrets").fetchall()
    return int(row[0])


CHANGE = plan(step("s1", "change", args={"password": "${inputs.new}"}))


@pytest.mark.parametrize("same_key", [True, False])
async def test_a_secret_input_outlives_its_process_where_the_key_is(
    database_url: str, tmp_path: Path, same_key: bool
) -> None:
    """A run that waits for a person goes on in another process: with the key its tool gets the secret, with another
    key it is not called, and the failure says what is missing."""
    crm, keys = Crm(), ("k" * 20, "k" * 20 if same_key else "another key of somebody")
    async with running(database_url, tmp_path, [crm.kit], sealing_key=keys[0]) as agent:
        paused = await agent.run(plan=CHANGE, inputs={"new": SecretStr(SECRET)}, thread_id="t")
        [request] = paused.approvals
        assert request.args == {"password": request.args["password"]}
        assert request.args["password"].startswith("[sealed:inputs.new#")
    async with running(database_url, tmp_path, [crm.kit], sealing_key=keys[1]) as agent:
        ended = await agent.resume("t", decisions={request.approval_id: Approve()})
    if same_key:
        assert (ended.status, crm.given) == ("done", [("change", SECRET)])
    else:
        assert (ended.status, crm.given) == ("failed", [])
        assert "is not there any more" in (ended.answer or "")
    assert not any(SECRET in text or SECRET.encode().hex() in text for text in stored(database_url).values())


async def test_what_a_client_of_the_graph_sends_is_saved_without_secrets(
    agent_on: OpenAgent, database_url: str
) -> None:
    """Messages and inputs come in by the graph's own door, where LangGraph saves them before any node has seen them:
    no checkpoint of the thread holds them, and what the client reads back has placeholders."""
    crm = Crm()
    agent = await agent_on([crm.kit])
    said = f"please change it, the old password: {SECRET}-old"
    config: Any = {"configurable": {"thread_id": "t"}}
    sent = {"messages": [HumanMessage(said, id="m1")], "inputs": {"new": {"secret": SECRET}}, "plan": CHANGE}
    await agent.graph.ainvoke(sent, config)
    assert not any(SECRET in text or SECRET.encode().hex() in text for text in stored(database_url).values())
    state = (await agent.graph.aget_state(config)).values
    assert "[sealed:password#" in state["messages"][0].content
    assert SECRET not in repr(state)
    [request] = await agent.approvals("t")
    ended = await agent.resume("t", decisions={request.approval_id: Approve()})
    assert (ended.status, crm.given) == ("done", [("change", SECRET)])


async def test_secrets_follow_results_and_go_with_their_runs(agent_on: OpenAgent, database_url: str) -> None:
    """A result that is kept from another run's call opens here too, and so does one that a fork has inherited. Erased
    with their thread, and when a run is archived, they are gone."""
    crm = Crm()
    agent = await agent_on([crm.kit])
    steps = plan(step("s1", "login", args={"user": "ann"}), step("s2", "look", args={"session": "${s1.session_id}"}))
    for thread in ("a", "b"):
        assert (await agent.run(plan=steps, thread_id=thread)).status == "done"
    forked = await agent.fork("b", "s2", new_thread_id="c")
    assert forked.status == "done"
    assert crm.given == [("login", "ann"), *[("look", SECRET)] * 3]
    assert rows_of(database_url) == 3
    await agent.erase("c")
    assert rows_of(database_url) == 2
    await agent.archive(older_than="0s")
    assert rows_of(database_url) == 0
    assert not any(SECRET in text or SECRET.encode().hex() in text for text in stored(database_url).values())


async def test_a_plan_that_misplaces_a_secret_is_told_before_anything_runs(agent_on: OpenAgent) -> None:
    """A secret that nobody knows, and one in an argument that its tool does not keep."""
    crm = Crm()
    agent = await agent_on([crm.kit], secrets={"crm_password": SECRET})
    wrong = plan(
        step("s1", "change", args={"password": "${secrets.crm_pasword}"}),
        step("s2", "look", args={"session": "${secrets.crm_password}"}),
        step("s3", "look", args={"session": "${inputs.new}"}),
        step("s4", "look", args={"session": "pw ${secrets.crm_password}, as I said"}),
    )
    with pytest.raises(PlanRejected) as refused:
        await agent.plan(plan=wrong, inputs={"new": SecretStr("other-secret")})
    told = str(refused.value)
    assert "there is no secret 'crm_pasword' (did you mean ${secrets.crm_password}?)" in told
    assert "look does not keep 'session' secret" in told
    assert told.count("does not keep") == 3
    assert SECRET not in told
