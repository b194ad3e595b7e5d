"""The connections that tools are handed: read-only, committing by itself, or a guarded transaction of ours.

Every statement goes in a pipeline, which always speaks PostgreSQL's extended protocol: there the server itself refuses
a second statement behind a semicolon, with or without parameters.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

from checkpoints.crash_points import reached
from checkpoints.pools import new_pool
from checkpoints.statements import refuse_control, require_rows
from checkpoints.tool_failures import as_tool_failure

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow

    from checkpoints.database import Database
    from checkpoints.pools import Pool

Params = Sequence[Any] | Mapping[str, Any]
Rows = list[dict[str, Any]]

IDLE_SECONDS = 20.0
"""How long a guarded transaction may wait for its tool between statements; less than a lease, so that no worker that
was replaced still holds one."""

EXTERNAL_CONNECTIONS = 8
"""The most connections to one external system."""


class LazyConnection:
    """SQL for a tool, a connection of the pool being taken for each statement and given back after it.

    In the mode "read_only" each statement is a read-only transaction, which the server enforces. In the mode
    "autocommit" each commits by itself; when the connection is lost in the middle the outcome is unknown, and the
    failure says so (UNKNOWN_OUTCOME).
    """

    def __init__(self, pool: Pool, mode: Literal["read_only", "autocommit"]) -> None:
        self._pool = pool
        self._mode = mode

    async def fetch(self, sql: str, params: Params = ()) -> Rows:
        """The rows of one statement."""
        return (await self._run(sql, params))[0]

    async def execute(self, sql: str, params: Params = ()) -> int:
        """Run one statement; gives the number of rows it touched."""
        return (await self._run(sql, params))[1]

    async def _run(self, sql: str, params: Params) -> tuple[Rows, int]:
        read_only = self._mode == "read_only"
        (require_rows if read_only else refuse_control)(sql)
        async with _lent(self._pool) as connection:
            with as_tool_failure(may_have_happened=not read_only):
                if not read_only:
                    return await _one(connection, sql, params)
                try:
                    return await _one(connection, sql, params, before="BEGIN READ ONLY", after="COMMIT")
                except BaseException:
                    await _roll_back(connection)
                    raise


class GuardedTransaction:
    """The transaction in which a tool's writes and the record of its outcome commit together, or not at all.

    The tool uses `fetch` and `execute`. Who called the tool ends it with `commit_with` or `abort`; leaving the `async
    with` block aborts what was not committed. A connection is taken on first use and held until then. After a
    statement that failed, the transaction takes no other: the tool's attempt has failed.
    """

    def __init__(self, pool: Pool, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._pool = pool
        self._idle_ms = int(idle_seconds * 1000)
        self._turn = asyncio.Lock()
        self._held = AsyncExitStack()
        self._connection: AsyncConnection[DictRow] | None = None
        self._over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.abort()

    async def fetch(self, sql: str, params: Params = ()) -> Rows:
        """The rows of one statement."""
        return (await self._run(sql, params))[0]

    async def execute(self, sql: str, params: Params = ()) -> int:
        """Run one statement; gives the number of rows it touched."""
        return (await self._run(sql, params))[1]

    async def commit_with(self, sql: str, params: Params = ()) -> Rows:
        """Run one last statement of ours, which records the outcome, and commit; gives its rows.

        When it gives no row (the fence has moved on), nothing is committed, the tool's writes included. When the
        connection is lost the failure is UNKNOWN_OUTCOME: whether it was committed must then be looked up.
        """
        async with self._turn:
            try:
                connection = await self._begun()
                with as_tool_failure(may_have_happened=True):
                    rows, _ = await _one(connection, sql, params)
                    await _start_idle_clock(connection)  # from here on the lease's row is locked
                    reached("transaction.before_commit")
                    await connection.execute("COMMIT" if rows else "ROLLBACK")
                    reached("transaction.committed")
            finally:
                await self._end()
        return rows

    async def abort(self) -> None:
        """Undo everything, unless it was committed; harmless when repeated."""
        async with self._turn:
            await self._end()

    async def _run(self, sql: str, params: Params) -> tuple[Rows, int]:
        require_rows(sql)
        async with self._turn:
            with as_tool_failure(may_have_happened=False):
                connection = await self._begun()
                answer = await _one(connection, sql, params)
                await _start_idle_clock(connection)
                return answer

    async def _begun(self) -> AsyncConnection[DictRow]:
        if self._over:
            raise RuntimeError("this transaction has ended; a tool must not use its connection after it has returned")
        if self._connection is None:
            connection = await self._held.enter_async_context(_lent(self._pool))
            await connection.execute(f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {self._idle_ms}")
            self._connection = connection
        return self._connection

    async def _end(self) -> None:
        self._over = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await _roll_back(connection)
        await self._held.aclose()


class Connections:
    """What the tools of one process reach: Surestep's own database, and by name those of other systems.

    `external_urls` has a URL per name; a name that is not in it means Surestep's own database. `idle_seconds` is for
    guarded transactions: it must be less than a lease.
    """

    def __init__(
        self,
        database: Database,
        external_urls: Mapping[str, str] | None = None,
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._database = database
        self._idle_seconds = idle_seconds
        self._urls = dict(external_urls or {})
        self._pools: dict[str, Pool] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        for pool in self._pools.values():
            await pool.close()

    def read_only(self) -> LazyConnection:
        """For a tool that reads."""
        return LazyConnection(self._database.pool, "read_only")

    def transaction(self, *, idle_seconds: float | None = None) -> GuardedTransaction:
        """For a transactional tool."""
        return GuardedTransaction(self._database.pool, idle_seconds=idle_seconds or self._idle_seconds)

    def external(self, name: str) -> LazyConnection:
        """For an idempotent or irreversible tool: the system of record `name`. Nothing is opened until it is used."""
        return LazyConnection(self._pool(name), "autocommit")

    def _pool(self, name: str) -> Pool:
        if name not in self._urls:
            return self._database.pool
        if name not in self._pools:
            self._pools[name] = new_pool(
                self._urls[name],
                name=f"external {name}",
                size=EXTERNAL_CONNECTIONS,
                at_rest=0,
                prepare_threshold=self._database.prepare_threshold,
            )
        return self._pools[name]


@asynccontextmanager
async def _lent(pool: Pool) -> AsyncIterator[AsyncConnection[DictRow]]:
    async with AsyncExitStack() as stack:
        with as_tool_failure(may_have_happened=False):
            if pool.closed:
                await pool.open()
            connection = await stack.enter_async_context(pool.connection())
        yield connection


async def _one(
    connection: AsyncConnection[DictRow], sql: str, params: Params, before: str | None = None, after: str | None = None
) -> tuple[Rows, int]:
    """One statement with what frames it, in one round trip."""
    cursor = connection.cursor()
    async with connection.pipeline():
        if before:
            await connection.execute(before)
        await cursor.execute(sql, params or None)
        if after:
            await connection.execute(after)
    return (await cursor.fetchall() if cursor.description else []), max(cursor.rowcount, 0)


async def _start_idle_clock(connection: AsyncConnection[DictRow]) -> None:
    """libpq ends a pipeline with a Flush, which stops the server's clock for idle transactions; an empty statement
    starts it again."""
    await connection.execute("")


async def _roll_back(connection: AsyncConnection[DictRow]) -> None:
    from psycopg import OperationalError
    from psycopg.pq import TransactionStatus

    if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
        try:
            await connection.execute("ROLLBACK")
        except OperationalError:
            await connection.close()
