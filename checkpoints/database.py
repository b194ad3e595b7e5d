"""The door to PostgreSQL: a pool of connections to a migrated database, the user's or the embedded one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoints.explain import check_url, unreachable
from checkpoints.migrate import migrate

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow
    from psycopg_pool import AsyncConnectionPool

    Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
    Params = Sequence[Any] | Mapping[str, Any] | None

CONNECT_SECONDS = 10
"""How long one connection may take to be made, unless the URL says `connect_timeout`."""

_MAX_LIFETIME_S = 30 * 60.0
_MAX_IDLE_S = 5 * 60.0

# The pool tries again by itself and says so each time; without logging set up Python prints that to the terminal.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Database:
    """A migrated database. Connections of `pool` commit by themselves and give rows as dicts."""

    pool: Pool
    url: str
    prepare_threshold: int | None = 5

    async def fetch(self, sql: str, params: Params = None) -> list[dict[str, Any]]:
        """The rows of one statement. DatabaseUnavailable when the server is gone."""
        return (await self._run(sql, params))[0]

    async def execute(self, sql: str, params: Params = None) -> int:
        """Run one statement; gives the number of rows it touched. DatabaseUnavailable when the server is gone."""
        return (await self._run(sql, params))[1]

    async def _run(self, sql: str, params: Params) -> tuple[list[dict[str, Any]], int]:
        import psycopg
        import psycopg_pool

        try:
            async with self.pool.connection() as connection:
                cursor = await connection.execute(sql, params)
                return (await cursor.fetchall() if cursor.description else []), max(cursor.rowcount, 0)
        except psycopg_pool.PoolTimeout as error:
            raise unreachable(self.url, error) from error
        except psycopg.OperationalError as error:
            if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
                raise unreachable(self.url, error) from error
            raise


@asynccontextmanager
async def open_database(
    url: str | None, folder: Path, *, pool_size: int = 10, prepare_threshold: int | None = 5
) -> AsyncIterator[Database]:
    """The database at `url`, or (None) the embedded server with its files in `folder/postgres`; migrated, with a pool.

    At most `pool_size` connections are open at a time, one at rest. A connection is checked before it is lent, replaced
    after 30 minutes, and closed after 5 minutes without use. A statement is prepared on the server after
    `prepare_threshold` uses; None never prepares, which a pgbouncer in front of the server may need.

    Raises DatabaseUnavailable, StorageUnavailable (embedded, folder not writable) or VersionTooNew.
    """
    async with _reachable(url, folder) as address:
        await migrate(address)
        async with _open_pool(address, pool_size, prepare_threshold) as pool:
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
async def _open_pool(url: str, size: int, prepare_threshold: int | None) -> AsyncIterator[Pool]:
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool, PoolTimeout

    pool: Pool = AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        open=False,
        check=AsyncConnectionPool.check_connection,
        max_lifetime=_MAX_LIFETIME_S,
        max_idle=_MAX_IDLE_S,
        kwargs=connection_options(url, prepare_threshold) | {"row_factory": dict_row},
        name="surestep",
    )
    try:
        await pool.open(wait=True)
    except PoolTimeout as error:
        await pool.close()
        raise unreachable(url, error) from error
    try:
        yield pool
    finally:
        await pool.close()


def connection_options(url: str, prepare_threshold: int | None) -> dict[str, Any]:
    """How every connection of ours is made: what the URL does not say itself."""
    from psycopg.conninfo import conninfo_to_dict

    usual = {"connect_timeout": CONNECT_SECONDS, "application_name": "surestep"}
    said = conninfo_to_dict(url)
    return {name: value for name, value in usual.items() if name not in said} | {
        "autocommit": True,
        "prepare_threshold": prepare_threshold,
    }
