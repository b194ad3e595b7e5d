"""Tokens under `langgraph dev`, spoken to through langgraph_sdk: who is served, what each sees, and that nothing a
client sends makes more of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graph.settings import Settings
from graph.tokens import made_token
from plans.principals import Principal
from tests.conftest import fresh_database
from tests.e2e.dev_server import DevServer
from tests.e2e.test_langgraph_dev import environment

KIT = '''
"""A toolkit whose effect is for one role."""
from pathlib import Path
from tools.registry import Toolkit

kit = Toolkit("talk")


@kit.tool(effect="irreversible", risk="high", roles=("support",))
async def tell(text: str) -> str:
    "Tell somebody."
    return _told(text)


@kit.tool(effect="irreversible", risk="high", roles=("admin",))
async def dismiss(text: str) -> str:
    "Dismiss somebody."
    return _told(text)


def _told(text: str) -> str:
    with Path(__file__).with_name("told.txt").open("a") as file:
        file.write(text + chr(10))
    return text
'''
SECRET = "0123456789abcdef0123456789abcdef"
ANN = Principal(name="ann", roles=("support", "sales"), tenant="acme")
CAT = Principal(name="cat", roles=("support",), tenant="acme")
BOB = Principal(name="bob", roles=("support",), tenant="best")
Clients = Callable[[Principal], LangGraphClient]
REFUSED = (403, 404, 409, 422)


class Served:
    """The server, its database, and clients of it."""

    def __init__(self, server: DevServer, database_url: str) -> None:
        self.server = server
        self.database_url = database_url

    def headers(self, who: Principal, **more: str) -> dict[str, str]:
        """What this one sends with every request."""
        settings = Settings.load(environment={}, auth_key=SECRET, auth_audience="surestep")
        return {"Authorization": f"Bearer {made_token(settings, who, 600, time.time())}", **more}

    def told(self) -> list[str]:
        """What effects have told so far."""
        file = self.server.folder / "told.txt"
        return file.read_text("utf-8").split() if file.exists() else []

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of the database."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(query, params).fetchall()


@pytest.fixture(scope="module")
def served(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests here: they share nothing but it."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "talkkit.py").write_text(KIT, "utf-8")
    for url in fresh_database(postgres_url, template_database):
        asks = {"SURESTEP_AUTH_KEY": SECRET, "SURESTEP_AUTH_AUDIENCE": "surestep", "SURESTEP_ROLES": "admin"}
        said = environment(url, folder) | asks | {"SURESTEP_TOOLKITS": "talkkit:kit", "PYTHONPATH": _path(folder)}
        said["SURESTEP_SWEEP_EVERY_S"] = "1"
        with DevServer(folder, said) as server:
            yield Served(server, url)


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Clients]:
    """`client(ANN)`: a client with that one's token, closed when the test ends."""
    async with AsyncExitStack() as stack:
        made = {who.name: get_client(url=served.server.url, headers=served.headers(who)) for who in (ANN, BOB, CAT)}
        for each in made.values():
            await stack.enter_async_context(each)
        yield lambda who: made[who.name]


def _path(folder: Path) -> str:
    return f"{folder}:{Path(__file__).parents[2]}"


async def outcome(attempt: Awaitable[Any]) -> Any:
    """What a request gives, or the status with which it is refused."""
    try:
        return await attempt
    except httpx.HTTPStatusError as refused:
        return refused.response.status_code


def plan(text: str, tool: str = "tell") -> dict[str, Any]:
    """A plan of one effect."""
    return {"goal": text, "steps": [{"id": "s1", "tool": tool, "args": {"text": text}, "reason": "asked for"}]}


def test_who_has_no_good_token_is_not_served(served: Served) -> None:
    """No token, a bad one, one for Studio's scheme, and a token in another place: every door is shut."""
    good = served.headers(ANN)["Authorization"]
    for headers in (
        {},
        {"Authorization": good[:-2]},
        {"Authorization": "Bearer x"},
        {"x-auth-scheme": "langsmith"},
        {"x-auth-scheme": "langsmith", "x-user-id": "ann"},
        {"x-api-key": good.split()[1]},
        {"Cookie": f"Authorization={good}"},
    ):
        for method, path in (
            ("POST", "/threads"),
            ("POST", "/threads/search"),
            ("POST", "/runs/wait"),
            ("POST", "/runs/stream"),
            ("POST", "/assistants/search"),
            ("POST", "/store/items/search"),
            ("GET", "/assistants/agent/graph"),
            ("POST", "/mcp/"),
            ("POST", "/a2a/agent"),
        ):
            body = {"assistant_id": "agent", "input": {"plan": plan("nobody")}} if path.startswith("/runs") else {}
            answer = httpx.request(method, served.server.url + path, headers=headers, json=body, timeout=20)
            assert answer.status_code == httpx.codes.UNAUTHORIZED, (headers, path, answer.text)
    assert "nobody" not in served.told()


