"""LangGraph's checkpoints in memory: fenced as ours are, slow as a database is, and behind after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from checkpoints.serializer import StateSerializer
from plans.errors import StaleOwner
from tests.simulation.doors import Wire


class MemorySaver(InMemorySaver):
    """The saver of one process. `tables` (another saver) is what all processes share."""

    def __init__(self, wire: Wire, tables: InMemorySaver) -> None:
        super().__init__(serde=StateSerializer())
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
        """A process that was replaced saves nothing: it never held a fence above its own."""
        server = self._wire.server
        for run in server.runs.values():
            if run["thread_id"] == config["configurable"]["thread_id"]:
                fence = self._wire.fences.get(run["run_id"], 0)
                if server.leases[run["run_id"]].fence > fence:
                    raise StaleOwner(f"a checkpoint of run {run['run_id']} by owner {fence} comes too late")


def lose(tables: InMemorySaver, thread_id: str, count: int) -> None:
    """Forget the newest checkpoints of a thread and what belongs to them, as if they had not been written in time."""
    for namespace, kept in tables.storage[thread_id].items():
        for checkpoint_id in sorted(kept)[len(kept) - min(count, len(kept)) :]:
            del kept[checkpoint_id]
            tables.writes.pop((thread_id, namespace, checkpoint_id), None)
