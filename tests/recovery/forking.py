"""A process that forks the run on thread "t" again and again, and is killed each time at another point of that.

`python -m tests.recovery.forking URL FOLDER POINT[:NTH] …`: after one import, a process of its own for every point.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from checkpoints import crash_points
from graph.agent import open_agent
from graph.settings import Settings
from nodes import schemas
from tests.running import plan, step
from tools.registry import ToolContext, Toolkit

kit = Toolkit("forking")


def note(ctx: ToolContext) -> None:
    """One line in the ledger: this step has called its tool."""
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{ctx.step_id}\n")


@kit.tool(effect="read")
async def look(what: str, ctx: ToolContext) -> dict[str, str]:
    """Look something up."""
    note(ctx)
    return {"found": what}


@kit.tool(effect="irreversible", sensitive_args=())
async def send(to: str, ctx: ToolContext) -> dict[str, str]:
    """Send it."""
    note(ctx)
    return {"sent": to}


PLAN = plan(
    step("a", "look", args={"what": "ann"}),
    step("b", "send", args={"to": "${a.found}"}),
    step("c", "send", args={"to": "${b.sent} again"}),
    answer="${c.sent}",
)


def settings_for(url: str, folder: Path) -> Settings:
    """Settings on this database."""
    return Settings.load(environment={}, database_url=url, folder=folder, output=folder / "out")


class Killer:
    """Kills its process when it comes to a point for the nth time."""

    def __init__(self, point: str) -> None:
        self._name, _, nth = point.partition(":")
        self._left = int(nth or 1)

    def __call__(self, name: str) -> None:
        """The engine is at this point."""
        self._left -= name == self._name
        if name == self._name and self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def fork(settings: Settings, thread_id: str) -> None:
    """One fork, from step c."""
    async with open_agent([kit], settings=settings) as agent:
        await agent.fork("t", "c", new_thread_id=thread_id)


def main(url: str, folder: Path, points: list[str]) -> None:
    """Print how each of the processes ended: the number of the signal that killed it."""
    settings = settings_for(url, folder)
    schemas.load()
    for point in points:
        if (child := os.fork()) == 0:
            crash_points.hook = Killer(point)
            asyncio.run(fork(settings, point))
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
