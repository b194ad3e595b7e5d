"""The end of a task that runs in the background of an object."""

from __future__ import annotations

import asyncio


async def stop(task: asyncio.Task[None] | None) -> None:
    """Cancel the task and wait for its end. What it died of earlier is raised here, so that no bug goes unheard."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
