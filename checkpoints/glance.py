"""A look at a database for those who can do without: none is made or migrated for it, and none is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from checkpoints.database import Database
from checkpoints.embedded import EmbeddedServer
from checkpoints.explain import check_url, unreachable
from checkpoints.migrate import lacking
from checkpoints.pools import new_pool
from plans.errors import DatabaseUnavailable

GLANCE_S = 2
"""How long a server may take to be reached, in whole seconds as libpq counts them."""


@asynccontextmanager
async def glance(url: str | None, folder: Path) -> AsyncIterator[Database]:
    """The database at `url`, or (None) the embedded one if it was ever made in `folder`, with one connection.

    Raises DatabaseUnavailable where there is none to look at now, with why; StorageUnavailable, VersionTooNew.
    """
    if url is not None:
        check_url(url)
        async with _seen(url) as database:
            yield database
        return
    if not await asyncio.to_thread((folder / "postgres" / "PG_VERSION").exists):
        raise DatabaseUnavailable(f"no database was made in {folder} yet")
    server = await asyncio.to_thread(EmbeddedServer.open, folder)
    try:
        async with _seen(server.url) as database:
            yield database
    finally:
        await asyncio.to_thread(server.release)


@asynccontextmanager
async def _seen(url: str) -> AsyncIterator[Database]:
    from psycopg_pool import PoolTimeout

    if missing := await lacking(url, connect_timeout=GLANCE_S):
        raise DatabaseUnavailable(f"the database is not set up, or of an older version: it lacks {', '.join(missing)}")
    pool = new_pool(url, name="surestep glance", size=1, prepare_threshold=None)
    try:
        await pool.open(wait=True, timeout=GLANCE_S)
        yield Database(pool, url, None)
    except PoolTimeout as error:
        raise unreachable(url, error) from error
    finally:
        await pool.close()
