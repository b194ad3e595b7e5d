"""The rows that wait for the journal's writer: how many may, and what their submitters and successors are told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from checkpoints.rows import Row
from plans.errors import StaleOwner, SurestepError

Stored = Callable[[], Awaitable[str]]
"""Makes a body durable, and gives what stands for it in its row."""

RUN_ROWS = 64
"""Rows of one run that may be unaccepted; the next one waits. So much of a run can be lost in a crash, no more."""

ALL_ROWS = 2_048
"""Rows of all runs that may be unaccepted: bodies and artifacts are at most 16 KiB each, so some 64 MiB
at the very most, however slow the disk is."""

BATCH_ROWS = 64
"""Rows of one commit. So many are sent at once, however long they might linger."""

LONGEST_LINGER_S = 0.01
"""How long a row for which nobody waits may be held back, that it may share a commit: with the commit itself a run's
unaccepted tail stays below 20 ms where the disk keeps up, and below 64 rows where it does not."""


@dataclass(slots=True, eq=False)
class Tail:
    """The unaccepted rows of one owner of one run, by count; `failure` once one of them was refused."""

    run_id: str
    fence: int
    submitted: int = 0
    settled: int = 0
    failure: Exception | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def pending(self) -> int:
        """How many rows wait."""
        return self.submitted - self.settled

    def check(self) -> None:
        """Raise what made a row of this owner fail."""
        if self.failure is not None:
            raise _again(self.failure)


@dataclass(slots=True, eq=False)
class Entry:
    """A row in the queue, the text of its body, when it must be sent, and the future of whoever submitted it."""

    row: Row
    body: str
    tail: Tail
    due: float
    future: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self) -> None:
        """Tell the outcome: accepted, or what failed. A submitter that no longer listens is left alone."""
        self.tail.settled += 1
        if self.future.done():
            return
        if self.tail.failure is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(_again(self.tail.failure))
            self.future.exception()  # flush tells it too: a future that nobody awaits is no mistake


class Backlog:
    """A queue in the order of submission. Belongs to the event loop it is used in.

    A row that lingers is sent when its time has come, and before that with any row behind it that does not, when a
    commit is full, or when somebody flushes.
    """

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._tails: dict[str, Tail] = {}
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._progress = asyncio.Event()
        self._closed: Exception | None = None

    async def put(
        self, row: Row, body: str, *, linger_s: float = 0.0, stored: Stored | None = None
    ) -> asyncio.Future[None]:
        """Queue a row, as soon as there is room; raises what made an earlier row of the same owner fail.

        Rows of one run enter in the order of the calls, so that what is stored is always a beginning of them. The row
        may be held back for `linger_s`, but never longer than LONGEST_LINGER_S. With `stored` the row enters only when
        that has made the body durable, with what it gives for a body; when it fails, so do the owner's later rows.
        """
        tail = self._tail(row)
        async with tail.turn:
            while tail.pending >= RUN_ROWS or len(self._entries) >= ALL_ROWS:
                await self._progress.wait()
            tail.check()
            if self._closed is not None:
                raise _again(self._closed)
            if stored is not None:
                body = await self._stored(stored, tail)
            due = asyncio.get_running_loop().time() + min(linger_s, LONGEST_LINGER_S)
            entry = Entry(row, body, tail, due if linger_s else 0.0)
            tail.submitted += 1
            self._entries.append(entry)
            self._send_by(entry.due)
        return entry.future

    @staticmethod
    async def _stored(stored: Stored, tail: Tail) -> str:
        try:
            return await stored()
        except SurestepError as error:
            tail.failure = error
            raise

    async def filled(self) -> None:
        """Returns when there is a row that has to be written."""
        await self._due.wait()

    def head(self, most: int) -> list[Entry]:
        """The rows that waited longest, at most so many; they stay in the queue until `settle`."""
        return list(islice(self._entries, most))

    def settle(self, answers: Sequence[Exception | None]) -> None:
        """The first rows have an answer: None for accepted, or why one was refused; its owner's later rows are too."""
        for refusal in answers:
            entry = self._entries.popleft()
            entry.tail.failure = entry.tail.failure or refusal
            self._settle(entry)
        self._due.clear()
        self._stop_timer()
        if self._entries:
            self._send_by(min(entry.due for entry in self._entries))
        self._progress.set()
        self._progress = asyncio.Event()

    def refuse_all(self, refusal: Exception) -> None:
        """Refuse everything in the queue."""
        self.settle([refusal] * len(self._entries))

    def close(self, reason: Exception) -> None:
        """Refuse everything in the queue, and whatever is still waiting for room in it."""
        self._closed = reason
        self.refuse_all(reason)

    async def flush(self, run_id: str) -> None:
        """Returns when all rows submitted so far have an answer; raises when one of the run's rows was refused."""
        if (tail := self._tails.get(run_id)) is None:
            return
        submitted = tail.submitted
        if tail.pending:
            self._hurry(next(entry for entry in reversed(self._entries) if entry.tail is tail))
        while tail.settled < submitted:
            await self._progress.wait()
        tail.check()

    async def drain(self) -> None:
        """Returns when every row has an answer."""
        while self._entries:
            self._hurry(self._entries[-1])
            await self._progress.wait()

    def forget(self, run_id: str) -> None:
        """Drop what is remembered of a run whose session is closed."""
        self._tails.pop(run_id, None)

    def _hurry(self, entry: Entry) -> None:
        """Somebody waits for this row, and with it for all before it."""
        entry.due = 0.0
        self._send_by(entry.due)

    def _send_by(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if len(self._entries) >= BATCH_ROWS or due <= loop.time():
            self._due.set()
        elif self._timer is None or due < self._timer.when():
            self._stop_timer()
            self._timer = loop.call_at(due, self._due.set)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tail(self, row: Row) -> Tail:
        tail = self._tails.get(row.run_id)
        if tail is None or tail.fence < row.fence:
            tail = self._tails[row.run_id] = Tail(row.run_id, row.fence)
        if row.fence < tail.fence:
            raise stale(row.run_id, row.fence)
        tail.check()
        return tail

    def _settle(self, entry: Entry) -> None:
        entry.settle()
        tail = entry.tail
        idle = not tail.pending and not tail.turn.locked() and tail.failure is None
        if idle and self._tails.get(tail.run_id) is tail:
            del self._tails[tail.run_id]


def stale(run_id: str, fence: int) -> StaleOwner:
    """What an owner is told whose fence is not the lease's."""
    return StaleOwner(
        f"this worker no longer drives run {run_id}: it was owner number {fence}, and since then another one has taken "
        "over or the run was released; it writes and starts nothing more. `surestep runs` shows how the run goes on"
    )


def _again(failure: Exception) -> Exception:
    return type(failure)(*failure.args)
