"""The saver: LangGraph's own conformance suite, no process-wide lock, and state that never comes back with a hole."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.conformance import validate
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from checkpoints.artifacts import ArtifactStore
from checkpoints.connections import Connections
from checkpoints.database import Database, open_database
from checkpoints.saver import PostgresSaver, open_saver
from checkpoints.serializer import ALLOWED, StateSerializer
from nodes.state import CHECKPOINTED
from plans.errors import VersionTooNew
from plans.limits import Limits
from tests.checkpoints.runs_table import add_run
from tests.checkpoints.scenes import blocked


@pytest.fixture
async def saver(database: Database) -> AsyncIterator[PostgresSaver]:
    """An open saver."""
    async with PostgresSaver(database) as opened:
        yield opened


async def test_the_saver_passes_langgraphs_conformance_suite(database: Database) -> None:
    """Every capability LangGraph and its server ask of a saver is there and behaves: eight of eight."""

    async def saver() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        async with PostgresSaver(database) as opened:
            yield opened

    report = await validate(RegisteredCheckpointer("PostgresSaver", saver))
    results = {name: (result.passed, result.failures) for name, result in report.results.items()}
    assert results == dict.fromkeys(results, (True, []))
    assert len(results) == 8


async def test_a_load_does_not_wait_for_a_save_that_is_stuck(database: Database) -> None:
    """Loads and saves share no lock: a save that waits in the database holds up saves, and no load."""
    async with PostgresSaver(database) as saver:
        stuck = _checkpoint("stuck")
        await saver.aput(_config("stuck"), stuck, {}, {})
        async with database.pool.connection() as connection, connection.transaction():
            await connection.execute("SELECT 1 FROM checkpoints WHERE thread_id = 'stuck' FOR UPDATE")
            waiting = asyncio.create_task(saver.aput(_config("stuck"), stuck, {}, {}))
            await blocked(database)
            assert await asyncio.wait_for(saver.aget_tuple(_config("stuck")), timeout=5) is not None
            assert not waiting.done()
        await asyncio.wait_for(waiting, timeout=5)


async def test_a_checkpoint_is_saved_whole_or_not_at_all(database: Database, saver: PostgresSaver) -> None:
    """Values and the checkpoint that names them commit together: a save that fails leaves nothing behind."""
    checkpoint = _checkpoint("x", values={"plan": ["a"], "note": "nul\x00"})
    with pytest.raises(Exception, match="Unicode"):
        await saver.aput(_config("x"), checkpoint, {}, {"plan": "1"})
    assert await database.fetch("SELECT * FROM checkpoint_blobs") == []


async def test_deleting_a_run_keeps_the_values_that_other_runs_still_use(
    database: Database, saver: PostgresSaver
) -> None:
    """Only what no kept checkpoint refers to goes with a run that is rolled back."""
    first = _checkpoint("t", values={"plan": ["kept"]}, versions={"plan": "1"})
    kept = await saver.aput(_config("t"), first, {"run_id": "one"}, {"plan": "1"})
    second = _checkpoint("t", values={"plan": ["kept"], "more": ["gone"]}, versions={"plan": "1", "more": "2"})
    await saver.aput(kept, second, {"run_id": "two"}, {"more": "2"})

    await saver.adelete_for_runs(["two"])

    assert [row["channel"] for row in await database.fetch("SELECT channel FROM checkpoint_blobs")] == ["plan"]
    loaded = await saver.aget_tuple(_config("t"))
    assert loaded is not None
    assert loaded.checkpoint["channel_values"] == {"plan": ["kept"]}


async def test_a_copied_thread_reads_like_its_source_and_lives_on_its_own(
    database: Database, saver: PostgresSaver
) -> None:
    """A copy carries values and metadata under its own name, and deleting the source leaves it whole."""
    checkpoint = _checkpoint("a", values={"plan": ["v"]}, versions={"plan": "1"})
    stored = await saver.aput(_config("a"), checkpoint, {"thread_id": "a"}, {"plan": "1"})  # type: ignore[typeddict-unknown-key]  # the server adds it
    await saver.aput_writes(stored, [("plan", ["next"])], "task")

    await saver.acopy_thread("a", "b")
    await saver.adelete_thread("a")

    copy = await saver.aget_tuple(_config("b"))
    assert copy is not None
    assert copy.checkpoint["channel_values"] == {"plan": ["v"]}
    assert copy.pending_writes == [("task", "plan", ["next"])]
    assert dict(copy.metadata)["thread_id"] == "b"
    assert await saver.aget_tuple(_config("a")) is None


def test_every_type_that_state_may_hold_is_allowed_and_is_where_its_name_says() -> None:
    """The names in stored bytes and the classes of the code are the same; a moved class would be a hole in state."""
    assert set(ALLOWED) == {(kind.__module__, kind.__name__) for kind in CHECKPOINTED}
    assert all(isinstance(getattr(importlib.import_module(module), name), type) for module, name in ALLOWED)


def test_an_allowed_type_comes_back_equal() -> None:
    """Round trip of a value of ours, inside a container."""
    serializer = StateSerializer()
    value = {"limits": Limits(max_steps=7)}
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [{"deep": value}]], ids=["itself", "nested"])
def test_a_type_that_is_not_allowed_is_an_error_not_a_dict(wrap: Any) -> None:
    """What this code may not make is refused by name, wherever it stands in the bytes."""
    stored = JsonPlusSerializer().dumps_typed(wrap(Limits()))
    with pytest.raises(VersionTooNew, match=r"plans\.limits\.Limits"):
        StateSerializer(allowed=()).loads_typed(stored)


def test_a_refusal_does_not_stick_to_the_next_value() -> None:
    """One unreadable checkpoint does not make others unreadable."""
    serializer = StateSerializer(allowed=())
    with pytest.raises(VersionTooNew):
        serializer.loads_typed(JsonPlusSerializer().dumps_typed(Limits()))
    assert serializer.loads_typed(serializer.dumps_typed([1])) == [1]


async def test_the_server_finds_the_database_of_the_environment(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`open_saver` takes no arguments: SURESTEP_DATABASE_URL says where, as it does for the command line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURESTEP_DATABASE_URL", database_url)
    async with open_saver() as saver:
        await saver.aput(_config("x"), _checkpoint("x"), {}, {})
        assert await saver.aget_tuple(_config("x")) is not None


async def test_nothing_on_the_way_blocks_the_servers_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    """A LangGraph server fails a run for one blocking call: opening, migrating, saving and artifacts make none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURESTEP_DATABASE_URL", database_url)
    with blockbuster_ctx():
        async with open_saver() as saver, open_database(None, tmp_path / "embedded") as database:
            await saver.aput(_config("x"), _checkpoint("x"), {}, {})
            await add_run(database, "r1")
            store = ArtifactStore(database, str(tmp_path / "artifacts"))
            stored = await store.put("r1", b"x" * 100_000, "text/plain")
            assert len(await store.get("r1", stored.output_ref)) == 100_000
            async with Connections(database) as connections:
                assert await connections.read_only().fetch("SELECT 1 AS one") == [{"one": 1}]


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def _checkpoint(
    thread_id: str, values: dict[str, Any] | None = None, versions: dict[str, str] | None = None
) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values or {"thread": thread_id}
    checkpoint["channel_versions"] = dict(versions or {})
    return checkpoint
