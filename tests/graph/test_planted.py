"""Secrets planted in goals, inputs, settings, arguments, results and errors, and looked for everywhere afterwards."""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from graph.gateway import Agent
from plans.decisions import Edit
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.test_secrets import stored
from tests.nodes.model_server import ScriptedModel, completion
from tests.running import plan, step
from tools.registry import Toolkit

# Turned round, so that no secret stands in a line of source that a traceback shows.
PLANTED = {
    "of the goal": "1zq-laog-9ssap"[::-1],
    "of an input": "2zq-tupni-neddih"[::-1],
    "of the settings": "3zq-sgnittes-drow"[::-1],
    "of a result": "4zq-tluser-nekot"[::-1],
    "of an error": "5zq-rorre-drowssap"[::-1],
    "of an edit": "6zq-tide-drowssap"[::-1],
    "of the model": "7zq-yek-ledom"[::-1],
    "that a model never sees": "8zq-egassem-terces"[::-1],
}
ADDRESS = "ann.person@mail.example"
PHONE = "+49 30 12345678"


class Crm:
    """A service with a login, and what it was given."""

    def __init__(self) -> None:
        self.kit = Toolkit("crm")
        self.given: list[tuple[str, ...]] = []
        tool = self.kit.tool

        @tool(effect="read")
        async def login(user: str, password: str) -> dict[str, str]:
            """Log in."""
            self.given.append(("login", user, password))
            said = f"welcome, your password {password} is fine"
            return {"session_id": PLANTED["of a result"], "said": said, "user": user}

        @tool(effect="irreversible", risk="high")
        async def change(session_id: str, password: str, note: str) -> dict[str, str]:
            """Change a password."""
            self.given.append(("change", session_id, password, note))
            return {"changed": password}

        @tool(effect="read", retry={"max_attempts": 1})
        async def look(session_id: str, name: str) -> str:
            """Look somebody up; it never works."""
            self.given.append(("look", session_id, name))
            logging.getLogger("tools.crm").warning("token=%s of %s", session_id, name)
            raise ToolFailure("NOT_FOUND", f"no {name} with password: {PLANTED['of an error']} in {session_id}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Every line that the process logs meanwhile."""
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    kept, root = Keeping(logging.DEBUG), logging.getLogger()
    root.addHandler(kept)
    yield lines
    root.removeHandler(kept)


@pytest.fixture
def traced(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What LangSmith's client sends, tracing switched on as people switch it on."""
    import langsmith.run_trees
    from langsmith import Client, utils

    sent: list[bytes] = []

    def take(request: Request) -> Response:
        body = request.get_data()
        sent.append(gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body)
        return Response("{}", content_type="application/json")

    httpserver.expect_request(re.compile("/runs.*")).respond_with_handler(take)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    cast("Any", utils.get_env_var).cache_clear()
    client = Client(api_url=httpserver.url_for("").rstrip("/"), api_key="k", auto_batch_tracing=False, info={})
    monkeypatch.setattr(langsmith.run_trees, "_CLIENT", client)
    yield sent
    monkeypatch.undo()
    cast("Any", utils.get_env_var).cache_clear()


def planned(question: dict[str, Any]) -> Response:
    """The plan of a model that copies what it is shown."""
    shown = json.dumps(question["messages"])
    secret = shown[shown.index("[sealed:password#") :].split("]")[0] + "]"
    address = next(name for name in ("<EMAIL_1>", "<EMAIL_2>") if name in shown)
    changed = {"session_id": "${s1.session_id}", "password": "${inputs.new}", "note": "${s1.said}"}
    steps = [
        step("s1", "login", args={"user": address, "password": secret}),
        step("s2", "login", args={"user": "b", "password": "${secrets.crm}"}),
        step("s3", "change", args=changed),
        step("s4", "look", "s3", args={"session_id": "${s2.session_id}", "name": "${s1.user}"}),
    ]
    return completion(json.dumps(plan(*steps)))


GOAL = f"log in as {ADDRESS} ({PHONE}) with password: {PLANTED['of the goal']}, and change it"


async def test_planted_secrets_reach_their_tools_and_nothing_else(
    agent_on: OpenAgent, endpoint: ScriptedModel, database_url: str, tmp_path: Path,
    logged: list[str], traced: list[bytes],
) -> None:  # fmt: skip
    """Eight secrets go in by a goal, an input, settings, a result, an error, an edit and a model's key. Tools get those
    that are for them; no row, file, prompt, log line, trace, event, answer or archive holds any."""
    crm = Crm()
    endpoint.answers(planned, *[completion("no")] * 9)
    agent: Agent = await agent_on(
        [crm.kit], model=endpoint, api_key=PLANTED["of the model"],
        secrets={"crm": {"value": PLANTED["of the settings"], "tools": ["log*"]}},
    )  # fmt: skip
    events: list[str] = []
    inputs = {"new": SecretStr(PLANTED["of an input"]), "note": f"authorization: {PLANTED['that a model never sees']}"}
    paused = await agent.run(GOAL, inputs=inputs, thread_id="t", on_event=lambda event: events.append(repr(event)))
    assert paused.status == "paused", paused
    [request] = paused.approvals
    edited = {**request.args, "password": PLANTED["of an edit"]}
    ended = await agent.resume("t", decisions={request.approval_id: Edit(args=edited)})
    again = await agent.resume("t", approve="all") if ended.status == "paused" else ended

    given = {each[0]: each for each in crm.given}
    first = next(each for each in crm.given if each[0] == "login" and each[1] == ADDRESS)
    assert first[2] == PLANTED["of the goal"]
    assert ("login", "b", PLANTED["of the settings"]) in crm.given
    assert given["change"][1:3] == (PLANTED["of a result"], PLANTED["of an edit"])
    assert PLANTED["of the goal"] not in given["change"][3]
    assert given["look"][1:] == (PLANTED["of a result"], ADDRESS)

    texts = [repr(paused), repr(ended), repr(again), repr(await agent.drafts("t")), repr(await agent.runs()), *events]
    texts += [str((await agent.graph.aget_state({"configurable": {"thread_id": "t"}})).values)]
    texts += [(await agent.output("t", each.output_ref)).decode() for each in again.steps if each.output_ref]
    rows = stored(database_url)
    await agent.archive(older_than="0s")
    files = {str(path): path.read_bytes() for path in (tmp_path / "surestep").rglob("*") if path.is_file()}
    places = {
        "an answer": texts,
        "the database": [*rows.values()],
        "a prompt": [json.dumps(question) for question in endpoint.questions],
        "a log": logged,
        "a trace": [body.decode("utf-8", "replace") for body in traced],
        "a file": [body.decode("utf-8", "replace") for body in files.values()],
        "the archive": [body.decode("utf-8", "replace") for path, body in files.items() if "/archive/" in path],
    }
    assert [place for place, found in places.items() if not found] == []
    for what, secret in PLANTED.items():
        assert (what, holding(places, secret) + holding(places, secret.encode().hex())) == (what, [])
    for personal in (ADDRESS, PHONE):  # which is the run's business, as long as the run is in the database
        assert set(holding(places, personal)) <= {"an answer", "the database"}


def holding(places: Mapping[str, Sequence[str]], piece: str) -> list[str]:
    """The places in which this stands."""
    return [place for place, texts in places.items() if any(piece in text for text in texts)]
