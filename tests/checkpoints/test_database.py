"""The pool: plain words for what goes wrong, and connections that heal."""

from __future__ import annotations

from checkpoints.database import Database


async def test_a_fresh_database_is_migrated_and_answers(database: Database) -> None:
    """The fixture every other test builds on holds a migrated, empty database."""
    assert await database.fetch("SELECT count(*) AS runs FROM surestep.runs") == [{"runs": 0}]


async def test_a_fresh_database_is_migrated_and_answers2(database: Database) -> None:
    """The fixture every other test builds on holds a migrated, empty database."""
    assert await database.fetch("SELECT count(*) AS runs FROM surestep.runs") == [{"runs": 0}]
