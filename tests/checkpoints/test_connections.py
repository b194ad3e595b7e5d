"""The connections of tools: reading cannot write, writing cannot commit, and a lost one says what is known."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from decimal import Decimal

import psycopg
import pytest

from checkpoints.connections import Connections, GuardedTransaction, LazyConnection
from checkpoints.database import Database
from plans.failure import ToolFailure
from tests.conftest import in_database

TRICKS = [
    "SELECT 1; COMMIT",
    "INSERT INTO shop VALUES (9); COMMIT",
    "INSERT INTO shop VALUES (9); COMMIT; INSERT INTO shop VALUES (10)",
    "SELECT 1; DROP TABLE shop",
    "SELECT 1;;SELECT 2",
]


@pytest.fixture
async def shop(database: Database) -> Database:
    await database.execute("CREATE TABLE shop (id integer PRIMARY KEY)")
    return database


@pytest.fixture
async def connections(shop: Database) -> AsyncIterator[Connections]:
    async with Connections(shop) as opened:
        yield opened


async def rows(database: Database) -> list[int]:
    return [row["id"] for row in await database.fetch("SELECT id FROM shop ORDER BY id")]


async def test_a_reading_connection_reads(connections: Connections) -> None:
    """Rows come as dicts with Python's types, with parameters of both kinds and a bare percent sign without."""
    reading = connections.read_only()
    assert await reading.fetch("SELECT %s::numeric AS price, %s AS name", ("9.90", "a%b")) == [
        {"price": Decimal("9.90"), "name": "a%b"}
    ]
    assert await reading.fetch("SELECT %(a)s::int AS a", {"a": 1}) == [{"a": 1}]
    assert await reading.fetch("SELECT '5%' AS share") == [{"share": "5%"}]
    assert await reading.execute("SELECT 1") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO shop VALUES (1)",
        "WITH new AS (INSERT INTO shop VALUES (1) RETURNING id) SELECT * FROM new",
        "EXPLAIN ANALYZE INSERT INTO shop VALUES (1)",
        "SELECT setval('numbers', 7)",
    ],
)
async def test_the_server_refuses_to_write_over_a_reading_connection(
    connections: Connections, shop: Database, sql: str
) -> None:
    """Reading is enforced by PostgreSQL, not by looking at the words: writes hidden in reads fail too."""
    await shop.execute("CREATE SEQUENCE numbers")
    with pytest.raises(ToolFailure) as caught:
        await connections.read_only().execute(sql)
    assert caught.value.code == "NOT_PERMITTED"
    assert await rows(shop) == []


@pytest.mark.parametrize("sql", TRICKS)
@pytest.mark.parametrize("params", [(), (1,)], ids=["no parameters", "parameters"])
@pytest.mark.parametrize("kind", ["read_only", "transaction", "external"])
async def test_a_second_statement_behind_a_semicolon_is_refused(
    connections: Connections, shop: Database, kind: str, sql: str, params: tuple[int, ...]
) -> None:
    """No connection takes two statements at once, whether or not there are parameters, and nothing of them happens."""
    if params:
        sql = sql.replace("1", "%s", 1) if "1" in sql.split(";", maxsplit=1)[0] else sql.replace("9", "%s", 1)
    makers: dict[str, Callable[[], LazyConnection | GuardedTransaction]] = {
        "read_only": connections.read_only,
        "transaction": connections.transaction,
        "external": lambda: connections.external("shop"),
    }
    connection = makers[kind]()
    with pytest.raises((ToolFailure, psycopg.errors.SyntaxError)) as caught:
        await connection.execute(sql, params)
    if isinstance(connection, GuardedTransaction):
        await connection.abort()
    assert getattr(caught.value, "code", None) == "NOT_PERMITTED"
    assert await rows(shop) == []


