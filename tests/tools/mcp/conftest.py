"""Fixtures of MCP tests: real servers in processes of their own, what they have noted, and toolkits of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.mcp import McpToolkit, mcp_toolkit

HERE = Path(__file__).parent
READS = {"effect": "read", "retry": {"initial_interval": 0.05, "jitter": 0}}


@dataclass
class Served:
    """A server's folder: how it is started, and what it has noted there."""

    folder: Path
    program: str
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def command(self) -> list[str]:
        """What starts it, to be spoken to over stdio."""
        return [sys.executable, str(HERE / self.program), str(self.folder)]

    def kit(self, name: str = "shop", **more: Any) -> McpToolkit:
        """A toolkit of this server."""
        return mcp_toolkit(name, command=self.command, **{"start_timeout_s": 30, **more})

    def calls(self) -> list[str]:
        """What it has noted, in order."""
        path = self.folder / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []

    def pids(self) -> list[int]:
        """Every process of it that was started, in order."""
        path = self.folder / "pids.txt"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def alive(self) -> list[int]:
        """Those that live."""
        return [pid for pid in self.pids() if is_alive(pid)]

    def script(self, **said: Any) -> None:
        """What the raw server does from now on."""
        (self.folder / "script.json").write_text(json.dumps({"tools": [], **said}))

    def remote(self, **more: Any) -> McpToolkit:
        """A toolkit of this server at a URL; it is started."""
        return mcp_toolkit("shop", url=self.serve(free_port()), **{"start_timeout_s": 30, **more})

    def restart(self) -> None:
        """Kill the one that was started, and start it at the same port."""
        self.kill()
        self.serve(self.port)

    def kill(self) -> None:
        """As the kernel does it when memory is short."""
        self.started[-1].kill()
        self.started[-1].wait()

    def serve(self, port: int) -> str:
        """Start it at a port of this machine; gives the URL once it answers."""
        self.port = port
        self.started.append(subprocess.Popen([*self.command, str(port)], stderr=subprocess.DEVNULL))
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}/mcp"
            time.sleep(0.02)
        raise AssertionError("the server never listened")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """The server made with the SDK."""
    yield from _served(tmp_path, "server.py")


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Served]:
    """The server that does as a script says; it starts much faster."""
    yield from _served(tmp_path, "raw_server.py")


@pytest.fixture
def raw_http(tmp_path: Path) -> Iterator[Served]:
    """The same over HTTP."""
    yield from _served(tmp_path, "raw_http.py")


def _served(tmp_path: Path, program: str) -> Iterator[Served]:
    folder = tmp_path / "served"
    folder.mkdir()
    served = Served(folder, program)
    served.script()
    yield served
    for process in served.started:
        process.kill()
        process.wait()
    assert eventually(lambda: not served.alive()), f"left behind: {served.alive()}"


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether something becomes true within the time."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def listed(name: str, **more: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object", "properties": {}}, **more}
