"""Erasure: nothing of a thread can be found afterwards, anywhere, and its requests are still recognised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from graph.gateway import Agent
from plans.errors import RunBusy, UnknownThread, UsageError
from tests.graph.conftest import OpenAgent
from tests.graph.keeping import QUESTION, kit, left
from tests.running import plan, step

SECRET = "jane.doe.5219"
PERSONAL = plan(
    step("s1", "text", args={"size": 2_000, "letter": SECRET}),
    step("s2", "send", "s1", args={"to": SECRET}),
    goal=f"write to {SECRET}",
    answer=f"{SECRET} was told",
)


@pytest.fixture
async def agent(agent_on: OpenAgent) -> Agent:
    opened: Agent = await agent_on([kit])
    return opened


def traces_in(url: str) -> Iterator[str]:
    """The tables of the database in which the secret stands, in whatever column."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'surestep')"
        ).fetchall()
        for schema, table in tables:
            name = sql.Identifier(schema, table)
            for (row,) in connection.execute(sql.SQL("SELECT t::text FROM {} AS t").format(name)):
                if SECRET in row or SECRET.encode().hex() in row:
                    yield table


def traces_below(folder: Path) -> list[str]:
    """The files and folders that have the secret in them, or in their name."""
    found = [path for path in folder.rglob("*") if SECRET in str(path.relative_to(folder))]
    return [str(path) for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] + [
        str(path) for path in found
    ]


@pytest.mark.parametrize("where", ["in the database", "in the archive", "in an archive elsewhere", "in both"])
async def test_nothing_of_an_erased_thread_is_found_anywhere(
    agent: Agent, database_url: str, tmp_path: Path, where: str
) -> None:
    """The secret was in goal, inputs, results, thread and request; after the erasure it is in no row and no file."""
    result = await agent.run(plan=PERSONAL, thread_id=f"of {SECRET}", request_id=f"for {SECRET}")
    (agent.engine.options.output / result.run_id).mkdir(parents=True)
    (agent.engine.options.output / result.run_id / "report.html").write_text(SECRET)
    if where != "in the database":
        elsewhere = str(tmp_path / "elsewhere") if where == "in an archive elsewhere" else None
        assert len((await agent.archive(older_than=0, to=elsewhere)).archived) == 1
    if where == "in both":
        await agent.run(plan=PERSONAL, thread_id=f"of {SECRET}", request_id=f"again for {SECRET}")
    assert traces_below(tmp_path)
    assert list(traces_in(database_url))
    report = await agent.erase(f"of {SECRET}")
    assert report.runs[0] == result.run_id
    assert (len(report.runs), report.archived) == (2 if where == "in both" else 1, int(where != "in the database"))
    assert traces_below(tmp_path) == []
    assert list(traces_in(database_url)) == []
    assert await left(agent) == {}


@pytest.mark.parametrize("archived", [False, True])
async def test_kept_results_go_with_the_thread_that_asked_for_them_and_others_stay(
    agent: Agent, archived: bool
) -> None:
    """What a run of another thread has asked for is its own, and is not asked for again because of this."""
    for thread_id, letter in (("t", SECRET), ("u", "somebody else")):
        await agent.run(plan=plan(step("s1", "kept", args={"letter": letter})), thread_id=thread_id)
    if archived:
        await agent.archive(older_than=0)
    await agent.erase("t")
    found = await agent.engine.database.fetch("SELECT value FROM surestep.tool_cache")
    assert [row["value"] for row in found] == ["somebody else"]


async def test_an_erased_request_is_recognised_and_not_run_again(agent: Agent) -> None:
    """Whoever sends it again is told that it was erased, by the library and by the graph; no run begins."""
    await agent.run(plan=PERSONAL, thread_id="t", request_id="q1")
    await agent.erase("t")
    with pytest.raises(UsageError, match=r"was erased on .* choose another request id"):
        await agent.run(plan=PERSONAL, request_id="q1")
    given: Any = {"goal": "again", "plan": PERSONAL, "request_id": "q1"}
    with pytest.raises(UsageError, match="was erased on"):
        await agent.graph.ainvoke(given, {"configurable": {"thread_id": "u"}})
    with pytest.raises(UnknownThread, match="was erased"):
        await agent.show("t")
    assert (await left(agent)).get("runs") is None