async def test_a_thread_is_there_for_its_tenant_only(served: Served, client: Clients) -> None:
    """Another tenant's caller finds no thread, no state, no run, and cannot change, copy, run or delete it."""
    ann, bob, cat = client(ANN), client(BOB), client(CAT)
    thread = (await ann.threads.create(graph_id="agent", metadata={"surestep_tenant": "best", "mine": 1}))["thread_id"]
    first: Any = await ann.runs.wait(
        thread, "agent", input={"plan": plan("ours")}, context={"role": "support"}, metadata={"surestep_tenant": "best"}
    )
    assert first["status"] == "paused", served.server.log()[-3000:]
    [interrupt] = first["__interrupt__"]
    answer: Any = {interrupt["id"]: {"decisions": [{"type": "approve"}]}}

    attempts: dict[str, Callable[[], Awaitable[Any]]] = {
        "get": lambda: bob.threads.get(thread),
        "state": lambda: bob.threads.get_state(thread),
        "history": lambda: bob.threads.get_history(thread),
        "runs": lambda: bob.runs.list(thread),
        "update": lambda: bob.threads.update(thread, metadata={"surestep_tenant": "best"}),
        "update_state": lambda: bob.threads.update_state(thread, {"goal": "x"}),
        "copy": lambda: bob.threads.copy(thread),
        "delete": lambda: bob.threads.delete(thread),
        "resume": lambda: bob.runs.wait(thread, "agent", command={"resume": answer}),
        "create": lambda: bob.runs.create(thread, "agent", input={"goal": "x"}, if_not_exists="create"),
        "take": lambda: bob.threads.create(thread_id=thread, graph_id="agent", if_exists="do_nothing"),
    }
    for name, attempt in attempts.items():
        found = await outcome(attempt())
        assert found == [] or found in REFUSED, (name, found)
    assert await bob.threads.search() == []
    assert await bob.threads.search(metadata={"surestep_tenant": "acme"}) == []
    assert "ours" not in served.told()

    await ann.threads.update(thread, metadata={"surestep_tenant": "best", "mine": 2})
    assert [each["thread_id"] for each in await cat.threads.search(metadata={"mine": 2})] == [thread]
    done: Any = await cat.runs.wait(thread, "agent", command={"resume": answer})
    assert done["status"] == "done"
    assert served.told().count("ours") == 1
    [(tenant, started_by)] = served.rows(
        "SELECT tenant, input ->> 'started_by' FROM surestep.runs WHERE thread_id = %s", thread
    )
    assert (tenant, started_by) == ("acme", "ann")
    assert served.rows("SELECT DISTINCT decided_by FROM surestep.approvals WHERE thread_id = %s", thread) == [("cat",)]


async def test_nothing_that_a_client_sends_makes_more_of_it(served: Served, client: Clients) -> None:
    """A role that is not the caller's, no approvals, another tenant or name, in context, config, metadata or input: the
    run is refused or runs as if it had not been said, and nothing happens that nobody has approved."""
    bob = client(BOB)
    admin = {
        "identity": "root",
        "roles": ["admin"],
        "tenant": "acme",
        "permissions": ["admin"],
        "is_authenticated": True,
    }
    words: list[dict[str, Any]] = [
        {"context": {"role": "admin"}},
        {"context": {"approve": "all"}},
        {"context": {"tenant": "acme"}},
        {"context": {"policy": None}},
        {"config": {"configurable": {"role": "admin", "approve": "all", "tenant": "acme"}}},
        {"config": {"configurable": {"langgraph_auth_user": admin, "langgraph_auth_user_id": "root"}}},
        {"config": {"metadata": {"langgraph_auth_user": admin, "surestep_tenant": "acme"}}},
        {"metadata": {"role": "admin", "surestep_tenant": "acme", "surestep_owner": "root"}},
        {"input": {"run": {"role": "admin", "approve": "all", "tenant": "acme"}}},
        {"input": {"status": "done", "approvals": [], "role": "admin", "tenant": "acme"}},
    ]

    async def tried(n: int, tool: str) -> None:
        said = {**words[n], "input": {**words[n].get("input", {}), "plan": plan(f"more{n}", tool)}}
        ended = await outcome(bob.runs.wait(None, "agent", raise_error=False, **said))
        if ended not in REFUSED:  # a run that has raised has no status
            assert ended.get("status") in (None, "paused" if tool == "tell" else "failed"), (words[n], tool, ended)

    await asyncio.gather(*(tried(n, tool) for n in range(len(words)) for tool in ("tell", "dismiss")))
    assert [each for each in served.told() if each.startswith("more")] == []
    assert served.rows("SELECT DISTINCT tenant FROM surestep.runs WHERE goal LIKE 'more%%'") == [("best",)]
    waits = "SELECT DISTINCT input ->> 'role' FROM surestep.runs WHERE goal LIKE 'more%%' AND status = 'paused'"
    assert served.rows(waits) == [("support",)]


