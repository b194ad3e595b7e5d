"""LangGraph's checkpoints in PostgreSQL: its own saver, with fences, shared commits, and the two missing methods."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.base import WRITES_IDX_MAP, get_serializable_checkpoint_metadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from checkpoints.backlog import stale
from checkpoints.crash_points import reached
from checkpoints.database import open_database
from checkpoints.fences import Fence, Fences, fences_of
from checkpoints.hiding import Hiding
from checkpoints.location import Location
from checkpoints.queries import QUERIES
from checkpoints.saves import Answer, Blob, Put, Save, SaveWriter, Write
from checkpoints.sealing import SealingKey
from checkpoints.serializer import StateSerializer
from plans.errors import RunBusy, StaleOwner

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from checkpoints.database import Database


class PostgresSaver(AsyncPostgresSaver):
    """Saves the checkpoints of any number of threads at a time. Its tables are made by `migrate`, not by `setup`.

    A save returns when it is committed; saves of all threads share their commits (`checkpoints/saves.py`), loads take a
    connection of the pool. Every save carries the fence under which this process drives the thread, and is refused by
    the statement that would store it when somebody else drives the thread since: StaleOwner, or RunBusy for a thread
    that this process never drove. Credentials in what clients have sent are saved as placeholders. `async with` starts
    and ends the writer; use it from that event loop only.
    """

    def __init__(
        self,
        database: Database,
        *,
        fences: Fences | None = None,
        hiding: Hiding | None = None,
    ) -> None:
        super().__init__(database.pool, serde=StateSerializer())
        self._database = database
        self._fences = fences if fences is not None else fences_of(database.url)
        self._hide = hiding if hiding is not None else Hiding(os.urandom(32))
        self._writer = SaveWriter(database)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:  # noqa: ARG002  # see below
        """Itself: what comes out of a checkpoint is named in `checkpoints/serializer.py`, and no graph adds to it."""
        return self

    async def __aenter__(self) -> Self:
        self._writer.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Save what waits, then stop."""
        await self._writer.close()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        async with self._database.pool.connection() as connection, connection.cursor(binary=True) as cursor:
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
        """Save a checkpoint with its values, whole or not at all. StaleOwner or RunBusy if it is not ours to save."""
        reached("checkpoint.before_put")
        place = config["configurable"]
        thread_id, namespace, parent = place["thread_id"], place["checkpoint_ns"], place.get("checkpoint_id")
        async with self._writer.room:
            values = checkpoint["channel_values"]
            inline, beside = _parted({channel: self._hide(channel, value) for channel, value in values.items()})
            kept = get_serializable_checkpoint_metadata(config, metadata)
            text = json.dumps({**checkpoint, "channel_values": inline})
            put = Put(checkpoint["id"], parent, text, json.dumps(kept))
            blobs = [
                Blob(channel, str(version), *self.serde.dumps_typed(beside[channel]))
                for channel, version in new_versions.items()
                if channel in beside
            ]
            await self._save(Save(thread_id, namespace, parent, put=put, blobs=blobs))
        reached("checkpoint.stored")
        saved = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint["id"]}
        return {"configurable": saved}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task has written. StaleOwner or RunBusy if it is not ours to save."""
        if not writes:
            return
        reached("checkpoint.before_writes")
        place = config["configurable"]
        checkpoint_id = place["checkpoint_id"]
        async with self._writer.room:
            replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
            rows: dict[int, Write] = {}
            for position, (channel, value) in enumerate(writes):
                idx = WRITES_IDX_MAP.get(channel, position)
                if replaces or idx not in rows:
                    dumped = self.serde.dumps_typed(self._hide(channel, value))
                    rows[idx] = Write(checkpoint_id, task_id, task_path, idx, channel, *dumped)
            given = list(rows.values())
            namespace = place["checkpoint_ns"]
            await self._save(Save(place["thread_id"], namespace, checkpoint_id, writes=given, replaces=replaces))
        reached("checkpoint.writes_stored")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and pending writes of a thread; what the target already has is kept as it is.

        RunBusy while somebody else drives the target.
        """
        await self._alone("copy_thread", [target_thread_id], {"source": source_thread_id, "target": target_thread_id})

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all that was saved of a thread. RunBusy while somebody else drives a run of it."""
        await self._alone("delete_threads", [str(thread_id)])

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete what runs have saved, by LangGraph's run ids. RunBusy while somebody else drives one of their threads.

        Reads every checkpoint: for a cancel, not for a loop.
        """
        runs = {"run_ids": [str(run_id) for run_id in run_ids]}
        found = await self._database.fetch(QUERIES["threads_of_runs"], runs)
        await self._alone("delete_checkpoints_of_runs", [row["thread_id"] for row in found], runs)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete old checkpoints, or with "delete" all. RunBusy while somebody else drives a run of these threads.

        What is saved while the old ones go is neither seen nor deleted.
        """
        names = [str(thread_id) for thread_id in thread_ids] if not isinstance(thread_ids, str) else []
        if strategy == "delete" and names:
            await self._alone("delete_threads", names)
            return
        await self._alone("driven_by_others", names)
        await super().aprune(thread_ids, strategy=strategy)

    async def _save(self, save: Save) -> None:
        fence = self._fences.of(save.thread_id)
        fenced = save.under(fence.run_id, fence.fence) if fence else save
        answer = await self._writer.write(fenced)
        if answer.verdict == "stale" and fence and not fence.live:
            # The last drive here is over: this is its belated end, or the beginning of one that no node has entered.
            save = save.onto_newest()
            answer = await self._writer.write(save)
        if answer.verdict != "accepted" and (fenced_now := await self._entered(save, fence, answer)):
            fenced, answer = fenced_now, await self._writer.write(fenced_now)
        _raise_refusal(fenced, answer)

    async def _entered(self, save: Save, fence: Fence | None, answer: Answer) -> Save | None:
        """The save of a drive that a node of ours has entered while its beginning was on the way to the database; it
        may have gone on since, and be over. Writes hang on the checkpoint that they name, so they may come late."""
        if answer.owned_run is not None:
            await self._fences.taken(answer.owned_run)
        now = self._fences.of(save.thread_id)
        if now is None or now == fence:
            return None
        if save.put is None:
            return save.onto_any().under(now.run_id, now.fence)
        return save.under(now.run_id, now.fence) if now.live and now.run_id == answer.owned_run else None

    async def _alone(self, query: str, thread_ids: Sequence[str], params: Mapping[str, Any] | None = None) -> None:
        """Run a statement on threads while nobody saves to them; RunBusy, and nothing done, if others drive them."""
        own = [fence for name in thread_ids if (fence := self._fences.of(name))]
        given = {
            **(params or {}),
            "thread_ids": list(thread_ids),
            "own_runs": [fence.run_id for fence in own],
            "own_fences": [fence.fence for fence in own],
        }
        async with self._cursor(pipeline=True) as cursor:
            await cursor.execute(QUERIES["lock_threads"], given)
            # A statement of its own: it sees what those have saved for whom the lock has waited.
            await cursor.execute(QUERIES[query], given)
            busy = await cursor.fetchone()
        if busy is not None:
            raise _busy(busy["thread_id"], busy["run_id"], busy["owner"])


def _parted(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of the channels' values LangGraph keeps in the checkpoint's JSON, and what beside it."""
    inline: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for channel, value in values.items():
        if value is None or isinstance(value, str | int | float | bool):
            inline[channel] = value
        else:
            beside[channel] = value
            if isinstance(value, _DeltaSnapshot):
                inline[channel] = True
    return inline, beside


def _raise_refusal(save: Save, answer: Answer) -> None:
    if answer.verdict == "busy":
        raise _busy(save.thread_id, str(answer.owned_run), str(answer.owner))
    if answer.verdict == "stale":
        if save.run_id is not None and save.fence is not None:
            raise stale(save.run_id, save.fence)
        raise StaleOwner(f"the thread {save.thread_id} has gone on elsewhere; this checkpoint of it comes too late")


def _busy(thread_id: str, run_id: str, owner: str) -> RunBusy:
    return RunBusy(
        f"run {run_id} on thread {thread_id!r} is being driven by {owner}: what is saved of the thread is left as it "
        "is; try again when that run has ended"
    )


@asynccontextmanager
async def open_saver() -> AsyncIterator[PostgresSaver]:
    """The saver for a LangGraph server (`"checkpointer": {"path": "checkpoints.saver.open_saver"}`).

    It finds its database where the command line does: settings file, then environment, else the embedded server.
    """
    location = await asyncio.to_thread(Location.read)
    key = await asyncio.to_thread(SealingKey.of, location.folder, location.sealing_key)
    async with (
        open_database(location.database_url, location.folder) as database,
        PostgresSaver(database, hiding=Hiding(key.hashing)) as saver,
    ):
        yield saver
