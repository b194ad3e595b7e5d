"""A session with the database that lives as long as this process: others see by it that a worker is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from checkpoints.background import stop
from checkpoints.explain import unreachable
from checkpoints.pools import connection_options
from checkpoints.queries import QUERIES

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[tuple[Any, ...]]

_RETRY_S = 0.2
_WAIT_S = 10.0


class Presence:
    """One direct connection, made again when it breaks; its server process and start time name it for all to see.

    It does nothing but listen, so that a cut is noticed at once: `renewed` is set by each new connection. `on_cancel`
    is called with the run's id when somebody asks to cancel a run, `on_instruction` when somebody says something to it.
    """

    def __init__(
        self, url: str, *, on_cancel: Callable[[str], None], on_instruction: Callable[[str], None] = lambda _: None
    ) -> None:
        self._url = url
        self._on_cancel, self._on_instruction = on_cancel, on_instruction
        self._session: dict[str, Any] = {}
        self._present = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self.renewed = asyncio.Event()

    async def open(self) -> None:
        """Connect, and stay connected until `close`. DatabaseUnavailable if that fails at first."""
        import psycopg

        try:
            connection = await self._connect()
        except psycopg.OperationalError as error:
            raise unreachable(self._url, error) from error
        self._watch = asyncio.create_task(self._stay(connection), name="presence")

    async def close(self) -> None:
        """End the session."""
        await stop(self._watch)

    async def session(self) -> dict[str, Any]:
        """`backend_pid` and `backend_start` of the session. DatabaseUnavailable after ten seconds without one."""
        try:
            async with asyncio.timeout(_WAIT_S):
                await self._present.wait()
        except TimeoutError as error:
            raise unreachable(self._url, error) from error
        return self._session

    async def _stay(self, connection: Connection) -> None:
        import psycopg

        while True:
            try:
                async with connection:
                    async for notice in connection.notifies():
                        told = self._on_cancel if notice.channel == "surestep_cancel" else self._on_instruction
                        told(notice.payload)
            except psycopg.OperationalError:
                self._present.clear()
            connection = await self._reconnect()

    async def _reconnect(self) -> Connection:
        import psycopg

        while True:
            try:
                return await self._connect()
            except psycopg.OperationalError:
                await asyncio.sleep(_RETRY_S)

    async def _connect(self) -> Connection:
        import psycopg
        from psycopg.rows import dict_row

        connection = await psycopg.AsyncConnection.connect(self._url, **connection_options(self._url, None))
        try:
            await connection.execute(QUERIES["listen_for_cancel"])
            await connection.execute(QUERIES["listen_for_instructions"])
            cursor = connection.cursor(row_factory=dict_row)
            self._session = (await (await cursor.execute(QUERIES["own_session"])).fetchall())[0]
        except psycopg.Error:
            await connection.close()
            raise
        self._present.set()
        self.renewed.set()
        return connection
