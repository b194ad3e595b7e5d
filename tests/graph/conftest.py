"""Fixtures of the graph's tests: agents on a fresh real database, and a scripted model on a real local server."""

from __future__ import annotations

import os
import signal
import socketserver
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from tests.graph.program import KIT, Ended, Project, Run, clean_environment
from tests.nodes.model_server import ScriptedModel
from tools.registry import Toolkit

OpenAgent = Callable[..., Any]


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> ScriptedModel:
    """A model endpoint that answers as the test says."""
    return ScriptedModel(httpserver)


@pytest.fixture
async def agent_on(database_url: str, tmp_path: Path) -> AsyncIterator[OpenAgent]:
    """`await agent_on([toolkit], model=endpoint)`: an agent on this test's database; closed when the test ends."""
    async with AsyncExitStack() as stack:

        async def opened(toolkits: Sequence[Toolkit], *, model: ScriptedModel | None = None, **more: Any) -> Agent:
            named: dict[str, Any] = (
                {"model": "scripted", "base_url": model.base_url, "api_key": "key-1"} if model else {}
            )
            # Edges are read from a thread's history.
            named |= {"folder": tmp_path / "surestep", "output": tmp_path / "out", "durability": "async"}
            settings = Settings.load(environment={}, database_url=database_url, **{**named, **more})
            return await stack.enter_async_context(open_agent(toolkits, settings=settings))

        yield opened


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    """A user's folder with the toolkit `mykit:kit`, on this test's database."""
    folder = tmp_path / "project"
    folder.mkdir()
    made = Project(folder, clean_environment(SURESTEP_DATABASE_URL=database_url, HOME=str(tmp_path)))
    made.write("mykit.py", KIT)
    return made


@pytest.fixture
def surestep(project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """`surestep("run", ...)` in this process and the project's folder; gives how it ended."""
    from graph.cli import main

    monkeypatch.chdir(project.folder)
    for name in {*os.environ, *project.environment}:
        monkeypatch.setenv(name, project.environment[name]) if name in project.environment else monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before, loaded = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}, set(sys.modules)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["surestep", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        sys.excepthook = sys.__excepthook__
        sys.stdout.flush()
        written = capfd.readouterr()
        return Ended(int(end.value.code or 0), written.out, written.err)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)
    for name in set(sys.modules) - loaded:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(project.folder)):
            del sys.modules[name]


@pytest.fixture
def refusing_server() -> Iterator[str]:
    """URL of something that speaks PostgreSQL's protocol and refuses every password, as a real server words it."""
    fields = (b"SFATAL", b"VFATAL", b"C28P01", b'Mpassword authentication failed for user "ann"')
    body = b"".join(field + b"\0" for field in fields) + b"\0"
    refusal = b"E" + (len(body) + 4).to_bytes(4, "big") + body

    class Refusing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while given := self.request.recv(4096):
                ssl_or_gss = len(given) == 8
                self.request.sendall(b"N" if ssl_or_gss else refusal)
                if not ssl_or_gss:
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"postgresql://ann:topsecret@127.0.0.1:{server.server_address[1]}/shop"
        server.shutdown()
        thread.join()
