"""LangGraph's checkpoints in PostgreSQL: its own saver over our pool, our serializer, and the two missing methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from checkpoints.crash_points import reached
from checkpoints.database import open_database
from checkpoints.location import Location
from checkpoints.queries import QUERIES
from checkpoints.serializer import ALLOWED, StateSerializer

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from checkpoints.database import Database


class PostgresSaver(AsyncPostgresSaver):
    """Saves the checkpoints of any number of threads at a time. Its tables are made by `migrate`, not by `setup`.

    Where LangGraph's saver holds one lock of the whole process for every load and save, this takes a connection of the
    pool. Use it from the event loop it was made in, and only through the async methods.
    """

    def __init__(self, database: Database, *, allowed: Collection[tuple[str, str]] = ALLOWED) -> None:
        super().__init__(database.pool, serde=StateSerializer(allowed))
        self._pool = database.pool

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        async with self._pool.connection() as connection, connection.cursor(binary=True) as cursor:
            if pipeline:
                # What is sent in one pipeline of an autocommitting connection commits as one.
                async with connection.pipeline():
                    yield cursor
            else:
                yield cursor

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        reached("checkpoint.before_put")
        stored = await super().aput(config, checkpoint, metadata, new_versions)
        reached("checkpoint.stored")
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written, beside the checkpoint that it started from."""
        reached("checkpoint.before_writes")
        await super().aput_writes(config, writes, task_id, task_path)
        reached("checkpoint.writes_stored")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and pending writes of a thread; what the target already has is kept as it is."""
        async with self._cursor() as cursor:
            await cursor.execute(QUERIES["copy_thread"], {"source": source_thread_id, "target": target_thread_id})

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete what runs have saved, by LangGraph's run ids. Reads every checkpoint: for a cancel, not for a loop."""
        async with self._cursor() as cursor:
            await cursor.execute(
                QUERIES["delete_checkpoints_of_runs"], {"run_ids": [str(run_id) for run_id in run_ids]}
            )


@asynccontextmanager
async def open_saver() -> AsyncIterator[PostgresSaver]:
    """The saver for a LangGraph server (`"checkpointer": {"path": "checkpoints.saver.open_saver"}`).

    It finds its database where the command line does: settings file, then environment, else the embedded server.
    """
    location = await asyncio.to_thread(Location.read)
    async with open_database(location.database_url, location.folder) as database:
        yield PostgresSaver(database)
