"""A worker for the test of shared slots: calls a limited tool, and notes in the database when each call worked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from checkpoints.database import Database, open_database
from checkpoints.tool_slots import PostgresSlots
from checkpoints.workers import name_of_worker, present
from tests.tools.calls import code_of, context, ports, tool_of
from tools.call import call
from tools.ports import Ports

BOOK = "CREATE TABLE IF NOT EXISTS worked (id bigserial, worker text, began timestamptz, ended timestamptz)"
BEGIN = "INSERT INTO worked (worker, began) VALUES (%s, clock_timestamp()) RETURNING id"
END = "UPDATE worked SET ended = clock_timestamp() WHERE id = %s"


@asynccontextmanager
async def slots_of(database: Database) -> AsyncIterator[Ports]:
    """What the calls of one worker need."""
    with present(name_of_worker()) as worker:
        async with PostgresSlots(database, worker) as slots:
            yield replace(ports(), slots=slots)


def say(word: str) -> None:
    """Tell the parent."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def work(url: str, name: str, calls: int, seconds: float, most: int) -> None:
    """Make so many calls at once, and say how they ended."""
    async with open_database(url, Path()) as database, slots_of(database) as shared:

        async def look() -> int:
            """Look for so long."""
            (row,) = await database.fetch(BEGIN, (name,))
            say("working")
            await asyncio.sleep(seconds)
            await database.execute(END, (row["id"],))
            return 1

        tool = tool_of(look, concurrency=most, limit_scope="workers", timeout_s=60)
        outcomes = await asyncio.gather(*(call(tool, {}, context(), shared) for _ in range(calls)))
        say(",".join(sorted({code_of(outcome) for outcome in outcomes})))


if __name__ == "__main__":
    url, name, calls, seconds, most = sys.argv[1:]
    asyncio.run(work(url, name, int(calls), float(seconds), int(most)))
