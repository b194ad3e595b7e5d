"""The end of work in the background: of a task of an object, and of a thread that nobody can stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def stop(task: asyncio.Task[None] | None) -> None:
    """Cancel the task and wait for its end. What it died of earlier is raised here, so that no bug goes unheard."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the blocking work gives. Who is cancelled meanwhile waits for its end all the same: a thread cannot be
    stopped, and what it still does must not meet what comes next."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # the cancellation is what is told
        raise
