"""How the end of work on another thread gets to the event loop that waits for it, if that is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from tools.context import Progress

Ended = tuple[Any, BaseException | None]
"""What was returned, and what was raised."""


def deliver(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Ended], ended: Ended) -> None:
    """Give the future its value, on its loop; nothing where nobody waits for it any more."""
    on_loop(loop, lambda: None if future.done() else future.set_result(ended))


def told_on(loop: asyncio.AbstractEventLoop, progress: Progress) -> Progress:
    """The same progress, told from another thread."""
    return lambda fraction, message: on_loop(loop, partial(progress, fraction, message))


def on_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Do this on the loop, soon."""
    try:
        loop.call_soon_threadsafe(act)
    except RuntimeError:  # the loop has closed: whoever waited for this is gone
        return