async def test_a_caller_acts_in_one_of_its_roles_and_in_the_one_it_names(served: Served, client: Clients) -> None:
    """Of several roles none is taken by itself; the one that is named is the run's."""
    ann = client(ANN)
    named: Any = await ann.runs.wait(None, "agent", input={"plan": plan("named")}, context={"role": "support"})
    assert named["status"] == "paused"
    other: Any = await ann.runs.wait(
        None, "agent", input={"plan": plan("unnamed")}, context={"role": "sales"}, raise_error=False
    )
    assert "__error__" in other or other["status"] == "failed"
    found = served.rows("SELECT input ->> 'role' FROM surestep.runs WHERE goal IN ('named', 'unnamed') ORDER BY goal")
    assert found == [("support",), ("sales",)]


async def test_what_no_rule_allows_is_refused(client: Clients) -> None:
    """Assistants and schedules of clients, which would bring settings of their own, and other tenants' items."""
    ann = client(ANN)
    assert [each["graph_id"] for each in await ann.assistants.search()] == ["agent"]
    refused: list[Callable[[], Awaitable[Any]]] = [
        lambda: ann.assistants.create("agent", context={"approve": "none"}),
        lambda: ann.assistants.delete("agent"),
        lambda: ann.crons.create("agent", schedule="0 0 * * *", input={"goal": "x"}),
        ann.crons.search,
        lambda: ann.store.put_item(["best"], "k", {"v": 1}),
        lambda: ann.store.get_item(["best"], "k"),
        lambda: ann.store.search_items([]),
        ann.store.list_namespaces,
    ]
    for n, attempt in enumerate(refused):
        assert await outcome(attempt()) in REFUSED, n
    await ann.store.put_item(["acme", "notes"], "k", {"v": 1})
    assert (await ann.store.search_items(["acme"]))["items"][0]["value"] == {"v": 1}
    assert (await client(BOB).store.search_items(["best"]))["items"] == []


async def test_what_nobody_answers_in_time_is_gone_on_with_by_the_server_itself(
    served: Served, client: Clients
) -> None:
    """The sweeper of a server that asks for tokens needs none to go on with its own threads; it decides nothing."""
    ann = client(ANN)
    thread = (await ann.threads.create(graph_id="agent"))["thread_id"]
    asked: Any = await ann.runs.wait(thread, "agent", input={"plan": plan("late")}, context={"role": "support"})
    assert asked["status"] == "paused"
    with psycopg.connect(served.database_url) as connection:
        connection.execute(
            "UPDATE surestep.approvals SET expires_at = clock_timestamp() WHERE thread_id = %s", (thread,)
        )
    for _ in range(100):
        if served.rows("SELECT status FROM surestep.runs WHERE thread_id = %s", thread) != [("paused",)]:
            break
        await asyncio.sleep(0.2)
    state: Any = await ann.threads.get_state(thread)
    assert state["values"]["status"] in ("done", "failed"), served.server.log()[-3000:]
    assert "late" not in served.told()


async def test_who_comes_in_and_who_is_turned_away_is_on_record(served: Served, client: Clients) -> None:
    """Each token once, with name, tenant and roles, and refusals without a row for each; no token stands there."""
    ann = client(ANN)
    await ann.threads.search()
    await ann.threads.search()
    async with httpx.AsyncClient(base_url=served.server.url) as stranger:
        for _ in range(3):
            assert (await stranger.get("/assistants/x", headers={"Authorization": "Bearer x.y.z"})).status_code == 401
    noted = served.rows("SELECT kind, subject, details FROM surestep.audit WHERE chain = 'logins' ORDER BY seq")
    tokens = [details["token_sha256"] for kind, _, details in noted if kind == "login.accepted"]
    assert len(tokens) == len(set(tokens))
    assert ("ann", "acme", ["support", "sales"]) in [
        (name, details["tenant"], details["roles"]) for kind, name, details in noted if kind == "login.accepted"
    ]
    assert any(kind == "login.refused" for kind, _, _ in noted)
    assert served.headers(ANN)["Authorization"].partition(".")[0].removeprefix("Bearer ") not in str(noted)
