"""The limit: asyncio alone, which stores nothing, with the order of starts that Surestep has."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.work import FirstTry, Work
from plans.schedule import dependents_of, remaining_path


class Plain:
    """Starts each step when those it waits for are done and a place is free, the longest path ahead first."""

    async def run(self, work: Work) -> None:
        """Run all copies at once."""
        await asyncio.gather(*(_Run(work).drive() for _ in range(work.recipe.copies)))

    async def resume(self, work: Work) -> None:
        """Nothing was stored that it could go on with."""
        raise RuntimeError(f"nothing of {work.recipe.name} is left")


class _Run:
    def __init__(self, work: Work) -> None:
        edges = {str(task.number): tuple(map(str, task.after)) for task in work.tasks}
        self._work = work
        self._dependents = dependents_of(edges)
        self._remaining = remaining_path(edges)
        self._waiting = {task.number: len(task.after) for task in work.tasks}
        self._ready: list[tuple[float, int]] = []
        self._running: set[asyncio.Task[None]] = set()
        self._left = len(work.tasks)
        self._all_done = asyncio.Event()

    async def drive(self) -> None:
        for number, waiting in self._waiting.items():
            if not waiting:
                self._push(number)
        self._start_ready()
        await self._all_done.wait()

    def _push(self, number: int) -> None:
        heapq.heappush(self._ready, (-self._remaining[str(number)], number))

    def _start_ready(self) -> None:
        while self._ready and len(self._running) < self._work.recipe.concurrency:
            task = asyncio.create_task(self._one(heapq.heappop(self._ready)[1]))
            self._running.add(task)

    async def _one(self, number: int) -> None:
        try:
            await self._work.perform(number)
        except FirstTry:
            asyncio.get_running_loop().call_later(self._work.recipe.wait_s, self._again, number)
        else:
            self._left -= 1
            for dependent in map(int, self._dependents[str(number)]):
                self._waiting[dependent] -= 1
                if not self._waiting[dependent]:
                    self._push(dependent)
        finally:
            self._running.discard(_current())
            self._start_ready()
            if not self._left:
                self._all_done.set()

    def _again(self, number: int) -> None:
        self._push(number)
        self._start_ready()


def _current() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 (it is asked from within one)
    return task


@asynccontextmanager
async def opened(_name: str, _url: str, _folder: Path, _found: Work | None) -> AsyncIterator[Plain]:
    """Needs nothing."""
    yield Plain()
