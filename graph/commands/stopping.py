"""How a command is stopped: Ctrl-C, SIGTERM and a closed terminal let it put things in order; a second one does not."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graph.commands.failing import STOPPED, Stopped
from graph.commands.printing import say, stdout_for_the_result

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_STOP_S = 0.3
"""Signals that follow each other faster are one: a terminal and a program in between may both pass a Ctrl-C on."""


@dataclass
class Stopping:
    """What happens when a command is asked to stop. `tell` says what is still waited for; `leave` puts the terminal
    back when the process ends at once."""

    tell: Callable[[], None] = lambda: say("stopping …")
    leave: list[Callable[[], None]] = field(default_factory=list)
    advice: str = "surestep resume THREAD"
    asked_at: float | None = None


def waited(work: Callable[[], Coroutine[Any, Any, T]], stopping: Stopping | None = None) -> T:
    """Run async work to its end; what is printed meanwhile goes to stderr. Raises Stopped when it was cancelled by a
    signal and has come to its end."""
    with stdout_for_the_result():
        return asyncio.run(_stoppable(work, stopping or Stopping()))


async def _stoppable(work: Callable[[], Coroutine[Any, Any, T]], stopping: Stopping) -> T:
    task = asyncio.ensure_future(work())
    with _signals(lambda: _stop(task, stopping)):
        try:
            return await task
        except asyncio.CancelledError:
            if stopping.asked_at is None:
                raise
            raise Stopped from None


def _stop(task: asyncio.Future[Any], stopping: Stopping) -> None:
    now = time.monotonic()
    if stopping.asked_at is None:
        stopping.asked_at = now
        stopping.tell()
        task.cancel()
    elif now - stopping.asked_at > ONE_STOP_S:
        for put_back in stopping.leave:
            put_back()
        # The journal is in the database and made for this: what is in flight is settled by the next resume.
        say(f"left at once; what is finished is kept. Go on with:\n  {stopping.advice}")
        os._exit(STOPPED)


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Take the signals that end a program, save those that whoever started us has turned off (nohup)."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]
    for number in taken:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
