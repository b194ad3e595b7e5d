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
from tests.running import plan, step
from tools.registry import ToolContext, Toolkit

LEASE_S = 1.5
TIMEOUT_S = 0.5
PLAN = plan(
    step("charge", "charge", args={"account": "ann"}, timeout_s=TIMEOUT_S),
    step("ship", "ship", args={"text": "hello"}, timeout_s=TIMEOUT_S),
)


def kit(ledger: Path) -> Toolkit:
    """Two effects that note every call in a file; whether the second has happened can be asked."""
    made = Toolkit("pausing")

    @made.tool(effect="idempotent")
    async def charge(account: str) -> dict[str, str]:
        """Charge an account; the other side honours the key."""
        _note(ledger, "charge")
        return {"charged": account}

    def has_left(_: str) -> dict[str, str] | None:
        return {"shipped": "yes"} if "ship" in ledger.read_text("utf-8") else None

    @made.tool(effect="irreversible", probe=has_left)
    async def ship(text: str, ctx: ToolContext) -> dict[str, str]:
        """Ship a parcel."""
        _note(ledger, "ship")
        return {"shipped": text}

    return made


def _note(ledger: Path, tool: str) -> None:
    with ledger.open("a", encoding="utf-8") as file:
        file.write(f"{tool}\n")


async def main(url: str, folder: Path) -> None:
    """One run, stopped once; what became of it on standard output."""
    settings = Settings.load(environment={}, database_url=url, folder=folder, output=folder / "out", lease_s=LEASE_S)
    async with open_agent([kit(folder / "ledger.txt")], settings=settings) as agent:
        submit, intents, continued = agent.engine.journal.submit, list[Any](), asyncio.Event()

        async def stopping(row: Any, **named: Any) -> Any:
            future = await submit(row, **named)
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
