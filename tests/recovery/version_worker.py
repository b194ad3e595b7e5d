"""A worker that knows the versions of the plan contract it is told: it begins runs, and dies in all of them at once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from graph.agent import build
from graph.gateway import Agent
from graph.opening import options_from, saver_for
from graph.settings import Settings
from nodes import schemas
from nodes.engine import Engine
from nodes.engine_opening import open_engine
from tests.plans.coming import KNOWN
from tests.running import plan, step
from tools.registry import Registry, ToolContext, Toolkit

SAID = plan(
    step("s1", "look", args={"at": "one"}, title="Look"),
    step("s2", "send", "s1", args={"text": "two"}),
    step("s3", "look", "s2", args={"at": "three"}, title="Look again"),
    step("s4", "send", "s3", args={"text": "four"}, require_approval=True, title="Write"),
    step("s5", "send", "s4", args={"text": "five"}, require_approval=True),
    answer="${s1.seen} ${s5.sent}",
)
UNSAID = plan(*({**each, "verify_after": each["id"] == "s1"} for each in SAID["steps"]), answer="${s5.sent}")
"""A plan that version 1 has no words for."""


def tools(ledger: Path, dies_with: int = 0) -> Toolkit:
    """Tools that note what they do. With `dies_with` the process dies when so many runs have come to their step s3."""
    kit = Toolkit("versions")
    arrived: list[str] = []

    def note(ctx: ToolContext, what: str) -> None:
        with ledger.open("a", encoding="utf-8") as lines:
            lines.write(f"{ctx.run_id} {ctx.step_id} {what}\n")

    @kit.tool(effect="read")
    async def look(at: str, ctx: ToolContext) -> dict[str, str]:
        """Look somewhere."""
        note(ctx, at)
        if dies_with and ctx.step_id == "s3":
            arrived.append(ctx.run_id)
            if len(arrived) == dies_with:
                await asyncio.sleep(0.5)  # what came before is stored: effects in doubt are another test's matter
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(60)
        return {"seen": at}

    @kit.tool(effect="irreversible")
    async def send(text: str, ctx: ToolContext) -> dict[str, str]:
        """Send a letter."""
        note(ctx, text)
        return {"sent": text}

    return kit


@asynccontextmanager
async def worker(
    url: str, folder: Path, knows: str, *, canary: float = 100.0, dies_with: int = 0
) -> AsyncIterator[Agent]:
    """An agent of the worker that knows these versions."""
    settings = Settings.load(environment={}, database_url=url, folder=folder, output=folder / "out", plan_canary=canary)
    options = options_from(settings)
    known = dataclasses.replace(KNOWN[knows], canary=options.plan_versions.canary)
    options = dataclasses.replace(options, plan_versions=known)
    schemas.load()
    registry = Registry.of(tools(folder / "ledger", dies_with))
    async with open_engine(options, registry=registry) as engine:

        async def same() -> Engine:
            return engine

        async with saver_for(engine) as saver:
            yield Agent(engine, build(same).compile(checkpointer=saver, name="surestep"))


async def begin(url: str, folder: Path, knows: str, plans: Mapping[str, Any]) -> None:
    """Begin a run per plan, on the thread of its name; none of them ends."""
    async with worker(url, folder, knows, dies_with=len(plans)) as agent:
        await asyncio.gather(*(agent.run(plan=each, thread_id=name) for name, each in plans.items()))


if __name__ == "__main__":
    asyncio.run(begin(sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])))
