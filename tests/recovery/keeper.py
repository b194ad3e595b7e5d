"""A process that archives, erases or sweeps, and dies where it is told; one that has imported everything forks each.

Run as `python -m tests.recovery.keeper`: orders come as JSON lines on its standard input,
`[url, folder, verb, point, nth, settings]`; for each it says the exit code of the child, or minus the signal that ended
it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from checkpoints import archive, crash_points, erasure, outbox, saver
from graph import sweeping
from graph.agent import open_agent
from graph.settings import Settings
from tests.graph.keeping import kit

ROOT = Path(__file__).resolve().parents[2]
THREAD = "t"
EARLY = (archive, erasure, saver, sweeping, outbox)
"""Imported here, once, and not by each child."""


class Keeper:
    """The forking process, from the tests' side."""

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.recovery.keeper"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(timeout=10)
        self._server.stdout.close()

    def run(self, url: str, folder: Path, verb: str, point: str = "", nth: int = 1, **more: Any) -> int:
        """How a process that does this ends; it is killed at its nth coming to the point. `more` are its settings."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([url, str(folder), verb, point, nth, more]) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


async def _keep(url: str, folder: Path, verb: str, more: dict[str, Any]) -> None:
    where = {"database_url": url, "folder": folder / "surestep", "output": folder / "out"}
    settings = Settings.load(environment={}, **{**where, **more})
    async with open_agent([kit], settings=settings) as agent:
        if verb == "erase":
            await agent.erase(THREAD)
        elif verb == "sweep":
            await agent.sweeper.once()
        else:
            await agent.archive(older_than="7d" if verb == "trim" else 0)


def _be_a_child(url: str, folder: str, verb: str, point: str, nth: int, more: dict[str, Any]) -> None:
    seen: Counter[str] = Counter()

    def listen(name: str) -> None:
        seen[name] += 1
        if (name, seen[name]) == (point, nth):
            os.kill(os.getpid(), signal.SIGKILL)

    crash_points.hook = listen
    code = 1
    try:
        asyncio.run(_keep(url, Path(folder), verb, more))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve() -> None:
    for line in sys.stdin:
        if not (pid := os.fork()):
            _be_a_child(*json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
