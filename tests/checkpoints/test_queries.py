"""Named queries: every statement is found whole, none is lost, and the server understands each."""

from __future__ import annotations

import re

import psycopg
import pytest

from checkpoints.database import Database
from checkpoints.queries import QUERIES, parse_queries

TEXT = """-- about the file; with a semicolon
-- name: first
-- why
SELECT ';' AS a;

-- ---- a section; another
-- name: second
SELECT 2
"""


def test_statements_are_cut_at_their_names() -> None:
    """Comments inside stay, those around go, and so does the last semicolon only."""
    assert dict(parse_queries(TEXT)) == {"first": "-- why\nSELECT ';' AS a", "second": "SELECT 2"}


def test_a_name_used_twice_is_refused() -> None:
    """The second would win in silence."""
    with pytest.raises(ValueError, match="'a'"):
        parse_queries("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;")


PREPARABLE = sorted(name for name, text in QUERIES.items() if not text.startswith(("SET", "LISTEN", "LOCK")))


async def test_the_server_understands_every_statement(database: Database) -> None:
    """Each statement of the package fits the migrated schema; a renamed column is found here, not in a run."""
    wrong = {}
    for name in PREPARABLE:
        try:
            await database.execute(f"PREPARE {name} AS {_numbered(QUERIES[name])}")
        except psycopg.Error as error:
            wrong[name] = str(error)
    assert len(PREPARABLE) > 100
    assert wrong == {}


def _numbered(statement: str) -> str:
    """The statement with `$1, $2, …` where psycopg's placeholders stand, a name keeping its number."""
    seen: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        name = match[1] or f"positional {len(seen)}"
        if name not in seen:
            seen.append(name)
        return f"${seen.index(name) + 1}"

    return re.sub(r"%(?:\((\w+)\))?[sbt]|%%", number, statement)
