"""Checkpoints on their way into the database: one writer per saver, many saves per commit, each judged by its fence."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from checkpoints.background import stop
from checkpoints.explain import unreachable
from checkpoints.queries import QUERIES
from checkpoints.sender import Sender
from plans.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from checkpoints.database import Database

BATCH_SAVES = 128
"""Saves of one commit at most. The writer never waits for company: a batch is what came while the last committed."""

BATCH_BYTES = 4 * 1024 * 1024
"""Values of one commit at most, unless a single save is larger."""

ALL_SAVES = 1_024
"""Saves that may wait; the next one is not even serialised before there is room."""

GIVE_UP_S = 60.0
"""How long saves are sent again to a database that does not answer."""

CLOSE_S = 10.0
"""How long the end of a saver waits for its last saves."""

Verdict = Literal["accepted", "stale", "busy"]


@dataclass(frozen=True, slots=True)
class Put:
    """A checkpoint without the values that lie beside it, as texts of JSON."""

    checkpoint_id: str
    parent_id: str | None
    checkpoint: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Blob:
    """A value of a channel."""

    channel: str
    version: str
    type: str
    blob: bytes | None


@dataclass(frozen=True, slots=True)
class Write:
    """What a task has written to a channel, before the checkpoint that takes it in."""

    checkpoint_id: str
    task_id: str
    task_path: str
    idx: int
    channel: str
    type: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class Save:
    """One put, or one put_writes, of a thread.

    With `run_id` and `fence` it is accepted while that fence is the lease's; without, while no run of the thread has a
    living owner. `onto` is the checkpoint that it follows: with `only_onto_newest` that must be the thread's newest.
    `replaces` is LangGraph's rule for writes to special channels: the later one counts; of others the first one does.
    """

    thread_id: str
    namespace: str
    onto: str | None
    run_id: str | None = None
    fence: int | None = None
    only_onto_newest: bool = False
    put: Put | None = None
    blobs: Sequence[Blob] = ()
    writes: Sequence[Write] = ()
    replaces: bool = False

    def under(self, run_id: str, fence: int) -> Save:
        """The same save, by the owner of this fence."""
        return replace(self, run_id=run_id, fence=fence)

    def onto_newest(self) -> Save:
        """The same save by somebody who has no fence, if it goes on from the newest checkpoint."""
        return replace(self, only_onto_newest=True)

    def onto_any(self) -> Save:
        """The same save, whatever has been saved since the checkpoint that it goes on from."""
        return replace(self, only_onto_newest=False)

    @property
    def key(self) -> tuple[str, ...]:
        """Saves with one key touch the same rows, and cannot share a statement."""
        what = ("put", self.put.checkpoint_id) if self.put else (self.writes[0].checkpoint_id, self.writes[0].task_id)
        return (self.thread_id, self.namespace, *what)

    @property
    def size(self) -> int:
        """Bytes of its values."""
        values = sum(len(blob.blob or b"") for blob in self.blobs) + sum(len(write.blob) for write in self.writes)
        return values + (len(self.put.checkpoint) if self.put else 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a save; `owner` and `owned_run` name who was in the way of a busy one."""

    verdict: Verdict
    owner: str | None = None
    owned_run: str | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    save: Save
    answer: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, answer: Answer | Exception) -> None:
        if self.answer.done():  # whoever asked was cancelled
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class SaveWriter:
    """The one task that writes saves. A batch is one autocommitted statement, sent until the database answers.

    All of it may be sent twice: what is there already is replaced by the same, or left alone.
    """

    def __init__(self, database: Database, *, give_up_s: float = GIVE_UP_S) -> None:
        self.room = asyncio.Semaphore(ALL_SAVES)
        self._database = database
        self._give_up_s = give_up_s
        self._sender = Sender(database)
        self._queue: deque[_Waiting] = deque()
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start writing."""
        self._task = asyncio.create_task(self._write(), name="checkpoint writer")

    async def close(self) -> None:
        """Write what waits, then stop. What a dead database does not take within ten seconds is refused."""
        self._closed = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._empty.wait()
        finally:
            await stop(self._task)

    async def write(self, save: Save) -> Answer:
        """The save's answer, once its batch is committed.

        DatabaseUnavailable when the database did not answer for a minute (it is then unknown whether it is stored);
        psycopg's error where the database refuses the values.
        """
        if self._closed or self._task is None or self._task.done():
            raise RuntimeError("this saver is closed: checkpoints can be saved only within its `async with`")
        waiting = _Waiting(save)
        self._queue.append(waiting)
        self._empty.clear()
        self._filled.set()
        return await waiting.answer

    async def _write(self) -> None:
        try:
            while True:
                await self._filled.wait()
                batch = self._batch()
                try:
                    async with asyncio.timeout(self._give_up_s):
                        answers = await self._answers(batch)
                except TimeoutError as error:
                    await self._sender.close()
                    answers = [unreachable(self._database.url, error)] * len(batch)
                self._settle(answers)
        finally:
            self._closed = True
            refusal = DatabaseUnavailable("the saver was closed before this checkpoint was saved")
            self._settle([refusal] * len(self._queue))
            await self._sender.close()

    def _batch(self) -> list[_Waiting]:
        """The saves that waited longest, up to one that touches the rows of an earlier one."""
        batch: list[_Waiting] = []
        keys: set[tuple[str, ...]] = set()
        size = 0
        for waiting in self._queue:
            key = waiting.save.key
            size += waiting.save.size
            if batch and (len(batch) == BATCH_SAVES or key in keys or size > BATCH_BYTES):
                break
            keys.add(key)
            batch.append(waiting)
        return batch

    async def _answers(self, batch: Sequence[_Waiting]) -> list[Answer | Exception]:
        """An answer for each. Where the database refuses the statement, each is sent alone: one may be to blame."""
        import psycopg

        try:
            rows = await self._sender.send(QUERIES["save_checkpoints"], columns([each.save for each in batch]))
            return [Answer(row["verdict"], row["owner"], row["owned_run"]) for row in rows]
        except (psycopg.Error, UnicodeEncodeError) as error:
            if len(batch) == 1:
                return [error]
            return [answer for each in batch for answer in await self._answers([each])]

    def _settle(self, answers: Sequence[Answer | Exception]) -> None:
        for answer in answers:
            self._queue.popleft().settle(answer)
        if not self._queue:
            self._filled.clear()
            self._empty.set()


_WRITE = ("checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "blob")
_BLOB = ("channel", "version", "type", "blob")
_PUT = ("checkpoint_id", "parent_id", "checkpoint", "metadata")
_SAVE = ("thread_id", "namespace", "onto", "run_id", "fence", "only_onto_newest")


def columns(saves: Sequence[Save]) -> dict[str, Any]:
    """Saves as columns, parameters of the statement `save_checkpoints`; `…_op` counts the save from 1."""
    given: dict[str, Any] = {name: [getattr(save, name) for save in saves] for name in _SAVE}
    numbered = list(enumerate(saves, 1))
    groups: dict[str, tuple[tuple[str, ...], list[tuple[int, Any]]]] = {
        "put": (_PUT, [(op, save.put) for op, save in numbered if save.put]),
        "blob": (_BLOB, [(op, blob) for op, save in numbered for blob in save.blobs]),
        "first": (_WRITE, [(op, write) for op, save in numbered if not save.replaces for write in save.writes]),
        "last": (_WRITE, [(op, write) for op, save in numbered if save.replaces for write in save.writes]),
    }
    for group, (names, rows) in groups.items():
        given[f"{group}_op"] = [op for op, _ in rows]
        given |= {f"{group}_{name}": [getattr(row, name) for _, row in rows] for name in names}
    return given
