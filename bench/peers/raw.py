"""The price of durability by hand: a row before each effect and a row after it, each its own commit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg

from bench.work import Work

BEFORE = "INSERT INTO intents (number) VALUES (%s)"
AFTER = "INSERT INTO outcomes (number, body) VALUES (%s, %s)"


class Raw:
    """Two one-row INSERTs per step on one connection that commits each of them."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def run(self, work: Work) -> None:
        """One step after the other, whatever its dependencies."""
        for task in work.tasks:
            await self._connection.execute(BEFORE, (task.number,))
            result = await work.perform(task.number)
            await self._connection.execute(AFTER, (task.number, result["payload"]))

    async def resume(self, work: Work) -> None:
        """Nothing was stored that it could go on with."""
        raise RuntimeError(f"nothing of {work.recipe.name} is left")


@asynccontextmanager
async def opened(_name: str, url: str, _folder: Path, _found: Work | None) -> AsyncIterator[Raw]:
    """Two tables without an index."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS intents (number int, at timestamptz DEFAULT now())")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS outcomes (number int, body text, at timestamptz DEFAULT now())"
        )
        yield Raw(connection)
