"""Under which fence this process drives each thread: what a checkpoint of that thread has to carry (rule 5)."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plans.counting import counted

MOST = 10_000
"""Threads that are remembered after their run was let go; a drive writes its last checkpoint a moment after that."""
LOOK_S = 0.01
"""How often is looked whether a run has been taken; that lasts some milliseconds."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The last drive of a thread in this process. `live` until its session lets the run go, or the gateway, where it is
    held there."""

    run_id: str
    fence: int
    live: bool = True


class Fences:
    """The drives of one process in one database, by thread. Never filled from what a client says.

    A server opens the saver and the engine apart from each other, so they meet here: a session enters its fence when
    it has the lease, the saver looks it up at every save. An entry outlives its session until the next session of the
    thread: LangGraph saves the last checkpoint of a drive after the last node has let the run go.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._live: dict[str, Fence] = {}
        self._kept: OrderedDict[str, Fence] = OrderedDict()
        self._taking: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._ended: dict[str, Fence] = {}

    @contextmanager
    def held(self, thread_id: str) -> Iterator[None]:
        """While the block lasts, the gateway drives the thread: what it saves is judged by the fence it began under, to
        the last checkpoint. A session that has lost its run meanwhile would let it go on like a newcomer."""
        try:
            with counted(self._held, thread_id):
                yield
        finally:
            if thread_id not in self._held and (ended := self._ended.pop(thread_id, None)) is not None:
                self.let_go(thread_id, ended.run_id, ended.fence)

    @contextmanager
    def taking(self, run_id: str) -> Iterator[None]:
        """While the block lasts, a session of this process takes the run: its lease may be ours, its fence is not here
        yet."""
        with counted(self._taking, run_id):
            yield

    async def taken(self, run_id: str) -> None:
        """Returns when no session of this process is taking the run."""
        while run_id in self._taking:  # noqa: ASYNC110 (sessions of other event loops take runs, too)
            await asyncio.sleep(LOOK_S)

    def enter(self, thread_id: str, run_id: str, fence: int) -> None:
        """A session of this process owns the thread's run, under this fence."""
        self._kept.pop(thread_id, None)
        self._live[thread_id] = Fence(run_id, fence)

    def let_go(self, thread_id: str, run_id: str, fence: int) -> None:
        """That session is over; does nothing when another one has entered since."""
        if thread_id in self._held:
            self._ended[thread_id] = Fence(run_id, fence)
        elif self._live.get(thread_id) == Fence(run_id, fence):
            del self._live[thread_id]
            self._kept[thread_id] = Fence(run_id, fence, live=False)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def of(self, thread_id: str) -> Fence | None:
        """The last drive of the thread here; None if there was none, or so many others since that it is forgotten."""
        if thread_id in self._kept:
            self._kept.move_to_end(thread_id)
        return self._live.get(thread_id) or self._kept.get(thread_id)


_of_database: dict[str, Fences] = {}


def fences_of(database_url: str) -> Fences:
    """Those of this process in the database of this URL."""
    return _of_database.setdefault(database_url, Fences())
