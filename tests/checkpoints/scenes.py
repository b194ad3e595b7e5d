"""What the tests of journal, leases and runs start from: a run, its owner, a row, a lock held by somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg

from checkpoints.artifacts import Artifact
from checkpoints.database import Database
from checkpoints.rows import Row
from checkpoints.runs import RunRecord, Runs
from plans.values import JSON

T = TypeVar("T")

WAIT_S = 10.0
"""How long a test waits for what must happen."""


async def add_run(database: Database, run_id: str = "r1") -> RunRecord:
    """A run that nobody drives."""
    record = RunRecord(run_id=run_id, thread_id=f"thread of {run_id}", request_id=f"request of {run_id}", goal="a goal")
    return await Runs(database).create(record)


async def owned_run(database: Database, run_id: str = "r1", *, fence: int = 1) -> None:
    """A run driven by somebody whose fence is `fence`."""
    await add_run(database, run_id)
    await set_fence(database, run_id, fence)


async def set_fence(database: Database, run_id: str, fence: int) -> None:
    """What a takeover does to the lease row."""
    await database.execute(
        "UPDATE surestep.leases SET fence = %s, owner = 'somebody', expires_at = clock_timestamp() + '1 hour'::interval"
        " WHERE run_id = %s",
        (fence, run_id),
    )


def a_row(
    n: int,
    run_id: str = "r1",
    *,
    fence: int = 1,
    attempt: int = 1,
    body: dict[str, JSON] | None = None,
    content: bytes | None = None,
) -> Row:
    """An outcome row; with `content` it brings a small artifact."""
    artifact = None if content is None else (Artifact.of(content, "application/json"), content)
    return Row(run_id, fence, n, "outcome", f"s{n}", attempt, {"n": n} if body is None else body, artifact)


@asynccontextmanager
async def locked(database: Database, *run_ids: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Somebody holds the lease rows; everything that needs them waits until the block ends."""
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        await connection.execute(
            "SELECT FROM surestep.leases WHERE run_id = ANY (%s) ORDER BY run_id FOR UPDATE", (list(run_ids),)
        )
        yield connection


async def backends_waiting_for_a_lock(database: Database) -> list[int]:
    """The server's processes that wait for a row somebody holds, in this database."""
    waiting = await database.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return [row["pid"] for row in waiting]


async def until(condition: Callable[[], Awaitable[T]]) -> T:
    """What the condition gives once that is something; TimeoutError if it does not come to that."""
    async with asyncio.timeout(WAIT_S):
        while not (found := await condition()):  # noqa: ASYNC110 (what is waited for happens in the server)
            await asyncio.sleep(0.005)
    return found


async def blocked(database: Database) -> int:
    """The process that waits for a lock, once there is one."""
    return (await until(lambda: backends_waiting_for_a_lock(database)))[0]
