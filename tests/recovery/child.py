"""A process that runs the plan until it ends or is killed: `python -m tests.recovery.child URL FOLDER THREAD`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graph.agent import open_agent
from graph.settings import Settings
from tests.recovery.kit import PLAN, kit


async def main(url: str, folder: Path, thread_id: str) -> None:
    """One run; resumed if the thread has one already."""
    settings = Settings.load(environment={}, database_url=url, folder=folder, output=folder / "out")
    async with open_agent([kit], settings=settings) as agent:
        if await agent.engine.runs.latest(thread_id) is None:
            result = await agent.run(plan=PLAN, thread_id=thread_id)
        else:
            result = await agent.resume(thread_id)
        sys.stdout.write(result.status)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
