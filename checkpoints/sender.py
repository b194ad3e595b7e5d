"""A connection of its own for statements that may be sent twice: they are sent until the database answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from checkpoints.database import Database
from checkpoints.pools import connection_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.AsyncConnection[DictRow]

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class Sender:
    """Sends one statement at a time, for one task. Not from the pool: its user would hold a connection for ever."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None

    async def send(self, sql: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows that the statement gives.

        After a lost connection or answer the statement is sent again on a new connection, without end: the caller sets
        the time limit, and the statement must be one that does no harm when it runs twice. What the database refuses
        for the statement's own sake is raised.
        """
        import psycopg

        pause = _FIRST_PAUSE_S
        while True:
            try:
                connection = await self._connected()
                return await (await connection.execute(sql, params)).fetchall()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await self.close()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def close(self) -> None:
        """Drop the connection; the next statement makes a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def _connected(self) -> Connection:
        if self._connection is None:
            import psycopg
            from psycopg.rows import dict_row

            options = connection_options(self._database.url, self._database.prepare_threshold)
            self._connection = await psycopg.AsyncConnection.connect(
                self._database.url, row_factory=dict_row, **options
            )
        return self._connection
