"""Brings a database to the schema this code expects: our migrations and LangGraph's tables, one process at a time."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from checkpoints.explain import check_url, check_version, not_permitted, unreachable
from checkpoints.pools import connection_options
from checkpoints.queries import QUERIES
from plans.errors import DatabaseUnavailable, VersionTooNew

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_LANGGRAPH = "langgraph-checkpoint-postgres"
_POLL_SECONDS = 0.05
_WAIT_SECONDS = 120.0


@dataclass(frozen=True, order=True)
class Migration:
    """One script; its name (`0001_initial`) says its place in the order."""

    name: str
    sql: str


def our_migrations() -> tuple[Migration, ...]:
    """The scripts that must run before this code does, in order: `migrations/NNNN_title.pre.sql`."""
    found = re.compile(r"(\d{4}_\w+)\.pre\.sql")
    scripts = files("checkpoints").joinpath("migrations").iterdir()
    return tuple(
        sorted(
            Migration(match[1], script.read_text("utf-8"))
            for script in scripts
            if (match := found.fullmatch(script.name))
        )
    )


async def migrate(conn_url: str) -> list[str]:
    """Run what the database at `conn_url` lacks, in order; gives the names of what was run.

    Any number of processes may call this at once: one migrates, the others wait for it. Up to date is found out in one
    round trip. Each script commits together with its record, so a process killed in between leaves a whole number of
    them. Raises DatabaseUnavailable (unreachable, too old, not permitted, or another process holds on for two minutes)
    and VersionTooNew when the database has migrations this code does not know.
    """
    import psycopg

    check_url(conn_url)
    ours, langgraph = await asyncio.to_thread(lambda: (our_migrations(), _langgraph()))  # they read files
    try:
        async with _connection(conn_url) as connection:
            check_version(connection.info.server_version)
            applied = await _applied(connection)
            if not _missing(ours, langgraph, applied):
                return []
            async with _alone(conn_url):
                return await _migrate(connection, ours, langgraph)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise not_permitted(conn_url, error) from error
    except psycopg.OperationalError as error:
        raise unreachable(conn_url, error) from error


async def lacking(conn_url: str, *, connect_timeout: int) -> list[str]:
    """What the database at `conn_url` lacks, as `migrate` would run it; nothing is changed. Raises DatabaseUnavailable
    where it is not reached within `connect_timeout` seconds, and VersionTooNew."""
    import psycopg

    ours, langgraph = await asyncio.to_thread(lambda: (our_migrations(), _langgraph()))
    try:
        async with _connection(conn_url, connect_timeout=connect_timeout) as connection:
            return _missing(ours, langgraph, await _applied(connection))
    except psycopg.OperationalError as error:
        raise unreachable(conn_url, error) from error


async def _migrate(connection: AsyncConnection[Any], ours: Sequence[Migration], langgraph: str) -> list[str]:
    ran = _missing(ours, langgraph, await _applied(connection))  # again: another process may have been faster
    for migration in ours:
        if migration.name in ran:
            async with connection.transaction():
                await connection.execute(migration.sql)
                await connection.execute(QUERIES["record_migration"], (migration.name,))
    if langgraph in ran:
        await _langgraph_tables(connection)
        await connection.execute(QUERIES["record_migration"], (langgraph,))
    return ran


def _missing(ours: Sequence[Migration], langgraph: str, applied: frozenset[str]) -> list[str]:
    wanted = [*(migration.name for migration in ours), langgraph]
    if unknown := sorted(name for name in applied - set(wanted) if not name.startswith(_LANGGRAPH)):
        raise VersionTooNew(
            f"the database was migrated by a newer Surestep: it has {', '.join(unknown)}, and this one knows "
            f"migrations up to {ours[-1].name}; install the newer version"
        )
    return [name for name in wanted if name not in applied]


async def _applied(connection: AsyncConnection[Any]) -> frozenset[str]:
    import psycopg

    try:
        rows = await (await connection.execute(QUERIES["applied_migrations"])).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return frozenset()
    return frozenset(name for (name,) in rows)


def _langgraph() -> str:
    """The record of LangGraph's tables: its version, so that they are known to be there without importing it."""
    return f"{_LANGGRAPH} {version(_LANGGRAPH)}"


async def _langgraph_tables(connection: AsyncConnection[Any]) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row

    connection.row_factory = dict_row
    await AsyncPostgresSaver(connection).setup()


@asynccontextmanager
async def _connection(url: str, **more: Any) -> AsyncIterator[AsyncConnection[Any]]:
    import psycopg

    options = connection_options(url, prepare_threshold=None, application_name="surestep migrate") | more
    async with await psycopg.AsyncConnection.connect(url, **options) as connection:
        yield connection


@asynccontextmanager
async def _alone(url: str) -> AsyncIterator[None]:
    """Hold the lock of migrations, on a connection that does nothing else.

    It is asked for again and again, and not waited for in the server: LangGraph builds an index CONCURRENTLY, which
    waits until older snapshots are gone, those of waiters for a lock included. It lasts as long as the transaction, so
    that it also works through a pgbouncer that lends connections by the transaction.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    async with _connection(url) as connection:
        while True:
            async with connection.transaction():
                await connection.execute(QUERIES["migration_lock_settings"])
                if await (await connection.execute(QUERIES["try_migration_lock"])).fetchone() == (True,):
                    yield
                    return
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"another process has been migrating this database for {_WAIT_SECONDS:.0f} s (in pg_stat_activity "
                    "it is called 'surestep migrate'); try again when it is done"
                )
            await asyncio.sleep(_POLL_SECONDS)
