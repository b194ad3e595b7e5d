"""The journal of intents and outcomes: one writer, many rows per commit, refused as soon as the lease is another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from checkpoints.background import stop
from checkpoints.backlog import BATCH_ROWS, Backlog, Entry, stale
from checkpoints.bodies import Store, by_reference, is_large, whole
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.explain import unreachable
from checkpoints.queries import QUERIES
from checkpoints.rows import Identity, Row, batch_params, body_text, row_from, row_params
from checkpoints.sender import Sender
from plans.errors import DatabaseUnavailable

if TYPE_CHECKING:
    import psycopg

__all__ = ["Journal", "Row"]

GIVE_UP_S = 60.0
"""How long rows are sent again to a database that does not answer: two lease lengths, after which nobody is owner."""

CLOSE_S = 10.0
"""How long the end of a journal waits for its last rows."""


class Journal:
    """Append-only rows of all runs this process drives. `async with` starts and ends the one writer task.

    A row is *accepted* when it is committed and the database has said so. What the writer keeps (rules 1 to 4 of the
    durability rules):

    - Rule 1: a batch is one autocommitted statement. It locks the lease rows of its runs FOR SHARE in run_id order and
      inserts only rows whose fence is the lease's, if the lease has an owner. Whether the lease has expired is not
      asked: until somebody takes over, which changes the fence before the journal is read, a late row harms nobody.
    - Rule 2: a row is (run, fence, n). After a lost answer the same rows are sent again on a new connection; an
      identical row that exists is accepted, another row with the same identity is an error, and stale comes only from
      the lease.
    - Rule 3: a small artifact is stored by the statement that stores its row. Rows of a run are sent in their order,
      and once one is refused its owner's later rows are refused too, and those that wait are not even sent. Other runs
      in the batch are not touched.
    - Rule 4: the statement that checks the fence also reads the lease's cancel flag.
    - Rule 7: a body of more than 16 KiB is an artifact, durable before its row is queued, and the row names it.
    """

    def __init__(self, database: Database, bodies: Store | None = None, *, give_up_s: float = GIVE_UP_S) -> None:
        """`bodies` keeps those that are too large for a row; without it every body stands in its row."""
        self._database = database
        self._bodies = bodies
        self._give_up_s = give_up_s
        self._backlog = Backlog()
        self._cancelled: set[str] = set()
        self._sender = Sender(database)
        self._writer: asyncio.Task[None] | None = None
        self._closing = False

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self._write(), name="journal writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is queued, then stop. Rows that a dead database does not take within ten seconds are refused."""
        self._closing = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._backlog.drain()
        finally:
            await stop(self._writer)

    async def submit(self, row: Row, *, linger_s: float = 0.0) -> asyncio.Future[None]:
        """Queue a row; the future resolves when it is accepted.

        A row for which nobody waits may linger for so many seconds (10 ms at most), to share a commit with what comes:
        it is sent earlier with a row that does not linger, when 64 rows are there, or when its run is flushed.
        Waits while the run has 64 rows, or all runs together 2,048, that are not accepted yet. The future, or the next
        call, raises StaleOwner when the lease is no longer this owner's, DatabaseUnavailable when the database did not
        answer for a minute (it is then unknown whether the row is stored), RuntimeError when the number `n` was used
        for another row. ValueError, and nothing queued, for a body that cannot be stored. Cancelling the caller or the
        future takes no row back.
        """
        if self._closing or self._writer is None or self._writer.done():
            raise RuntimeError("this journal is closed: rows can be submitted only within its `async with`")
        if self._writer.get_loop() is not asyncio.get_running_loop():
            raise RuntimeError("this journal belongs to another event loop; open one journal per loop")
        text, stored = body_text(row), None
        if self._bodies is not None and is_large(text):
            stored = partial(by_reference, self._bodies, row.run_id, text)
        return await self._backlog.put(row, text, linger_s=linger_s, stored=stored)

    async def append(self, row: Row) -> None:
        """Submit a row and return when it is accepted."""
        await (await self.submit(row))

    async def flush(self, run_id: str) -> None:
        """Returns when every row of the run submitted so far is accepted; raises when one was refused."""
        await self._backlog.flush(run_id)

    async def read(self, run_id: str) -> list[Row]:
        """All rows of a run in the order they were written, by fence, then by number, each with its whole body.

        ArtifactMissing if a body that was too large for its row is gone."""
        found = await self._database.fetch(QUERIES["read_journal"], (run_id,))
        return [await whole(self._bodies, row_from(record)) for record in found]

    async def find(self, run_id: str, fence: int, n: int) -> Row | None:
        """One row, looked for after every transaction that held the lease row has ended (rule 9).

        After a transactional tool's connection was lost this says whether its outcome was committed: one that was told
        to commit holds the lease row since before, so it is waited for, and any other never will be told.
        """
        await self._database.fetch(QUERIES["lock_lease"], (run_id,))
        found = await self._database.fetch(QUERIES["find_row"], (run_id, fence, n))
        return await whole(self._bodies, row_from(found[0])) if found else None

    def statement_for(self, row: Row) -> tuple[str, dict[str, Any]]:
        """The statement that stores this one row and its artifact inside a transaction of somebody else (rule 9).

        It locks the lease row FOR SHARE until that transaction ends, and returns one row if the journal row is stored,
        none when the fence is stale: then the transaction must be rolled back.
        """
        return QUERIES["append_row"], row_params(row, body_text(row))

    def cancel_requested(self, run_id: str) -> bool:
        """Whether the lease asked for a cancel when a row of the run was last written."""
        return run_id in self._cancelled

    def forget(self, run_id: str) -> None:
        """Drop what is remembered of a run: to be called when its session is closed."""
        self._backlog.forget(run_id)
        self._cancelled.discard(run_id)

    async def _write(self) -> None:
        try:
            while True:
                await self._backlog.filled()
                try:
                    async with asyncio.timeout(self._give_up_s):
                        await self._write_batch()
                except TimeoutError as error:
                    await self._sender.close()
                    self._backlog.refuse_all(unreachable(self._database.url, error))
        finally:
            self._backlog.close(DatabaseUnavailable("the journal was closed before this row was accepted"))
            await self._sender.close()

    async def _write_batch(self) -> None:
        batch = self._backlog.head(BATCH_ROWS)
        sent = [entry for entry in batch if entry.tail.failure is None]
        reached("journal.before_batch")
        refusals = await self._refusals(sent) if sent else {}
        reached("journal.batch_committed")
        self._backlog.settle([entry.tail.failure or refusals[entry.row.identity] for entry in batch])

    async def _refusals(self, batch: Sequence[Entry]) -> dict[Identity, Exception | None]:
        """Why each row was refused; None for an accepted one."""
        import psycopg

        try:
            answers = await self._sender.send(QUERIES["append_rows"], batch_params([(e.row, e.body) for e in batch]))
        except psycopg.Error as error:
            return await self._one_run_at_a_time(batch, error)
        self._cancelled.update(answer["run_id"] for answer in answers if answer["cancel_requested"])
        identities = ((answer["run_id"], answer["fence"], answer["n"]) for answer in answers)
        return {
            identity: _refusal(*identity, answer["verdict"])
            for identity, answer in zip(identities, answers, strict=True)
        }

    async def _one_run_at_a_time(
        self, batch: Sequence[Entry], error: psycopg.Error
    ) -> dict[Identity, Exception | None]:
        """A statement that the database refuses: the runs that are not to blame go on without the one that is."""
        runs = {entry.row.run_id for entry in batch}
        if len(runs) == 1:
            reason = error.diag.message_primary or error
            refusal = RuntimeError(f"the database refuses rows of run {runs.pop()}: {reason}")
            return {entry.row.identity: refusal for entry in batch}
        refusals: dict[Identity, Exception | None] = {}
        for run_id in sorted(runs):
            refusals |= await self._refusals([entry for entry in batch if entry.row.run_id == run_id])
        return refusals


def _refusal(run_id: str, fence: int, n: int, verdict: str) -> Exception | None:
    if verdict == "accepted":
        return None
    if verdict == "stale":
        return stale(run_id, fence)
    return RuntimeError(f"row {n} of owner {fence} of run {run_id} exists with other content: each number is used once")
