"""LangGraph's checkpoints in memory: fenced as ours are, slow as a database is, and behind after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver

from checkpoints.fences import Fences
from checkpoints.serializer import StateSerializer
from plans.errors import RunBusy, StaleOwner
from tests.simulation.doors import Wire
from tests.simulation.server import past


class MemorySaver(InMemorySaver):
    """The saver of one process. `tables` (another saver) is what all processes share."""

    def __init__(self, wire: Wire, tables: InMemorySaver, fences: Fences) -> None:
        super().__init__(serde=StateSerializer())
        self._fences = fences
        self.storage, self.writes, self.blobs = tables.storage, tables.writes, tables.blobs
        self._wire = wire

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint, or the one that is named."""
        await self._wire.travel()
        found = self.get_tuple(config)
        await self._wire.travel()
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, if the process still drives the thread's run."""
        await self._wire.travel()
        self._check_fence(config)
        stored = self.put(config, checkpoint, metadata, new_versions)
        await self._wire.travel()
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written, if the process still drives the thread's run."""
        await self._wire.travel()
        self._check_fence(config)
        self.put_writes(config, writes, task_id, task_path)

    def _check_fence(self, config: RunnableConfig) -> None:
        """As the saver's statement judges: by the fence of this process's drive; without one, or when that drive is
        over, only onto the newest checkpoint of a thread that nobody drives."""
        thread_id = config["configurable"]["thread_id"]
        fence, server = self._fences.of(thread_id), self._wire.server
        if fence is not None and server.leases[fence.run_id].fence == fence.fence:
            return
        if fence is not None and fence.live:
            raise StaleOwner(f"a checkpoint of run {fence.run_id} by owner {fence.fence} comes too late")
        for run in server.runs.values():
            lease = server.leases[run["run_id"]]
            if run["thread_id"] == thread_id and lease.owner is not None and not past(lease.expires_at, server):
                raise RunBusy(f"the thread {thread_id} is driven by {lease.owner}")
        newest = max(self.storage[thread_id][""], default=None)
        if fence is not None and config["configurable"].get("checkpoint_id") != newest:
            raise StaleOwner(f"the thread {thread_id} has gone on elsewhere; this checkpoint of it comes too late")


class SaverOfThisLoop(BaseCheckpointSaver[str]):
    """The saver of whichever process runs now: a graph is compiled once, and many processes run it."""

    def __init__(self) -> None:
        super().__init__(serde=StateSerializer())
        self.of_loop: dict[asyncio.AbstractEventLoop, MemorySaver] = {}

    @property
    def _here(self) -> MemorySaver:
        return self.of_loop[asyncio.get_running_loop()]

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after this one."""
        return _VERSIONS.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the process's own saver."""
        return await self._here.aget_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As the process's own saver."""
        return await self._here.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As the process's own saver."""
        await self._here.aput_writes(config, writes, task_id, task_path)


_VERSIONS = InMemorySaver()


def lose(tables: InMemorySaver, thread_id: str, count: int) -> None:
    """Forget the newest checkpoints of a thread and what belongs to them, as if they had not been written in time."""
    for namespace, kept in tables.storage[thread_id].items():
        for checkpoint_id in sorted(kept)[len(kept) - min(count, len(kept)) :]:
            del kept[checkpoint_id]
            tables.writes.pop((thread_id, namespace, checkpoint_id), None)
