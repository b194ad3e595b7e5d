"""What every released version has left in a database, today's code reads, goes on with, or refuses loudly."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from checkpoints.migrate import _langgraph, _langgraph_tables, our_migrations
from checkpoints.queries import QUERIES
from graph.gateway import Agent
from nodes.versions import JOURNAL_VERSION
from plans.decisions import Approve, Reject, Respond
from plans.errors import VersionTooNew
from tests.conftest import fresh_database, in_database
from tests.golden.kit import LEDGER, PLANS, kit
from tests.running import running

DATABASES = sorted((Path(__file__).parent / "databases").glob("*.json.gz"))


def column(value: Any) -> Any:
    """A column's value, from the form in which it was written down."""
    match value:
        case {"bytes": str(text)}:
            return base64.b64decode(text)
        case {"time": str(text)}:
            return datetime.fromisoformat(text)
        case dict() | list():
            return Jsonb(value)
        case _:
            return value


async def restore(url: str, golden: dict[str, Any]) -> None:
    """The database as that version left it: its own migrations and no later ones, and its rows."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for migration in our_migrations():
            if migration.name in golden["migrations"]:
                await connection.execute(migration.sql)
                await connection.execute(QUERIES["record_migration"], (migration.name,))
        await _langgraph_tables(connection)
        await connection.execute(QUERIES["record_migration"], (_langgraph(),))
        for table, rows in golden["tables"].items():
            for row in rows:
                await _insert(connection, table, row)


async def _insert(connection: psycopg.AsyncConnection[Any], table: str, row: dict[str, Any]) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(*table.split(".")),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() * len(row)),
    )
    await connection.execute(statement, [column(value) for value in row.values()])


@pytest.fixture(scope="session", params=DATABASES, ids=lambda file: file.name.removesuffix(".json.gz"))
def golden(request: pytest.FixtureRequest, postgres_url: str) -> str:
    """Name of a database as that version left it, which is only ever copied."""
    name = f"golden_{DATABASES.index(request.param)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    asyncio.run(restore(in_database(postgres_url, name), json.loads(gzip.decompress(request.param.read_bytes()))))
    return name


@pytest.fixture
def golden_url(postgres_url: str, golden: str) -> Iterator[str]:
    """A copy for one test."""
    yield from fresh_database(postgres_url, golden)


@pytest.fixture
async def agent(golden_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    """An agent of today on a database of then."""
    (tmp_path / "ledger.txt").touch()
    monkeypatch.setenv(LEDGER, str(tmp_path / "ledger.txt"))
    async with running(golden_url, tmp_path, [kit]) as opened:
        yield opened


def letters(folder: Path) -> list[str]:
    """What was sent by today's code."""
    return (folder / "ledger.txt").read_text("utf-8").splitlines()


def test_there_is_a_database_of_each_release() -> None:
    """The tests below read something."""
    released = {file.name.removesuffix(".json.gz") for file in DATABASES}
    assert "0.1.0" in released


async def test_a_thread_that_waited_for_a_person_goes_on_with_the_answer(agent: Agent, tmp_path: Path) -> None:
    """The question is there, its approval lets the step run once, and the run ends as it would have."""
    [asked] = (await agent.show("waiting")).approvals
    assert asked.args == {"text": "to ann!"}
    result = await agent.resume("waiting", decisions={asked.approval_id: Approve()})
    assert (result.status, result.answer) == ("done", "to ann! bob!")
    assert letters(tmp_path) == ["to ann!"]


async def test_a_thread_that_waited_for_a_person_takes_a_no(agent: Agent, tmp_path: Path) -> None:
    """A rejection holds across the upgrade: nothing is sent."""
    [asked] = (await agent.show("waiting")).approvals
    result = await agent.resume("waiting", decisions={asked.approval_id: Reject(message="no")})
    assert result.status == "failed"
    assert letters(tmp_path) == []


async def test_an_answer_in_the_graph_s_own_way_reaches_the_old_question(agent: Agent, tmp_path: Path) -> None:
    """A server resumes the thread by the interrupt that the old version has checkpointed."""
    from langgraph.types import Command

    config: Any = {"configurable": {"thread_id": "waiting"}}
    [interrupt] = (await agent.graph.aget_state(config)).interrupts
    answer = {interrupt.id: {"decisions": [{"type": "approve"}]}}
    ended = await agent.graph.ainvoke(Command(resume=answer), config)
    assert ended["status"] == "done"
    assert letters(tmp_path) == ["to ann!"]


