"""`langgraph dev` as a child process: started offline, killed for real, started again on the same database."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

ROOT = Path(__file__).parents[2]
START_S = 60.0


class DevServer:
    """One server in a folder of its own; leaving the block ends it and everything it started."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        shutil.copy(ROOT / "langgraph.json", folder / "langgraph.json")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", self.url.rpartition(":")[2], "--n-jobs-per-worker", "4"],
                cwd=self.folder,
                env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}
                | self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait()

    def kill(self) -> None:
        """SIGKILL for the server and its children: nothing of it can put anything in order."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def log(self) -> str:
        """What it has printed so far."""
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self._process is not None and self._process.poll() is not None:
                break
            try:
                if httpx.get(f"{self.url}/ok", timeout=2).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
        raise AssertionError(f"langgraph dev did not start:\n{self.log()[-4000:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
