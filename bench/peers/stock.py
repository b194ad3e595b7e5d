"""LangGraph's own Postgres saver on a pool, as its documentation has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from bench.peers.peer import POOL_SIZE


@asynccontextmanager
async def stock_saver(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    """A saver whose tables are there."""
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        url, min_size=POOL_SIZE, max_size=POOL_SIZE, kwargs=options, open=False
    )
    async with pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver
