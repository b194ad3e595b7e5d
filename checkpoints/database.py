"""The door to PostgreSQL: a pool of connections to a migrated database, the user's or the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoints.explain import NO_TEXT, check_url, is_no_text, unreachable
from checkpoints.migrate import migrate
from checkpoints.pools import new_pool
from checkpoints.tool_failures import connection_lost
from plans.errors import InvalidInput

if TYPE_CHECKING:
    from checkpoints.pools import Pool

    Params = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True)
class Database:
    """A migrated database. Connections of `pool` commit by themselves and give rows as dicts."""

    pool: Pool
    url: str
    prepare_threshold: int | None = 5

    async def fetch(self, sql: str, params: Params = None) -> list[dict[str, Any]]:
        """The rows of one statement. DatabaseUnavailable when the server is gone, InvalidInput for a text that no
        database can hold."""
        return (await self._run(sql, params))[0]

    async def execute(self, sql: str, params: Params = None) -> int:
        """Run one statement; gives the number of rows it touched. Raises as `fetch` does."""
        return (await self._run(sql, params))[1]

    async def together(self, statements: Sequence[tuple[str, Params]]) -> list[list[dict[str, Any]]]:
        """The rows of each of several statements that commit as one, sent at once: no lock waits for this process.

        DatabaseUnavailable when the server is gone; whether they were committed is then not known.
        """
        import psycopg

        try:
            async with self.pool.connection() as connection:
                async with connection.pipeline(), connection.transaction():
                    cursors = [await connection.execute(sql, params) for sql, params in statements]
                return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]
        except psycopg.OperationalError as error:
            if connection_lost(error):
                raise unreachable(self.url, error) from error
            raise

    async def _run(self, sql: str, params: Params) -> tuple[list[dict[str, Any]], int]:
        import psycopg

        try:
            async with self.pool.connection() as connection:
                cursor = await connection.execute(sql, params)
                return (await cursor.fetchall() if cursor.description else []), max(cursor.rowcount, 0)
        except psycopg.OperationalError as error:
            if connection_lost(error):
                raise unreachable(self.url, error) from error
            raise
        except (psycopg.DataError, UnicodeEncodeError) as error:
            if is_no_text(error):
                raise InvalidInput(NO_TEXT) from error
            raise


@asynccontextmanager
async def open_database(
    url: str | None, folder: Path, *, pool_size: int = 10, prepare_threshold: int | None = 5
) -> AsyncIterator[Database]:
    """The database at `url`, or (None) the embedded server with its files in `folder/postgres`; migrated, with a pool.

    At most `pool_size` connections are open at a time. A statement is prepared on the server after `prepare_threshold`
    uses; None never prepares, which a pgbouncer in front of the server may need.

    Raises DatabaseUnavailable, StorageUnavailable (embedded, folder not writable) or VersionTooNew.
    """
    async with _reachable(url, folder) as address:
        await migrate(address)
        pool = new_pool(address, name="surestep", size=pool_size, prepare_threshold=prepare_threshold)
        async with _opened(pool, address):
            yield Database(pool, address, prepare_threshold)


@asynccontextmanager
async def _reachable(url: str | None, folder: Path) -> AsyncIterator[str]:
    if url is not None:
        check_url(url)
        yield url
        return
    from checkpoints.embedded import EmbeddedServer

    server = await asyncio.to_thread(EmbeddedServer.open, folder)
    try:
        yield server.url
    finally:
        await asyncio.to_thread(server.release)


@asynccontextmanager
async def _opened(pool: Pool, url: str) -> AsyncIterator[None]:
    from psycopg_pool import PoolTimeout

    try:
        await pool.open(wait=True)
    except PoolTimeout as error:
        await pool.close()
        raise unreachable(url, error) from error
    try:
        yield
    finally:
        await pool.close()
