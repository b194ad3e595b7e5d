"""A line to the server that can lose an answer, or be cut."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from checkpoints.database import Database

_READY = b"Z\x00\x00\x00\x05I"
"""What the server sends when a statement is over, its commit included."""


@dataclass
class BadLine:
    """Passes everything on, until it is told not to."""

    socket: str
    lose_answer: bool = False
    cut: bool = False
    lost: int = 0

    @classmethod
    @asynccontextmanager
    async def to(cls, database: Database) -> AsyncIterator[tuple[Self, Database]]:
        """The line, and the same database seen through it (its pool still goes straight)."""
        known = conninfo_to_dict(database.url)
        port = known.get("port", "5432")
        line = cls(f"{known['host']}/.s.PGSQL.{port}")
        with tempfile.TemporaryDirectory() as folder:
            server = await asyncio.start_unix_server(line._serve, Path(folder) / f".s.PGSQL.{port}")
            async with server:
                yield line, replace(database, url=make_conninfo(database.url, host=folder))

    async def _serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        if self.cut:
            answers.close()
            return
        server, questions = await asyncio.open_unix_connection(self.socket)
        pump = asyncio.create_task(_pump(client, questions))
        with suppress(ConnectionError):
            while answer := await server.read(65536):
                if self.lose_answer:
                    if answer.endswith(_READY):
                        self.lose_answer = False
                        self.lost += 1
                        break
                    continue
                answers.write(answer)
                await answers.drain()
        for writer in (answers, questions):
            writer.close()
        pump.cancel()
        await asyncio.wait({pump})


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()
