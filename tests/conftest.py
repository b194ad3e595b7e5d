"""What all tests share: one embedded PostgreSQL per session, a fresh database per test, the hypothesis profile."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from pytest_httpserver import HTTPServer

from checkpoints.database import Database, open_database
from checkpoints.embedded import EmbeddedServer
from checkpoints.migrate import migrate

# Two cores are shared with a database here: a slow example is no news, a failing one must be reproducible.
settings.register_profile("surestep", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("surestep")

_TEMPLATE = "surestep_template"
_numbers = itertools.count(1)


def in_database(url: str, name: str) -> str:
    """The same server's URL, for another database."""
    return url.replace("/postgres?", f"/{name}?", 1)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the maintenance database of the session's server.

    The server does not wait for the disk: tests kill processes, never the machine.
    """
    server = EmbeddedServer.open(tmp_path_factory.mktemp("postgres"))
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for setting in ("fsync = off", "synchronous_commit = off", "full_page_writes = off"):
                connection.execute(f"ALTER SYSTEM SET {setting}")
            connection.execute("SELECT pg_reload_conf()")
        yield server.url
    finally:
        server.release()


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> str:
    """Name of a migrated database that is only ever copied."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
    asyncio.run(migrate(in_database(postgres_url, _TEMPLATE)))
    return _TEMPLATE


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """URL of a fresh database in which nothing was made yet."""
    yield from fresh_database(postgres_url, "template1")


@pytest.fixture
def database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """URL of a fresh migrated database; gone after the test, whoever is still connected."""
    yield from fresh_database(postgres_url, template_database)


@pytest.fixture
async def database(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    """An open Database on a fresh migrated database."""
    async with open_database(database_url, tmp_path) as opened:
        yield opened


def fresh_database(postgres_url: str, template: str) -> Iterator[str]:
    """URL of a copy of that database, which is dropped afterwards."""
    name = f"test_{next(_numbers)}"
    words = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY").format(**words))
        yield in_database(postgres_url, name)
        connection.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**words))


@pytest.fixture(scope="session")
def make_httpserver() -> Iterator[HTTPServer]:
    """The server behind `httpserver`: one slow answer holds up no other."""
    server = HTTPServer(threaded=True)
    server.start()
    yield server
    server.clear()
    if server.is_running():
        server.stop()


@pytest.fixture(scope="module")
def s3_server() -> Iterator[None]:
    """A real S3 server of moto's, for all tests of a file, with a bucket called `results`."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem  # type: ignore[import-untyped]  # it has none

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "k")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        S3FileSystem.clear_instance_cache()  # one of another file's server may be kept
        S3FileSystem().makedirs("results", exist_ok=True)  # what a server holds outlives it, in this process
        yield
    server.stop()
