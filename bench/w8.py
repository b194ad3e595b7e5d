"""W8: how soon is the first result there, when a model takes three seconds to write its plan?"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.figures import Line, Series, ratios
from bench.server import Server
from graph.agent import open_agent
from graph.settings import Settings
from tools.registry import Toolkit

STEPS = (10,)
WRITING_S = 3.0
"""How long the endpoint takes to stream a plan, its pieces evenly spread."""
READ_S = 0.1
PIECES = 60
BOUND = 0.3


def measure(server: Server, rounds: int, sizes: Sequence[int] = STEPS, others: Sequence[str] = ()) -> list[Line]:
    """Lookups of 0.1 s, each third one of the one before; with `eager` and without in turn, on one database. From the
    call of `run` to the first lookup's result, and to the run's end. The others have nothing like it."""
    del others
    size = max(sizes)
    database = server.database()
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    with writing(plan_of(size), WRITING_S) as endpoint:
        asyncio.run(timed(database, server.folder, endpoint, eager=True))  # imports the model's client, once
        for _ in range(rounds):
            for eager in (True, False):
                found[eager].append(asyncio.run(timed(database, server.folder, endpoint, eager=eager)))
    early, late = found[True], found[False]
    first, whole = (ratios([each[place] for each in early], [each[place] for each in late]) for place in (0, 1))
    told = _seconds([first for first, _ in early]), _seconds([first for first, _ in late])
    ends = _seconds([end for _, end in early]), _seconds([end for _, end in late])
    what = f"a plan of {size} lookups that is written in {WRITING_S:g} s"
    return [
        Line("W8", f"{what}: first result with --eager ÷ without", first.told(" ×"), first.median, BOUND, unit=" ×",
             beside=f"{told[0]} with, {told[1]} without"),
        Line("W8", f"{what}: whole run with --eager ÷ without", whole.told(" ×"),
             beside=f"{ends[0]} with, {ends[1]} without"),
    ]  # fmt: skip


def _seconds(values: Sequence[float]) -> str:
    return Series.of(values).told(" s")


async def timed(database: str, folder: Path, endpoint: str, *, eager: bool) -> tuple[float, float]:
    """Seconds from the call of a run to the first result of a tool, and to its end."""
    ended: list[float] = []
    kit = Toolkit("lookups")

    @kit.tool(effect="read")
    async def look(key: str) -> dict[str, str]:
        """Look something up."""
        await asyncio.sleep(READ_S)
        ended.append(time.monotonic())
        return {"key": key}

    settings = Settings.load(
        environment={}, database_url=database, folder=folder, output=folder, model="scripted", base_url=endpoint,
        structured_output="text", eager=eager,
    )  # fmt: skip
    async with open_agent([kit], settings=settings) as agent:
        await agent.run("warm up", plan={"goal": "g", "steps": [{"id": "s", "tool": "look", "args": {"key": "a"}}]})
        ended.clear()
        began = time.monotonic()
        result = await agent.run("look around")
        if result.status != "done":
            raise RuntimeError(f"the run ended as {result.status}: {result.answer}")
        return min(ended) - began, time.monotonic() - began


def plan_of(size: int) -> str:
    """Lookups, each third one of what the one before has given."""
    keys = [f"${{s{number - 1}.key}}" if number % 3 == 0 else f"k{number}" for number in range(1, size + 1)]
    steps = [
        {"id": f"s{number}", "tool": "look", "args": {"key": key}, "reason": "It is asked for."}
        for number, key in enumerate(keys, 1)
    ]
    return json.dumps({"goal": "look around", "steps": steps, "answer": f"${{s{size}.key}}"})


@contextmanager
def writing(text: str, seconds: float) -> Iterator[str]:
    """The address of an endpoint whose model writes this text, evenly over so many seconds."""

    answering = type("Answering", (_Streaming,), {"text": text, "seconds": seconds, "do_POST": _Streaming.answer})
    with ThreadingHTTPServer(("127.0.0.1", 0), answering) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/v1"
        finally:
            listening.shutdown()


class _Streaming(BaseHTTPRequestHandler):
    """Answers each question with the same completion."""

    text: str
    seconds: float

    def answer(self) -> None:
        """Stream it, piece by piece."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        length = -(-len(self.text) // PIECES)
        for place in range(0, len(self.text), length):
            self._say({"content": self.text[place : place + length]}, None)
            time.sleep(self.seconds / PIECES)
        self._say({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _say(self, delta: dict[str, Any], finish_reason: str | None) -> None:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish_reason}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing."""
