"""Toolkits whose tools strangers declare, by a server or in a document; what a server has is found when a registry is
made."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tools.normalise import catching
from tools.registry import Toolkit

CONTEXT = "the context of the call"
"""Where the run's context goes among the arguments: no argument of a foreign tool has this name, or it is left out."""


class ForeignToolkit(Toolkit):
    """A toolkit of tools that strangers declare: `left_out` says by name why one of them is none of ours."""

    def __init__(self, name: str, *, description: str = "") -> None:
        super().__init__(name, description=description)
        self.left_out: dict[str, str] = {}

    @property
    def notices(self) -> list[str]:
        """What whoever starts a run should know: which tools are left out."""
        return [f"the toolkit {self.name!r} leaves {name} out: {why}" for name, why in self.left_out.items()]

    def why_absent(self, name: str) -> str | None:
        """Why a tool that may have been one of these is not there; None: it is none of these."""
        why = self.left_out.get(name)
        return None if why is None else f"the toolkit {self.name!r} leaves it out: {why}"


class ToolsAbsent(Exception):
    """Why a toolkit has no tools now, as a clause for people that shows no secret: "its server could not be ..."."""


class OutsideToolkit(ForeignToolkit, ABC):
    """A toolkit that finds its tools: a kind of it says how in `find`, and closes what calls have opened in `close`.

    What cannot be found is no fault of the others': `absent` says why there are no tools at all, `remarks` what else
    should be known. `prefix` begins the names of its tools, where they have one.
    """

    def __init__(self, name: str, *, description: str = "", prefix: str = "") -> None:
        super().__init__(name, description=description)
        self.prefix = prefix
        self.absent: str | None = None
        self.remarks: list[str] = []
        self.found = False
        self._holders: Counter[asyncio.AbstractEventLoop] = Counter()

    def prepare(self) -> None:
        """Load what the search and the calls need: called before any search, on no event loop. Raises
        ConfigurationError where it is not installed."""

    @abstractmethod
    async def find(self) -> None:
        """Declare the tools, by `add` or into `tools`. Called on an event loop that ends with the search, at each
        registry until it succeeds; it may be cancelled. Raises ToolsAbsent."""

    @abstractmethod
    async def close(self) -> None:
        """Close what calls have opened on this event loop; a later call opens it anew."""

    async def gather(self) -> None:
        """Find the tools, unless they are found."""
        if self.found:
            return
        try:
            await self.find()
            self.absent, self.found = None, True
        except ToolsAbsent as why:
            self.absent = str(why)

    @property
    def notices(self) -> list[str]:
        """That there are no tools now, or which are left out, and the remarks."""
        if self.absent is not None:
            return [f"the toolkit {self.name!r} has no tools now: {self.absent}"]
        return [*super().notices, *(f"the toolkit {self.name!r}: {remark}" for remark in self.remarks)]

    def why_absent(self, name: str) -> str | None:
        """Why a tool that may have been one of these is not there; None: it is none of these."""
        for each in (name, name.removeprefix(self.prefix)):  # by our name, or by the one that it has elsewhere
            if why := super().why_absent(each):
                return why
        if self.absent is not None and name.startswith(self.prefix):
            return f"the toolkit {self.name!r} has no tools now: {self.absent}"
        return None

    def hold(self) -> None:
        """An engine on this event loop uses the toolkit from now on."""
        self._holders[asyncio.get_running_loop()] += 1

    async def release(self) -> None:
        """An engine uses it no more; what calls have opened is closed with the last one of the event loop."""
        loop = asyncio.get_running_loop()
        self._holders[loop] -= 1
        if not self._holders[loop]:
            del self._holders[loop]
            await self.close()


def outside(toolkits: Iterable[Toolkit]) -> list[OutsideToolkit]:
    """Those of them whose tools are declared elsewhere."""
    return [toolkit for toolkit in toolkits if isinstance(toolkit, OutsideToolkit)]


def gather(toolkits: Sequence[OutsideToolkit]) -> None:
    """Find the tools of all at once, since each may wait for a server; on an event loop in a thread of its own, so that
    it can be called wherever a thread may wait. A Ctrl-C ends the search, and with it what it has started."""
    waiting = [toolkit for toolkit in toolkits if not toolkit.found]
    if not waiting:
        return
    for toolkit in waiting:
        toolkit.prepare()
    search = _Search([toolkit.gather() for toolkit in waiting])
    search.start()
    try:
        search.over.wait()
    except BaseException:
        search.stop()
        search.over.wait()
        raise
    if search.error is not None:
        raise _first(search.error)


def _first(error: BaseException) -> BaseException:
    """What a search raised, of several the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Search(threading.Thread):
    """Runs coroutines on an event loop of its own; `error` is what one of them raised. Wait for `over`: a `join` that a
    Ctrl-C ends takes the thread for dead (seen with Python 3.11)."""

    def __init__(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        super().__init__(name="surestep-gather", daemon=True)
        self._work = work
        self._begun = threading.Event()
        self.over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """The whole search."""
        try:
            with suppress(asyncio.CancelledError), catching() as caught:
                asyncio.run(self._searched())
            self.error = caught.error
        finally:
            self._begun.set()
            self.over.set()

    def stop(self) -> None:
        """Cancel what still searches."""
        self._begun.wait()
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _searched(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        async with asyncio.TaskGroup() as group:
            for each in self._work:
                group.create_task(each)


@asynccontextmanager
async def held(toolkits: Iterable[Toolkit]) -> AsyncIterator[None]:
    """While an engine is open: what the tools of these toolkits open on its event loop is closed at the end."""
    kept = outside(toolkits)
    for toolkit in kept:
        toolkit.hold()
    try:
        yield
    finally:
        async with asyncio.TaskGroup() as group:
            for toolkit in kept:
                group.create_task(toolkit.release())