async def test_nothing_of_a_transaction_is_seen_until_it_is_committed_with_its_outcome(
    connections: Connections, shop: Database
) -> None:
    """The tool's write and the record of its outcome appear together."""
    async with connections.transaction() as transaction:
        assert await transaction.execute("INSERT INTO shop VALUES (1)") == 1
        assert await transaction.fetch("SELECT id FROM shop") == [{"id": 1}]
        assert await rows(shop) == []
        assert await transaction.commit_with("INSERT INTO shop VALUES (%s) RETURNING id", (100,)) == [{"id": 100}]
    assert await rows(shop) == [1, 100]


async def test_a_refused_outcome_takes_the_tools_writes_with_it(connections: Connections, shop: Database) -> None:
    """When the record gives no row (the fence has moved on), nothing at all is committed."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        assert await transaction.commit_with("INSERT INTO shop SELECT 100 WHERE false RETURNING id") == []
    assert await rows(shop) == []


async def test_an_outcome_that_fails_takes_the_tools_writes_with_it(connections: Connections, shop: Database) -> None:
    """An error while the outcome is recorded undoes everything, and the connection serves the next."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await transaction.commit_with("INSERT INTO shop VALUES (1) RETURNING id")
    assert await rows(shop) == []


async def test_leaving_the_block_without_commit_undoes_everything(connections: Connections, shop: Database) -> None:
    """A tool that fails, or whose output is refused, has written nothing."""
    with contextlib.suppress(ZeroDivisionError):
        async with connections.transaction() as transaction:
            await transaction.execute("INSERT INTO shop VALUES (1)")
            raise ZeroDivisionError
    assert await rows(shop) == []


async def test_a_failed_statement_cannot_be_talked_over(connections: Connections, shop: Database) -> None:
    """After an error the transaction commits nothing, even if the tool swallowed it and its caller went on."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await transaction.execute("INSERT INTO shop VALUES (1)")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            await transaction.commit_with("INSERT INTO shop VALUES (100) RETURNING id")
    assert await rows(shop) == []


async def test_a_transaction_is_over_once_it_has_ended(connections: Connections) -> None:
    """A tool that kept its connection cannot write after it has returned."""
    async with connections.transaction() as transaction:
        await transaction.commit_with("SELECT 1 AS ok")
        with pytest.raises(RuntimeError, match="has ended"):
            await transaction.fetch("SELECT 1")


async def test_a_tool_that_uses_its_transaction_twice_at_a_time_is_served_in_turn(connections: Connections) -> None:
    """Gathered statements do not mix on the one connection."""
    async with connections.transaction() as transaction:
        answers = await asyncio.gather(*(transaction.fetch("SELECT %s::int AS n", (n,)) for n in range(10)))
    assert [answer[0]["n"] for answer in answers] == list(range(10))


async def test_a_cancelled_statement_frees_its_transaction_at_once(connections: Connections, shop: Database) -> None:
    """At its deadline a tool's statement is stopped in the server, its writes undone, and the pool has all it lent."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await transaction.fetch("SELECT pg_sleep(60)")
    assert await rows(shop) == []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await connections.read_only().fetch("SELECT pg_sleep(60)")
    running = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%%pg_sleep(60)' "
    assert await shop.fetch(running + "AND state = 'active'") == []


async def test_a_transaction_that_waits_too_long_is_ended_by_the_server(
    connections: Connections, shop: Database
) -> None:
    """A tool that stops answering inside its transaction holds its rows no longer than the bound."""
    async with connections.transaction(idle_seconds=0.1) as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        await asyncio.sleep(0.4)
        with pytest.raises(ToolFailure) as caught:
            await transaction.fetch("SELECT 1")
    assert caught.value.code in {"UNAVAILABLE", "TIMEOUT"}
    assert await rows(shop) == []


async def test_an_external_statement_commits_by_itself(connections: Connections, shop: Database) -> None:
    """For idempotent and irreversible tools: what was executed is there, with no transaction around it."""
    external = connections.external("shop")
    assert await external.execute("INSERT INTO shop VALUES (1), (2)") == 2
    assert await rows(shop) == [1, 2]


