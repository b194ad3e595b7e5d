"""Migrations: any number of processes at once, whole steps, and one file that says what the schema is."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from checkpoints import migrate as migrating
from checkpoints.migrate import migrate, our_migrations
from checkpoints.programs import Programs
from plans.errors import DatabaseUnavailable, VersionTooNew

SCHEMA = Path(__file__).parents[2] / "checkpoints" / "schema.sql"

CHILD = """
import asyncio, sys, time
from checkpoints.migrate import migrate
time.sleep(max(0, float(sys.argv[2]) - time.time()))
print(len(asyncio.run(migrate(sys.argv[1]))))
"""


def test_six_processes_at_once_on_an_empty_database_all_start(empty_database_url: str) -> None:
    """One migrates, five wait for it, none fails or hangs: LangGraph's concurrent index included."""
    together = str(time.time() + 3)
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, empty_database_url, together], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = [child.communicate(timeout=60)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0] * 6
    assert sorted(answers) == ["0"] * 5 + [str(len(our_migrations()) + 1)]


async def test_a_second_run_does_nothing_and_asks_one_question(empty_database_url: str, counted: list[str]) -> None:
    """Up to date costs one connection and one statement, and no import of LangGraph."""
    assert await migrate(empty_database_url)
    counted.clear()
    assert await migrate(empty_database_url) == []
    assert counted == ["SELECT name FROM surestep.migrations"]


async def test_langgraphs_tables_are_made_in_the_default_schema(empty_database_url: str) -> None:
    """Ours are in `surestep`, LangGraph's where its own tools look for them."""
    await migrate(empty_database_url)
    tables = "SELECT schemaname, tablename FROM pg_tables WHERE tablename IN ('checkpoints', 'journal') ORDER BY 1"
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute(tables).fetchall() == [("public", "checkpoints"), ("surestep", "journal")]


async def test_a_database_of_a_newer_surestep_is_refused(database_url: str) -> None:
    """Code that does not know a migration does not touch the database, and the message names it."""
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO surestep.migrations (name) VALUES ('9999_tomorrow')")
    with pytest.raises(VersionTooNew, match="9999_tomorrow"):
        await migrate(database_url)


async def test_a_newer_langgraph_adds_its_tables_at_the_next_start(database_url: str) -> None:
    """The record names LangGraph's version: another version runs its set-up again, an older record is no obstacle."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE surestep.migrations SET name = 'langgraph-checkpoint-postgres 1.0.0' WHERE name LIKE 'langgraph%'"
        )
    assert await migrate(database_url) == [migrating._langgraph()]
    assert await migrate(database_url) == []


@pytest.mark.parametrize(
    "fault",
    ["SELECT 1 / 0", "ALTER TABLE surestep.migrations ADD CHECK (name <> '9999_broken')"],
    ids=["the script", "its record"],
)
async def test_a_migration_that_fails_leaves_no_part_of_itself(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A script and its record commit together: after an error in either the next start runs the whole script."""
    broken = migrating.Migration("9999_broken", f"CREATE TABLE surestep.half (); {fault}")
    monkeypatch.setattr(migrating, "our_migrations", lambda: (*our_migrations(), broken))
    with pytest.raises((psycopg.errors.DivisionByZero, psycopg.errors.CheckViolation)):
        await migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('surestep.half')").fetchone() == (None,)
        assert connection.execute("SELECT name FROM surestep.migrations").fetchall() == [
            (each.name,) for each in our_migrations()
        ]


async def test_whoever_waits_too_long_for_another_is_told(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs in its migration is reported after the bound, and not waited for for ever."""
    monkeypatch.setattr(migrating, "_WAIT_SECONDS", 0.2)
    async with migrating._alone(empty_database_url):
        with pytest.raises(DatabaseUnavailable, match="another process has been migrating"):
            await migrate(empty_database_url)
    assert await migrate(empty_database_url)


async def test_the_lock_ends_with_the_process_that_holds_it(empty_database_url: str) -> None:
    """A migrator that was killed leaves no lock behind: the next goes on at once."""
    holding = asyncio.create_task(_hold(empty_database_url))
    await asyncio.sleep(0.2)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
    assert await asyncio.wait_for(migrate(empty_database_url), timeout=10)
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)


async def test_a_user_who_may_not_create_is_told_what_to_ask_for(empty_database_url: str) -> None:
    """No permission: the message has the user, the database, and the statement its owner can run."""
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(DatabaseUnavailable, match=r'"?guest.*GRANT CREATE ON DATABASE "test_\d+" TO "guest"'):
        await migrate(empty_database_url.replace("postgres@", "guest@", 1))


def test_the_checked_in_schema_is_what_the_migrations_make(database_url: str) -> None:
    """`checkpoints/schema.sql` can be read instead of all migrations: it is a dump of a migrated database.

    After a new migration, replace the file by the dump that the failure shows.
    """
    assert _dump(database_url) == SCHEMA.read_text("utf-8")


def test_migrations_are_numbered_without_gaps() -> None:
    """Their order is their number, and none is skipped or doubled."""
    assert [int(migration.name[:4]) for migration in our_migrations()] == list(range(1, len(our_migrations()) + 1))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements sent from here on."""
    sent: list[str] = []
    execute = psycopg.AsyncConnection.execute

    async def counting(self: psycopg.AsyncConnection[Any], query: str, *args: Any, **options: Any) -> Any:
        sent.append(query)
        return await execute(self, query, *args, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", counting)
    return sent


async def _hold(url: str) -> None:
    async with migrating._alone(url):
        await asyncio.sleep(60)


def _dump(url: str) -> str:
    """The schema `surestep` as SQL, without what differs from one dump to the next."""
    folder = Programs.for_home(Path("/nowhere")).folder
    options = ("--schema-only", "--schema=surestep", "--no-owner", "--no-privileges", "--no-comments")
    text = subprocess.run([folder / "pg_dump", *options, url], check=True, capture_output=True, text=True).stdout
    lines = (line for line in text.splitlines() if not re.match(r"--|SET |SELECT pg_catalog|\\(un)?restrict", line))
    body = re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip()
    return f"-- The schema that the migrations make, for reading; a test keeps it true. Not run.\n\n{body}\n"
