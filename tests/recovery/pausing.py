"""A process that stops itself (SIGSTOP) between its intents' acceptance and their calls: `python -m
tests.recovery.pausing URL FOLDER`. Continued, it goes on as if nothing had been."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from graph.agent import open_agent
from graph.settings import Settings
from plans.errors import SurestepError
from tests.recovery.kit import kit

LEASE_S = 1.5
TIMEOUT_S = 0.5


PLAN = {
    "goal": "two effects of half a second at most, side by side",
    "steps": [
        {"id": "charge", "tool": "charge", "args": {"account": "ann"}, "timeout_s": TIMEOUT_S},
        {"id": "ship", "tool": "ship", "args": {"text": "hello"}, "timeout_s": TIMEOUT_S},
    ],
}


async def main(url: str, folder: Path) -> None:
    """One run, stopped once; what became of it on standard output."""
    settings = Settings.load(environment={}, database_url=url, folder=folder, output=folder / "out", lease_s=LEASE_S)
    async with open_agent([kit], settings=settings) as agent:
        submit, intents, continued = agent.engine.journal.submit, list[Any](), asyncio.Event()

        async def stopping(row: Any) -> Any:
            future = await submit(row)
            if row.kind == "intent" and not continued.is_set():
                intents.append(future)
                if len(intents) < len(PLAN["steps"]):
                    await continued.wait()
                else:
                    await asyncio.gather(*intents)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    continued.set()
            return future

        agent.engine.journal.submit = stopping  # type: ignore[method-assign]
        try:
            result = await agent.run(plan=PLAN, thread_id="t")
        except SurestepError as error:
            sys.stdout.write(type(error).__name__)
        else:
            sys.stdout.write(result.status)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
