"""An archive or an erasure is killed at each of its points; the next one ends with the same as one that was not."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoints import archive_files as layout
from checkpoints.crash_points import KEEPING
from graph.archiving import archive_of
from graph.gateway import Agent
from plans.errors import UnknownThread, UsageError
from tests.graph.keeping import PLAN, files_below, kit, left
from tests.recovery.keeper import THREAD, Keeper
from tests.running import running

FILES = 8
"""Files of the run's archive without its manifest."""
ARCHIVING = [
    *(("archive.file_written", nth) for nth in (1, FILES)),
    ("archive.begun", 1),
    ("archive.manifest_written", 1),
    ("archive.rows_deleted", 1),
    ("archive.file_deleted", 1),
]
ERASING = [
    ("erasure.archives_deleted", False),
    ("erasure.archives_deleted", True),
    ("erasure.rows_deleted", False),
    ("erasure.rows_deleted", True),
    ("archive.file_deleted", False),
]
"""Points, and whether the run is in the archive then: if so it has no files of its own any more."""


@pytest.fixture(scope="module")
def keeper() -> Iterator[Keeper]:
    """The process that forks archives and erasures."""
    with Keeper() as forking:
        yield forking


async def expected_files(agent: Agent, run_id: str) -> dict[str, bytes]:
    """The archive of a run, as its rows say it will be."""
    record = await agent.engine.runs.get(run_id)
    assert record is not None
    rows = await agent.engine.journal.read(run_id)
    contents = archive_of(agent.engine, None).contents(record, rows)
    files = {path: body async for path, body in contents}
    folder = layout.folder_of(record)
    told = {path: layout.measured(body) for path, body in files.items()}
    return {
        f"{folder}/{path}": body for path, body in {**files, layout.MANIFEST: layout.manifest(run_id, told)}.items()
    }


def opened(url: str, folder: Path) -> Any:
    """An agent of this process."""
    return running(url, folder, [kit])


@pytest.mark.parametrize(("point", "nth"), ARCHIVING)
async def test_an_archive_killed_anywhere_is_the_same_when_it_is_run_again(
    keeper: Keeper, database_url: str, tmp_path: Path, point: str, nth: int
) -> None:
    """The run can be looked at all the time; afterwards every file is as it should be, and nothing else is left."""
    async with opened(database_url, tmp_path) as agent:
        first = await agent.run(plan=PLAN, thread_id=THREAD, request_id="q1")
        expected = await expected_files(agent, first.run_id)
    assert len(expected) == FILES + 1
    died = await asyncio.to_thread(keeper.run, database_url, tmp_path, "archive", point, nth)
    assert died == -signal.SIGKILL
    async with opened(database_url, tmp_path) as agent:
        shown = await agent.show(THREAD)
        assert shown.model_copy(update={"archived": None}) == first
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "archive") == 0
    assert files_below(tmp_path / "surestep/archive") == expected
    assert files_below(tmp_path / "surestep/artifacts") == {}
    async with opened(database_url, tmp_path) as agent:
        assert await left(agent) == {}
        again = await agent.run(plan=PLAN, request_id="q1")
        assert again.model_copy(update={"archived": None}) == first


async def test_trimming_killed_in_the_middle_goes_on(keeper: Keeper, database_url: str, tmp_path: Path) -> None:
    """Threads that were trimmed stay so, and the others are next."""
    async with opened(database_url, tmp_path) as agent:
        for thread in ("a", "b"):
            await agent.run(plan=PLAN, thread_id=thread)
        await agent.engine.database.execute("UPDATE surestep.runs SET ended_at = ended_at - interval '2 hours'")
        assert (await asyncio.to_thread(keeper.run, database_url, tmp_path, "trim", "archive.thread_trimmed")) < 0
        assert (await left(agent))["checkpoints"] > 2
        assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "trim") == 0
        assert (await left(agent))["checkpoints"] == 2


@pytest.mark.parametrize(("point", "archived"), ERASING)
async def test_an_erasure_killed_anywhere_ends_with_nothing_left(
    keeper: Keeper, database_url: str, tmp_path: Path, point: str, archived: bool
) -> None:
    """Killed at any point it is run again, and then there is no row and no file, and the request is recognised."""
    async with opened(database_url, tmp_path) as agent:
        await agent.run(plan=PLAN, thread_id=THREAD, request_id="q1")
    if archived:
        assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "archive") == 0
    assert (await asyncio.to_thread(keeper.run, database_url, tmp_path, "erase", point)) == -signal.SIGKILL
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "erase") == 0
    assert files_below(tmp_path / "surestep/archive") == {}
    assert files_below(tmp_path / "surestep/artifacts") == {}
    async with opened(database_url, tmp_path) as agent:
        assert await left(agent) == {}
        with pytest.raises(UnknownThread, match="was erased"):
            await agent.show(THREAD)
        with pytest.raises(UsageError, match="was erased"):
            await agent.run(plan=PLAN, request_id="q1")


async def test_an_erasure_takes_an_archive_along_that_was_only_begun(
    keeper: Keeper, database_url: str, tmp_path: Path
) -> None:
    """Files of a killed archive are no leftovers: the erasure knows where they are."""
    async with opened(database_url, tmp_path) as agent:
        await agent.run(plan=PLAN, thread_id=THREAD)
    assert (await asyncio.to_thread(keeper.run, database_url, tmp_path, "archive", "archive.file_written", 3)) < 0
    assert files_below(tmp_path / "surestep/archive")
    assert await asyncio.to_thread(keeper.run, database_url, tmp_path, "erase") == 0
    assert files_below(tmp_path / "surestep/archive") == {}


def test_every_point_is_one_that_somebody_is_killed_at() -> None:
    """No point of archive or erasure is left out."""
    assert {point for point, _ in (*ARCHIVING, *ERASING)} | {"archive.thread_trimmed"} == set(KEEPING)
