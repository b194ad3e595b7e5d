"""Surestep, through its library: a plan, a toolkit, and an agent with its defaults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.peers.peer import POOL_SIZE
from bench.work import FirstTry, Work
from graph.agent import open_agent
from graph.gateway import Agent
from graph.result import RunResult
from graph.settings import Settings
from plans.failure import ToolFailure
from tools.registry import Toolkit


class Tools:
    """A toolkit of two, a read and an effect, that do the work at hand."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.kit = Toolkit("bench")
        self.kit.tool(name="fetch", effect="read", retry={"max_attempts": 1})(self._tool())
        self.kit.tool(name="note", effect="irreversible", risk="low")(self._tool())

    def _tool(self) -> Any:
        async def tool(n: int, after: int | None = None) -> dict[str, Any]:  # noqa: ARG001 (as a chain hands values on)
            """Do step n."""
            assert self.work is not None  # noqa: S101 (whoever runs a plan has set it)
            try:
                return await self.work.perform(n)
            except FirstTry as error:
                # The one code whose step is tried again after the wait that it names, not after one of ours.
                raise ToolFailure("CONFLICT", str(error), delay_s=self.work.recipe.wait_s) from None

        return tool


class Ours:
    """An agent and its tools."""

    def __init__(self, agent: Agent, tools: Tools) -> None:
        self._agent = agent
        self._tools = tools

    async def run(self, work: Work) -> None:
        """One plan per copy, each on a thread of its own."""
        self._tools.work = work
        plan = plan_of(work)
        names = [f"{work.recipe.name}-{copy}" for copy in range(work.recipe.copies)]
        await asyncio.gather(*(self._one(plan, thread_id, work) for thread_id in names))

    async def resume(self, work: Work) -> None:
        """Go on with a run that was killed."""
        self._tools.work = work
        thread_id = f"{work.recipe.name}-0"
        _check(thread_id, await self._agent.resume(thread_id))

    async def _one(self, plan: dict[str, Any], thread_id: str, work: Work) -> None:
        limits = {"max_steps": 100_000, "concurrency": work.recipe.concurrency}
        _check(thread_id, await self._agent.run(plan=plan, thread_id=thread_id, limits=limits))


def _check(thread_id: str, result: RunResult) -> None:
    if result.status != "done":
        raise RuntimeError(f"{thread_id} ended as {result.status}: {result.answer}")


def plan_of(work: Work) -> dict[str, Any]:
    """The recipe's steps as a plan; each is handed a value of its first dependency."""
    tool = "note" if work.recipe.effects else "fetch"
    steps = []
    for task in work.tasks:
        given = {"after": f"${{s{task.after[0]}.n}}"} if task.after else {}
        steps.append(
            {
                "id": f"s{task.number}",
                "tool": tool,
                "args": {"n": task.number, **given},
                "depends_on": [f"s{number}" for number in task.after],
                "reason": "to be measured",
            }
        )
    return {"goal": f"run {work.recipe.name}", "steps": steps}


@asynccontextmanager
async def opened(_name: str, url: str, folder: Path, _found: Work | None) -> AsyncIterator[Ours]:
    """An agent on this database, which is migrated first."""
    tools, output = Tools(), folder / "out"
    settings = Settings.load(environment={}, database_url=url, folder=folder, output=output, pool_size=POOL_SIZE)
    async with open_agent([tools.kit], settings=settings) as agent:
        yield Ours(agent, tools)
