"""Where a tool's function runs: async ones on the loop, others in a bounded pool of threads of our own, or apart.

The default pool of asyncio is shared with everybody and queues without bound, so that a few hung tools would stop
whatever else needs a thread. This one refuses when it is full, and no single tool can take more than half of it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from plans.failure import ToolFailure
from tools.callee import Callee
from tools.context import ToolContext
from tools.delivery import Ended, deliver, told_on

THREADS = 64
"""Most sync tools that run at once in a process; a run starts at most eight steps at once by default."""


async def run(tool: str, callee: Callee, arguments: Mapping[str, Any], ctx: ToolContext) -> Any:
    """Make the call in this process and give back what it returned, awaited. Context variables are seen by it."""
    if callee.is_async:
        return await callee.bind(arguments, ctx)()
    if callee.context is not None:
        ctx = replace(ctx, progress=told_on(asyncio.get_running_loop(), ctx.progress))
    returned, error = await POOL.submit(tool, callee.bind(arguments, ctx))
    if error is not None:
        raise error
    return await returned if inspect.isawaitable(returned) else returned


async def run_apart(tool: str, callee: Callee, arguments: Mapping[str, Any], ctx: ToolContext) -> Any:
    """Make the call in a child process and give back what it returned. Whoever is cancelled while it waits leaves
    nothing behind: this ends when the child is gone."""
    from tools.children import CHILDREN
    from tools.errand import errand_of

    progress = told_on(asyncio.get_running_loop(), ctx.progress)
    job = CHILDREN.submit(tool, errand_of(callee, arguments, ctx), progress)
    try:
        returned, error = await job.ended
    except asyncio.CancelledError:
        job.abandon()
        await job.gone
        raise
    if error is not None:
        raise error
    return returned


@dataclass(frozen=True, slots=True)
class _Job:
    tool: str
    work: Callable[[], Any]
    deliver: Callable[[Ended], None]


class ThreadPool:
    """Daemon threads, made when needed and kept: a hung tool does not keep the process from ending."""

    def __init__(self, size: int = THREADS) -> None:
        self._size = size
        self._per_tool = max(1, size // 2)
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    @property
    def running(self) -> int:
        """How many calls run now, those included whose result nobody waits for any more."""
        with self._lock:
            return self._running.total()

    def submit(self, tool: str, work: Callable[[], Any]) -> asyncio.Future[Ended]:
        """Start the work now, or raise ToolFailure POOL_FULL. The future gives what it returned and what it raised;
        once the future is cancelled, both are dropped."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended] = loop.create_future()
        job = _Job(tool, partial(contextvars.copy_context().run, work), partial(deliver, loop, ended))
        with self._lock:
            self._admit(tool)
            if self._threads < self._running.total():
                self._start(tool)
        self._jobs.put(job)
        return ended

    def _start(self, tool: str) -> None:
        name = f"surestep-tool-{self._threads + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError as error:  # the system has none to give
            self._running[tool] -= 1
            raise ToolFailure("POOL_FULL", f"no thread could be started for {tool}: {error}") from None
        self._threads += 1

    def _admit(self, tool: str) -> None:
        if self._running.total() >= self._size or self._running[tool] >= self._per_tool:
            raise ToolFailure(
                "POOL_FULL", f"{self._running[tool]} calls of {tool} still run; no thread is free for more"
            )
        self._running[tool] += 1

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            ended = _outcome(job.work)
            with self._lock:
                self._running[job.tool] -= 1
            job.deliver(ended)
            del job, ended  # the thread waits for its next job without holding on to the last one's result


POOL = ThreadPool()


def _outcome(work: Callable[[], Any]) -> Ended:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 (raised again where the result is awaited)
        return None, error
