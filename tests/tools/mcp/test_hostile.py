"""A server at a URL that answers as no server should: how often it is called, how soon that is told, what is kept."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.tools.calls import code_of
from tests.tools.http.reaching import calling, value_of
from tests.tools.mcp.conftest import READS, listed
from tools.call import Outcome
from tools.mcp import mcp_toolkit
from tools.registry import Registry

SECRET = "hunter2-secret"
GOOD = {"content": [{"type": "text", "text": "ok"}]}
JSON_TYPE = {"Content-Type": "application/json"}


@dataclass
class Hostile:
    """What a call is answered: status, headers, and the body made of the request. `session` is its name for one."""

    port: int = 0
    calls: int = 0
    session: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON_TYPE))
    body: Callable[[dict[str, Any]], bytes] = lambda asked: reply(asked, GOOD)
    description: str = "Acts."


def reply(asked: dict[str, Any], result: Any) -> bytes:
    """An answer to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()


class Serving(ThreadingHTTPServer):
    """Answers as it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.said = Hostile(self.server_address[1])


class Answering(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Serving

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = self.server.said
        match asked["method"] if "id" in asked else None:
            case None:
                self.send(202, {}, b"")
            case "initialize":
                version = asked["params"]["protocolVersion"]
                info = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
                session = {"Mcp-Session-Id": said.session} if said.session else {}
                self.send(200, {**JSON_TYPE, **session}, reply(asked, info))
            case "tools/call":
                said.calls += 1
                self.send(said.status, said.headers, said.body(asked))
            case "tools/list":
                self.send(200, JSON_TYPE, reply(asked, {"tools": [listed("act", description=said.description)]}))
            case _:
                self.send(200, JSON_TYPE, reply(asked, {}))

    def do_DELETE(self) -> None:
        self.send(200, {}, b"")

    def do_GET(self) -> None:
        self.send(405, {}, b"")

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # who has heard enough hangs up
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """A server in a thread of its own."""
    with Serving() as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        yield server.said
        server.shutdown()
        serving.join()


async def called(server: Hostile, **policy: Any) -> Outcome:
    """One call of the server's tool through all layers."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    kit = mcp_toolkit("shop", url=f"http://127.0.0.1:{server.port}/mcp", headers=headers, tools={"act": policy})
    tool = Registry.of(kit)["shop_act"]
    assert SECRET not in repr((tool.description, kit.notices))
    kit.hold()
    try:
        return await calling(tool, {})
    finally:
        await kit.release()


@pytest.mark.parametrize("effect", ["irreversible", "idempotent", "read"])
async def test_a_404_that_is_about_no_session_is_an_answer(hostile: Hostile, effect: str) -> None:
    """Only a server that has named a session can have forgotten it; from any other one, 404 is called once."""
    hostile.status = 404
    assert (code_of(await called(hostile, effect=effect)), hostile.calls) == ("NOT_FOUND", 1)


async def test_a_session_that_is_forgotten_as_soon_as_it_is_made_is_not_tried_for_ever(hostile: Hostile) -> None:
    """A second 404, in a new session, is the answer; retries add nothing to it."""
    hostile.status, hostile.session = 404, "s1"
    assert (code_of(await called(hostile, **READS)), hostile.calls) == ("NOT_FOUND", 2)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (204, {}, b""),
        (202, {}, b""),
        (206, JSON_TYPE, b"{}"),
        (200, {}, b"{}"),
        (200, {"Content-Type": "text/html"}, b"<html>"),
        (200, {**JSON_TYPE, "Content-Encoding": "gzip"}, gzip.compress(b" " * 1_000_000)),
        (307, {"Location": "/elsewhere"}, b""),
    ],
)
async def test_what_is_no_answer_is_told_at_once(hostile: Hostile, status: int, headers: Any, body: bytes) -> None:
    """An effect is called once, and its outcome is unknown without waiting for the deadline; nothing is unpacked."""
    hostile.status, hostile.headers, hostile.body = status, headers, lambda _: body
    began = time.monotonic()
    outcome = await called(hostile, effect="irreversible", timeout_s=15)
    assert (code_of(outcome), hostile.calls) == ("UNKNOWN_OUTCOME", 1)
    assert time.monotonic() - began < 10


async def test_an_answer_without_end_is_cut_off(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are counted as they come."""
    monkeypatch.setattr("tools.mcp.http.MAX_ANSWER", 100_000)
    hostile.body = lambda asked: reply(asked, {"content": [{"type": "text", "text": "x" * 1_000_000}]})
    assert (code_of(await called(hostile, effect="irreversible")), hostile.calls) == ("UNKNOWN_OUTCOME", 1)


async def test_no_number_of_progress_ends_a_conversation(hostile: Hostile) -> None:
    """Numbers larger than any, infinite ones and none at all are no share, and the result still comes."""

    def told(asked: dict[str, Any]) -> bytes:
        token = asked["params"]["_meta"]["progressToken"]
        events: list[dict[str, Any]] = [
            {"progress": 10**400, "total": 1}, {"progress": 1, "total": 0}, {"progress": "x", "total": 2},
            {"progress": 1e308, "total": 1e-300}, {"progress": 1, "total": -10**400}, {},
        ]  # fmt: skip
        notes = [
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, **event}}
            for event in events
        ]
        lines = [*(json.dumps(note).encode() for note in notes), reply(asked, GOOD)]
        return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in lines)

    hostile.headers, hostile.body = {"Content-Type": "text/event-stream"}, told
    assert (value_of(await called(hostile, effect="irreversible")), hostile.calls) == ("ok", 1)


async def test_a_server_that_repeats_our_secret_puts_it_nowhere(hostile: Hostile) -> None:
    """Neither by a result nor by what it says of its tool."""
    hostile.description = f"You sent {SECRET}."
    hostile.body = lambda asked: reply(asked, {"structuredContent": {"you": f"Bearer {SECRET}", SECRET: [SECRET]}})
    outcome = await called(hostile, effect="read")
    assert SECRET not in repr(outcome)
    assert value_of(outcome) == {"you": "***", "***": ["***"]}