async def test_an_external_name_leads_to_the_database_it_is_configured_for(shop: Database, postgres_url: str) -> None:
    """A configured name goes to its own database, any other to ours."""
    elsewhere = in_database(postgres_url, "template1")
    async with Connections(shop, {"crm": elsewhere}) as connections:
        assert await connections.external("crm").fetch("SELECT current_database() AS name") == [{"name": "template1"}]
        ours = await connections.external("shop").fetch("SELECT current_database() AS name")
        assert ours[0]["name"].startswith("test_")


async def test_nothing_is_connected_until_it_is_used(shop: Database) -> None:
    """Handing out connections, even to a server that is down, costs nothing and fails only on use."""
    async with Connections(shop, {"crm": "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"}) as connections:
        connections.external("crm")
        connections.transaction()


@pytest.mark.parametrize(("kind", "code"), [("read_only", "UNAVAILABLE"), ("external", "UNKNOWN_OUTCOME")])
async def test_a_connection_lost_in_the_middle_says_what_is_known(
    connections: Connections, shop: Database, kind: str, code: str
) -> None:
    """A lost read may simply be tried again; a lost write may have happened, and is never reported as failed."""
    connection: LazyConnection = connections.read_only() if kind == "read_only" else connections.external("shop")
    waiting = asyncio.create_task(connection.fetch("SELECT pg_sleep(60) AS here"))
    await _kill_whoever_runs(shop, "%pg_sleep(60) AS here")
    with pytest.raises(ToolFailure) as caught:
        await waiting
    assert caught.value.code == code
    assert await connection.fetch("SELECT 1 AS one") == [{"one": 1}]


async def test_a_transaction_lost_before_its_commit_has_done_nothing_and_says_so(
    connections: Connections, shop: Database
) -> None:
    """The tool's own statements are safe to repeat: without the commit nothing of them stays."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        waiting = asyncio.create_task(transaction.fetch("SELECT pg_sleep(60) AS here"))
        await _kill_whoever_runs(shop, "%pg_sleep(60) AS here")
        with pytest.raises(ToolFailure) as caught:
            await waiting
    assert caught.value.code == "UNAVAILABLE"
    assert await rows(shop) == []


async def test_a_commit_whose_connection_is_lost_is_an_unknown_outcome(
    connections: Connections, shop: Database
) -> None:
    """Between the outcome and the answer nobody knows: the journal must be asked, so the code is UNKNOWN_OUTCOME."""
    async with connections.transaction() as transaction:
        await transaction.execute("INSERT INTO shop VALUES (1)")
        waiting = asyncio.create_task(transaction.commit_with("SELECT pg_sleep(60) AS here"))
        await _kill_whoever_runs(shop, "%pg_sleep(60) AS here")
        with pytest.raises(ToolFailure) as caught:
            await waiting
    assert caught.value.code == "UNKNOWN_OUTCOME"


async def test_a_deadlock_is_a_conflict(connections: Connections, shop: Database) -> None:
    """What another try may settle is told apart from what is wrong."""
    await shop.execute("INSERT INTO shop VALUES (1), (2)")
    async with connections.transaction() as one, connections.transaction() as two:
        await one.execute("UPDATE shop SET id = id WHERE id = 1")
        await two.execute("UPDATE shop SET id = id WHERE id = 2")
        both = await asyncio.gather(
            one.execute("UPDATE shop SET id = id WHERE id = 2"),
            two.execute("UPDATE shop SET id = id WHERE id = 1"),
            return_exceptions=True,
        )
    assert [error.code for error in both if isinstance(error, ToolFailure)] == ["CONFLICT"]


async def _kill_whoever_runs(database: Database, pattern: str) -> None:
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query LIKE %s AND state = 'active' AND pid <> pg_backend_pid()"
    )
    for _ in range(500):
        if await database.fetch(kill, (pattern,)):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nobody runs the statement")