async def test_an_erasure_again_is_no_change_and_an_unknown_thread_is_told(agent: Agent) -> None:
    """The second time there is nothing left to do; a thread that never was is a mistake."""
    await agent.run(plan=PERSONAL, thread_id="t")
    first = await agent.erase("t")
    again = await agent.erase("t")
    assert (again.runs, again.files_deleted, first.files_deleted) == (first.runs, 0, 1)
    with pytest.raises(UnknownThread, match="nothing to erase"):
        await agent.erase("never")


async def test_a_run_that_may_go_on_is_cancelled_first(agent: Agent) -> None:
    """A thread with an open run is refused with what to do, and nothing of it is touched."""
    await agent.run(plan=PERSONAL, thread_id="t")
    await agent.run(plan=QUESTION, thread_id="t")
    before = await left(agent)
    with pytest.raises(UsageError, match="surestep cancel t"):
        await agent.erase("t")
    assert await left(agent) == before


async def test_a_run_that_somebody_holds_is_left_whole(agent: Agent) -> None:
    """While another process has the lease nothing is erased; afterwards everything is."""
    result = await agent.run(plan=PERSONAL, thread_id="t")
    lease = await agent.engine.leases.acquire(result.run_id, "somebody")
    before = await left(agent)
    with pytest.raises(RunBusy):
        await agent.erase("t")
    assert await left(agent) == before
    await agent.engine.leases.release(lease)
    await agent.erase("t")
    assert await left(agent) == {}


@pytest.mark.parametrize("archived", [False, True], ids=["in the database", "in the archive"])
async def test_a_fork_is_erased_before_its_parent(agent: Agent, tmp_path: Path, archived: bool) -> None:
    """A fork holds its parent's results: it is named, and once it is erased the parent can be."""
    await agent.run(plan=PERSONAL, thread_id="t")
    await agent.fork("t", "s2", new_thread_id="u")
    if (await agent.show("u")).status == "paused":
        await agent.cancel("u")
    if archived:
        assert len((await agent.archive(older_than=0)).archived) == 2
    before = await left(agent)
    with pytest.raises(UsageError, match=r"hold results of it: u \(run .*surestep archive --erase u"):
        await agent.erase("t")
    assert await left(agent) == before
    await agent.erase("u")
    await agent.erase("t")
    assert await left(agent) == {}
    assert traces_below(tmp_path) == []


async def test_the_tombstone_keeps_the_keys_of_effects_and_no_name(agent: Agent) -> None:
    """Under which keys the run may have acted can be answered after the erasure; whom it was about cannot."""
    await agent.run(plan=PERSONAL, thread_id="t", request_id="q1")
    await agent.erase("t")
    [stone] = await agent.engine.tombstones.of_thread("t")
    assert (stone.request_id, stone.thread_id, stone.input_sha256, stone.place, stone.folder) == (None,) * 5
    assert (len(stone.effects["keys"]), stone.status) == (1, "done")


async def test_the_same_bytes_of_another_thread_stay(agent: Agent, tmp_path: Path) -> None:
    """A file that another run refers to is not this thread's alone."""
    await agent.run(plan=PERSONAL, thread_id="t")
    other = await agent.run(plan=PERSONAL, thread_id="u")
    assert (await agent.erase("t")).files_deleted == 0
    reference = other.steps[0].output_ref
    assert reference is not None
    assert SECRET.encode() in await agent.output("u", reference)
    assert (await agent.erase("u")).files_deleted == 1
    assert traces_below(tmp_path) == []
