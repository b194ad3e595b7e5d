"""DBOS: a workflow that gathers the steps of one depth after the other, in an application of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from bench.recipes import levels
from bench.work import FirstTry, Work

_at_hand: dict[str, Any] = {}
"""The work and its places: DBOS finds workflows and steps by name, so they are the module's."""


async def _perform(number: int) -> dict[str, Any]:
    async with _at_hand["places"]:
        result: dict[str, Any] = await _at_hand["work"].perform(number)
        return result


def _of_first_try(error: BaseException) -> bool:
    return isinstance(error, FirstTry)


step = DBOS.step(retries_allowed=True, max_attempts=2, interval_seconds=0.05, should_retry=_of_first_try)(_perform)


async def _flow(depths: list[list[int]]) -> int:
    count = 0
    for level in depths:
        count += len(await asyncio.gather(*(step(number) for number in level)))
    return count


flow = DBOS.workflow()(_flow)


class Durable:
    """Workflows in this loop. A step is found again by its number of call: they are started in a fixed order."""

    async def run(self, work: Work) -> None:
        """One workflow per copy, all started, then all awaited."""
        hold(work)
        depths = levels(work.tasks)
        started = []
        for copy in range(work.recipe.copies):
            with SetWorkflowID(f"{work.recipe.name}-{copy}"):
                started.append(await DBOS.start_workflow_async(flow, depths))
        _check(work, await asyncio.gather(*(each.get_result() for each in started)))

    async def resume(self, work: Work) -> None:
        """Wait for the workflow that the launch has recovered by itself."""
        handle: Any = await DBOS.retrieve_workflow_async(f"{work.recipe.name}-0")
        _check(work, [await handle.get_result()])


def hold(work: Work) -> None:
    """What the steps do from now on."""
    _at_hand.update(work=work, places=asyncio.Semaphore(work.recipe.concurrency))


def _check(work: Work, counts: list[int]) -> None:
    if any(count != len(work.tasks) for count in counts):
        raise RuntimeError(f"{work.recipe.name} has {counts} results, not {len(work.tasks)} each")


@asynccontextmanager
async def opened(_name: str, url: str, _folder: Path, found: Work | None) -> AsyncIterator[Durable]:
    """The application, launched: what a killed process has left is recovered at once."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url.replace("postgresql://", "postgresql+psycopg://"),
            "application_version": "1",
            "executor_id": "bench",
            "console_log_level": "ERROR",
            "log_level": "ERROR",
        }
    )
    if found is not None:
        hold(found)  # the launch begins at once to run what is unfinished
    DBOS.launch()
    try:
        yield Durable()
    finally:
        DBOS.destroy()
