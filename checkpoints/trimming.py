"""Deletes checkpoints that nobody will go on from: all but the latest of a thread whose runs are over, and all of one
whose runs are all archived or erased."""

from __future__ import annotations

from collections.abc import Mapping

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.queries import QUERIES
from plans.errors import RunBusy

HOT_S = 3600.0
"""How long after its last run a thread keeps the history of its checkpoints."""


async def trim(database: Database, older_than_s: float, thread_id: str | None = None, tenant: str | None = None) -> int:
    """Trim the threads of a tenant or of all (or the one named) whose runs are over since an hour, or since the age
    given if that is less; gives how many.

    A thread that a new run is changing meanwhile is left for the next time. One without runs lost its checkpoints with
    its last run, and is looked at again, because a process may have saved one behind it.
    """
    wanted = {"thread_id": thread_id, "tenant": tenant}
    forgotten = await _forget(database, older_than_s, wanted)
    return forgotten + await _keep_latest(database, min(HOT_S, older_than_s), wanted)


async def _forget(database: Database, older_than_s: float, wanted: Mapping[str, str | None]) -> int:
    found = await database.fetch(QUERIES["forsaken_threads"], {"older_than_s": older_than_s, **wanted})
    for row in found:
        thread = {"thread_id": row["thread_id"], "older_than_s": older_than_s}
        await database.together(
            [(QUERIES["lock_for_burial"], {**thread, "requests": []}), (QUERIES["forget_checkpoints"], thread)]
        )
    return len(found)


async def _keep_latest(database: Database, older_than_s: float, wanted: Mapping[str, str | None]) -> int:
    from psycopg.errors import DeadlockDetected, SerializationFailure

    found = await database.fetch(QUERIES["threads_to_trim"], {"older_than_s": older_than_s, **wanted})
    if not found:
        return 0
    from checkpoints.saver import PostgresSaver

    saver, trimmed = PostgresSaver(database), 0
    for row in found:
        try:
            await saver.aprune([row["thread_id"]], strategy="keep_latest")
        except (SerializationFailure, DeadlockDetected, RunBusy):
            continue
        reached("archive.thread_trimmed")
        trimmed += 1
    return trimmed