async def test_an_effect_in_doubt_is_asked_about_and_not_repeated(agent: Agent, tmp_path: Path) -> None:
    """The old version died inside of a letter: whether it has left, a person says."""
    result = await agent.resume("doubt")
    [asked] = result.approvals
    assert (result.status, asked.kind, asked.step_id) == ("paused", "unknown_outcome", "s2")
    result = await agent.resume("doubt", decisions={asked.approval_id: Respond(message='{"sent": "yes"}')})
    assert (result.status, result.answer) == ("done", "dan!")
    assert letters(tmp_path) == []


async def test_a_run_that_stopped_at_a_limit_goes_on_with_a_higher_one(agent: Agent) -> None:
    """What was finished stays finished."""
    before = {step.id: step.output_ref for step in (await agent.show("limited")).steps if step.status == "done"}
    result = await agent.resume("limited", limits={"max_wall_s": 60})
    assert (result.status, result.answer) == ("done", "end!")
    assert before.items() <= {step.id: step.output_ref for step in result.steps}.items()


async def test_a_finished_run_is_shown_as_it_ended_and_its_thread_takes_a_new_goal(agent: Agent) -> None:
    """Answer, statuses and stored results are what they were."""
    shown = await agent.show("done")
    assert shown.status == "done"
    assert shown.answer is not None
    assert shown.answer.splitlines()[0] == "numbers [2, 4, 6]"
    assert {step.id: step.status for step in shown.steps} == {"s1": "done", "s2": "done", "s3": "skipped", "s4": "done"}
    letter = next(step.output_ref for step in shown.steps if step.id == "s4")
    assert json.loads(await agent.output("done", letter or "")) == {"sent": "numbers [2, 4, 6]"}
    again = await agent.run(plan=PLANS["limited"], thread_id="done")
    assert again.status == "done"


async def test_a_run_that_a_newer_version_has_worked_on_is_refused_and_left_alone(agent: Agent) -> None:
    """Journal rows, run and lease stay as they are; what is told names the version that is needed."""
    await agent.engine.database.execute(
        "INSERT INTO surestep.journal (run_id, fence, n, kind, body)"
        " SELECT run_id, 1000, 1, 'version', %s FROM surestep.runs WHERE thread_id = 'waiting'",
        (Jsonb({"journal_version": JOURNAL_VERSION + 1}),),
    )
    before = await agent.engine.database.fetch("SELECT count(*), max(fence) FROM surestep.journal")
    with pytest.raises(VersionTooNew, match=f"version {JOURNAL_VERSION + 1}"):
        await agent.show("waiting")
    with pytest.raises(VersionTooNew, match=f"version {JOURNAL_VERSION + 1}"):
        await agent.resume("waiting")
    assert before == await agent.engine.database.fetch("SELECT count(*), max(fence) FROM surestep.journal")
    [lease] = await agent.engine.database.fetch(
        "SELECT owner FROM surestep.leases JOIN surestep.runs USING (run_id) WHERE thread_id = 'waiting'"
    )
    assert lease["owner"] is None


async def test_a_row_of_an_unknown_kind_is_refused_not_passed_over(agent: Agent) -> None:
    """A picture with holes would be wrong."""
    await agent.engine.database.execute(
        "INSERT INTO surestep.journal (run_id, fence, n, kind, body)"
        " SELECT run_id, 1000, 1, 'teleported', '{}' FROM surestep.runs WHERE thread_id = 'waiting'"
    )
    with pytest.raises(VersionTooNew, match="teleported"):
        await agent.resume("waiting")


async def test_state_of_a_newer_version_is_refused_before_anything_opens(agent: Agent) -> None:
    """A server that resumes a thread whose checkpoint is from the future gets the error, and the question stays."""
    from langgraph.types import StateUpdate

    from graph.one_door import OneDoor

    assert isinstance(agent.graph, OneDoor)
    config: Any = {"configurable": {"thread_id": "waiting"}}
    newer = StateUpdate(values={"schema_version": 99}, as_node="dispatch")
    await super(OneDoor, agent.graph).abulk_update_state(config, [[newer]])
    with pytest.raises(VersionTooNew, match="schema_version 99"):
        await agent.graph.ainvoke(None, config)
    assert (await agent.engine.approvals.pending("waiting"))[0].step_id == "s2"
