"""Settings of tools in PostgreSQL: seen in time, never lost between two who change, and on record for good."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from checkpoints.database import Database
from checkpoints.tool_settings import PostgresSettings

OFF = {"enabled": False, "timeout_s": 1.5}


def to(stored: dict[str, Any]) -> Any:
    return lambda _before: stored


async def test_a_setting_is_seen_at_once_here_and_within_two_seconds_elsewhere(database: Database) -> None:
    """A tool can be switched off while running: no deploy, and no query per call."""
    now = [50.0]
    here, elsewhere = (PostgresSettings(database, monotonic=lambda: now[0]) for _ in range(2))
    assert await elsewhere.get("get_order") == {}
    assert await here.change("get_order", to(OFF), "ann") == ({}, OFF)
    assert await here.get("get_order") == OFF
    now[0] = 51.9
    assert await elsewhere.get("get_order") == {}
    now[0] = 52.0
    assert await elsewhere.get("get_order") == OFF
    await here.change("get_order", to({}), "bob")
    await here.change("find_orders", to({"enabled": False}), "bob")
    assert await elsewhere.get_all() == {"get_order": {}, "find_orders": {"enabled": False}}


async def test_nobody_who_changes_at_the_same_time_undoes_what_another_has_changed(database: Database) -> None:
    """Thirty changes of one tool at once, each of another setting: all of them are there, and each on record once."""
    workers = [PostgresSettings(database) for _ in range(3)]

    async def change(number: int) -> None:
        await workers[number % 3].change("t", lambda before: {**before, f"s{number}": number}, f"by {number}")

    await asyncio.gather(*(change(number) for number in range(30)))
    assert (await workers[0].get_all())["t"] == {f"s{number}": number for number in range(30)}
    history = await workers[0].history("t")
    assert len(history) == 30
    assert sorted(change.changed_by for change in history) == sorted(f"by {number}" for number in range(30))
    assert all(len(change.after) == len(change.before) + 1 for change in history)
    assert [change.before for change in history[:-1]] == [change.after for change in history[1:]]


async def test_what_was_changed_is_told_with_who_when_before_and_after(database: Database) -> None:
    """The newest first, of one tool or of all, as many as wanted; what changes nothing is no change."""
    settings = PostgresSettings(database)
    await settings.change("t", to({"timeout_s": 3}), "ann")
    await settings.change("u", to({"enabled": False}), "bob")
    await settings.change("t", to({"timeout_s": 3}), "eve")
    await settings.change("t", to({}), "bob")
    told = [(each.tool, each.changed_by, each.before, each.after) for each in await settings.history()]
    assert told == [
        ("t", "bob", {"timeout_s": 3}, {}),
        ("u", "bob", {}, {"enabled": False}),
        ("t", "ann", {}, {"timeout_s": 3}),
    ]
    assert [each.tool for each in await settings.history("t")] == ["t", "t"]
    assert [each.changed_by for each in await settings.history(limit=1)] == ["bob"]
    times = [each.changed_at for each in await settings.history()]
    assert times == sorted(times, reverse=True)


async def test_a_change_that_is_refused_changes_nothing(database: Database) -> None:
    """What the caller raises about the stored settings comes out, and no row is written."""

    def refuse(before: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(f"not over {before}")

    settings = PostgresSettings(database)
    with pytest.raises(ValueError, match="not over"):
        await settings.change("t", refuse, "ann")
    assert (await settings.get_all(), await settings.history()) == ({}, [])


async def test_changes_past_surestep_are_on_record_too(database: Database) -> None:
    """Whoever writes the table by hand is named as what the database knows of them."""
    settings = PostgresSettings(database)
    await settings.change("t", to({"timeout_s": 3}), "ann")
    await database.execute("UPDATE surestep.tool_settings SET settings = '{\"timeout_s\": 9}' WHERE tool = 't'")
    await database.execute("DELETE FROM surestep.tool_settings WHERE tool = 't'")
    told = [(each.changed_by, each.before, each.after) for each in await settings.history()]
    assert told == [
        ("database user postgres", {"timeout_s": 9}, {}),
        ("database user postgres", {"timeout_s": 3}, {"timeout_s": 9}),
        ("ann", {}, {"timeout_s": 3}),
    ]
    assert await settings.change("t", lambda before: {**before, "enabled": False}, "bob") == ({}, {"enabled": False})


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE surestep.tool_changes SET changed_by = 'nobody'",
        "DELETE FROM surestep.tool_changes",
        "TRUNCATE surestep.tool_changes",
        "TRUNCATE surestep.tool_settings",
    ],
)
async def test_the_record_cannot_be_rewritten(database: Database, statement: str) -> None:
    """Nobody changes or deletes a row of it, not even the owner of the table."""
    settings = PostgresSettings(database)
    await settings.change("t", to({"timeout_s": 3}), "ann")
    with pytest.raises(psycopg.errors.RestrictViolation, match="stays on record"):
        await database.execute(statement)
    assert [each.changed_by for each in await settings.history()] == ["ann"]
