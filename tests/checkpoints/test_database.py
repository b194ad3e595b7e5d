"""The door to PostgreSQL: plain words for what goes wrong, no password anywhere, and connections that heal."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from checkpoints.database import Database, open_database
from checkpoints.embedded import EmbeddedServer
from plans.errors import DatabaseUnavailable, StorageUnavailable

SECRET = "pa55word-of-ours"


async def test_a_fresh_database_is_migrated_and_empty(database: Database) -> None:
    """The fixture every other test builds on holds a migrated, empty database."""
    assert await database.fetch("SELECT count(*) AS runs FROM surestep.runs") == [{"runs": 0}]
    assert await database.execute("CREATE TABLE t AS SELECT generate_series(1, 3)") == 3


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"postgresql://u:{SECRET}@127.0.0.1:1/shop", "nothing listens there"),
        (f"postgresql://u:{SECRET}@/shop?host=/nowhere", "is PostgreSQL running"),
        (f"postgresql://u:{SECRET}@no-such-machine.invalid/shop", "no-such-machine.invalid"),
        (f"postgresql://u:{SECRET}@127.0.0.1:port/shop", "expected something like postgresql://"),
        (f"postgresql://u:1@{SECRET}@127.0.0.1/shop", "must be written as %40"),
        (f"postgresql://u:1/{SECRET}@127.0.0.1/shop", "must be written as %40"),
        (f"postgresql://u:{SECRET}@[::1/shop", "expected something like postgresql://"),
        (f"mysql://u:{SECRET}@127.0.0.1/shop", "expected something like postgresql://"),
        (f"postgresql://u:{SECRET}@127.0.0.1/shop?nonsense=1", "expected something like postgresql://"),
        (f"{SECRET}", "expected something like postgresql://"),
        ("", "expected something like postgresql://"),
    ],
    ids=["down", "no socket", "no host", "port", "at sign", "slash", "bracket", "scheme", "option", "text", "empty"],
)
async def test_what_is_wrong_with_a_url_or_a_server_is_said_without_the_password(
    tmp_path: Path, url: str, words: str
) -> None:
    """Each trouble has its own sentence, and no message or cause shown to anybody has the password in it."""
    with pytest.raises(DatabaseUnavailable) as caught:
        async with open_database(url, tmp_path):
            pass
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.__cause__ or "")


@pytest.fixture(scope="module")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server on a port of this machine that asks for passwords."""
    server = EmbeddedServer.open(tmp_path_factory.mktemp("guarded"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = server.cluster.home
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE alice LOGIN PASSWORD '{SECRET}'")
        connection.execute("CREATE DATABASE shop OWNER alice")
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(f"listen_addresses = '127.0.0.1'\nport = {port}\n")
    (data / "pg_hba.conf").write_text("local all all trust\nhost all alice 127.0.0.1/32 scram-sha-256\n")
    server.cluster.stop()
    server.cluster.start()
    yield f"postgresql://alice:{SECRET}@127.0.0.1:{port}/shop"
    server.release()


async def test_a_database_on_a_server_with_a_password_opens(guarded_server: str, tmp_path: Path) -> None:
    """The same code on a server that is not ours, over TCP, as a user who owns just one database."""
    async with open_database(guarded_server, tmp_path) as database:
        assert await database.fetch("SELECT current_user AS me") == [{"me": "alice"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((SECRET, "wrong-" + SECRET), "the password for user 'alice' is wrong"),
        ((f":{SECRET}@", "@"), "a password is needed for user 'alice'"),
        (("/shop", "/nosuch"), "knows no such database"),
        (("alice", "bob"), "does not let user 'bob' into database 'shop'"),
    ],
    ids=["wrong password", "no password", "unknown database", "unknown user"],
)
async def test_a_server_that_refuses_us_says_why_in_plain_words(
    guarded_server: str, tmp_path: Path, change: tuple[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong or missing password, unknown database or user: told apart, at once, without the password."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(DatabaseUnavailable) as caught:
        async with asyncio.timeout(5), open_database(guarded_server.replace(*change), tmp_path):
            pass
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_server_that_goes_away_makes_no_noise_on_the_terminal(tmp_path: Path) -> None:
    """No traceback and no log line of a library: only the one message, from the call that needed the server."""
    code = """
import asyncio, sys
from pathlib import Path
from checkpoints import pools
from checkpoints.database import open_database
from checkpoints.embedded import EmbeddedServer
from plans.errors import DatabaseUnavailable
pools.WAIT_SECONDS = 1.0
async def main():
    folder = Path(sys.argv[1])
    async with open_database(None, folder) as database:
        EmbeddedServer.open(folder).cluster.stop()
        try:
            await database.fetch("SELECT 1")
        except DatabaseUnavailable as error:
            print(error)
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert "cannot connect to PostgreSQL" in ran.stdout
    assert len(ran.stdout.splitlines()) == 1


async def test_a_connection_that_died_at_rest_costs_nothing(database: Database) -> None:
    """Connections are checked when they are lent: after a restart of the server the next statement just works."""
    await _kill_all_others(database)
    assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]


async def test_a_statement_whose_connection_dies_is_a_database_that_is_not_available(database: Database) -> None:
    """A connection lost in the middle is told like a server that is down, and the next statement works."""
    waiting = asyncio.create_task(database.fetch("SELECT pg_sleep(60)"))
    await asyncio.sleep(0.2)
    await _kill_all_others(database)
    with pytest.raises(DatabaseUnavailable):
        await waiting
    assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]


async def test_an_error_in_the_statement_is_not_taken_for_a_server_that_is_down(database: Database) -> None:
    """What is our mistake stays what it is."""
    with pytest.raises(psycopg.errors.UndefinedTable):
        await database.fetch("SELECT * FROM nowhere")


@pytest.mark.parametrize(("threshold", "prepared"), [(None, 0), (1, 1)])
async def test_statements_are_prepared_only_where_that_is_wanted(
    database_url: str, tmp_path: Path, threshold: int | None, prepared: int
) -> None:
    """Behind a pgbouncer nothing may be prepared: None reaches the connections."""
    async with open_database(database_url, tmp_path, prepare_threshold=threshold, pool_size=1) as database:
        for _ in range(5):
            await database.fetch("SELECT 1 + 1")
        known = "SELECT count(*)::int AS n FROM pg_prepared_statements WHERE statement = 'SELECT 1 + 1'"
        assert await database.fetch(known) == [{"n": prepared}]


async def test_the_pool_is_bounded(database_url: str, tmp_path: Path) -> None:
    """`pool_size` statements run at a time, the others wait their turn."""
    async with open_database(database_url, tmp_path, pool_size=2) as database:
        await asyncio.gather(*(database.fetch("SELECT pg_sleep(0.02)") for _ in range(10)))
        mine = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database()"
        assert (await database.fetch(mine))[0]["n"] <= 2 + 1  # and the fixture's own


async def test_without_a_url_the_embedded_server_is_used_and_released(tmp_path: Path) -> None:
    """None means the folder: it works, and when the door closes no server is left."""
    async with open_database(None, tmp_path / "with space") as database:
        assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]
    assert not (tmp_path / "with space" / "postgres" / "postmaster.pid").exists()


async def test_a_folder_that_cannot_be_written_is_not_a_database_that_is_down(tmp_path: Path) -> None:
    """Storage and database are told apart, for what to do differs."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable):
        async with open_database(None, tmp_path / "file"):
            pass


def test_importing_the_door_loads_nothing_heavy() -> None:
    """`surestep --help` pays for no driver, no LangGraph and no server."""
    code = (
        "import sys, checkpoints.database, checkpoints.connections, checkpoints.artifacts;"
        "print([m for m in ('psycopg', 'psycopg_pool', 'langgraph', 'langchain_core', 'fsspec') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert ran.stdout.strip() == "[]"


async def _kill_all_others(database: Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
