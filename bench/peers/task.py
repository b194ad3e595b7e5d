"""LangGraph's functional interface: an entrypoint that gathers the tasks of one depth after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy

from bench.peers.stock import stock_saver
from bench.recipes import levels
from bench.work import FirstTry, Work


class Tasks:
    """One entrypoint per recipe. A result is found again by its call's number, so the order of calls must be fixed:
    steps are called depth by depth, not each when it is ready."""

    def __init__(self, saver: AsyncPostgresSaver) -> None:
        self._saver = saver

    async def run(self, work: Work) -> None:
        """One thread per copy."""
        flow = self._flow(work)
        names = [f"{work.recipe.name}-{copy}" for copy in range(work.recipe.copies)]
        await asyncio.gather(*(self._one(flow, work, name, work.recipe.name) for name in names))

    async def resume(self, work: Work) -> None:
        """Go on with a thread whose driver was killed."""
        await self._one(self._flow(work), work, f"{work.recipe.name}-0", None)

    async def _one(self, flow: Any, work: Work, thread_id: str, given: str | None) -> None:
        count = await flow.ainvoke(given, {"configurable": {"thread_id": thread_id}}, durability="async")
        if count != len(work.tasks):
            raise RuntimeError(f"{thread_id} has {count} results of {len(work.tasks)}")

    def _flow(self, work: Work) -> Any:
        places = asyncio.Semaphore(work.recipe.concurrency)
        again = RetryPolicy(initial_interval=work.recipe.wait_s, max_attempts=2, jitter=False, retry_on=FirstTry)

        async def perform(number: int) -> dict[str, Any]:
            async with places:
                return await work.perform(number)

        durable: Any = task(retry_policy=again)
        step = durable(perform)

        @entrypoint(checkpointer=self._saver)
        async def flow(_given: str) -> int:
            count = 0
            for level in levels(work.tasks):
                count += len(await asyncio.gather(*(step(number) for number in level)))
            return count

        return flow


@asynccontextmanager
async def opened(_name: str, url: str, _folder: Path, _found: Work | None) -> AsyncIterator[Tasks]:
    """The saver's tables, made by the saver."""
    async with stock_saver(url) as saver:
        yield Tasks(saver)
