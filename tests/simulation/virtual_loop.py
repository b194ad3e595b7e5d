"""An event loop without time or sockets of its own: it runs one callback when it is told to, in a seeded order."""

from __future__ import annotations

import asyncio
import heapq
import threading
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any, TypeVarTuple

if TYPE_CHECKING:
    from tests.simulation.timeline import Timeline

Ts = TypeVarTuple("Ts")


class VirtualLoop(asyncio.BaseEventLoop):
    """Callbacks of one process. `shuffle` is the share of callbacks that are taken out of turn.

    What a thread would do (`to_thread`, `run_in_executor`) happens in the loop, as one callback. `handled` counts
    callbacks; `errors` is what nobody was there to raise to.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _thread_id: int | None

    def __init__(self, timeline: Timeline, *, order: Random | None = None, shuffle: float = 0.0) -> None:
        super().__init__()
        self._timeline = timeline
        self._order = order
        self._shuffle = shuffle
        self.handled = 0
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        """Virtual seconds."""
        return self._timeline.now

    def due(self) -> float | None:
        """When the next callback may run: now, at a later time, or (None) never."""
        if any(not handle.cancelled() for handle in self._ready):
            return self._timeline.now
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)
        return self._scheduled[0].when() if self._scheduled else None

    def overdue(self) -> int:
        """How many callbacks could be run at this very moment."""
        due = sum(handle.when() <= self._timeline.now for handle in self._scheduled if not handle.cancelled())
        return due + sum(not handle.cancelled() for handle in self._ready)

    def step(self) -> None:
        """Run one callback that is due."""
        while self._scheduled and self._scheduled[0].when() <= self._timeline.now:
            self._ready.append(heapq.heappop(self._scheduled))
        if not self._ready:
            return
        handle = self._taken()
        self.handled += 1
        if handle.cancelled():
            return
        self._thread_id = threading.get_ident()
        events._set_running_loop(self)
        try:
            handle._run()
        finally:
            events._set_running_loop(None)
            self._thread_id = None

    def _taken(self) -> asyncio.Handle:
        if self._order is not None and len(self._ready) > 1 and self._order.random() < self._shuffle:
            self._ready.rotate(-self._order.randrange(len(self._ready)))
        return self._ready.popleft()

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], Any], *args: *Ts) -> asyncio.Future[Any]:
        """Call the function here, as a callback of its own."""
        ended = self.create_future()
        self.call_soon(_call, ended, func, args)
        return ended

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """There are no threads: the same as `call_soon`."""
        return self.call_soon(callback, *args, context=context)

    def close(self) -> None:
        """Forget every callback."""
        self._ready.clear()
        self._scheduled.clear()
        super().close()


def _call(ended: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if ended.done():
        return
    try:
        ended.set_result(func(*args))
    except BaseException as error:  # noqa: BLE001 (raised again where the result is awaited)
        ended.set_exception(error)
