"""Tombstones: no request begins a second run, however close its insert comes to the burial of the first."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from checkpoints.archive import Archive
from checkpoints.archive_reading import ArchiveReader
from checkpoints.artifacts import ArtifactStore
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.leases import Leases
from checkpoints.queries import QUERIES
from checkpoints.rows import Row
from checkpoints.runs import RunRecord, Runs
from checkpoints.tombstones import Tombstones, effects_of, hashed
from plans.errors import UsageError
from tests.checkpoints.scenes import add_run, blocked

LARGE = b"x" * 20_000


async def ended_run(database: Database, run_id: str = "r1", **columns: Any) -> RunRecord:
    """A run that is over since an hour."""
    record = await add_run(database, run_id)
    await database.execute(
        "UPDATE surestep.runs SET status = 'done', ended_at = clock_timestamp() - interval '1 hour' WHERE run_id = %s",
        (run_id,),
    )
    return record


async def archived(database: Database, folder: Path) -> list[str]:
    """The runs that an archive moves now."""
    async with Journal(database) as journal, Leases(database) as leases:
        artifacts, url = ArtifactStore(database, str(folder / "artifacts")), str(folder / "archive")
        archive = Archive(database, journal, leases, artifacts, "me", url, lambda record, rows: {})
        return [run.run_id for run in (await archive.run(older_than_s=0)).archived]


def burial(record: RunRecord, fence: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the two statements of a burial are given."""
    thread = {"thread_id": record.thread_id}
    return (
        {**thread, "requests": [hashed(record.request_id)]},
        {**thread, "run_id": record.run_id, "fence": fence, "effects": "{}"},
    )


async def begun(database: Database, record: RunRecord) -> None:
    """An archive of the run was begun, by an owner with fence 1."""
    await database.execute(
        QUERIES["begin_archive"],
        {
            "run_id": record.run_id, "place": "/p", "folder": "f", "request_sha256": hashed(record.request_id),
            "thread_sha256": hashed(record.thread_id),
        },
    )  # fmt: skip
    await database.execute("UPDATE surestep.leases SET owner = 'me', fence = 1")


async def test_a_request_that_comes_during_the_burial_finds_the_tombstone(database: Database) -> None:
    """Its insert waits for the burial, sees the tombstone that was committed meanwhile, and begins no second run."""
    record = await ended_run(database)
    await begun(database, record)
    locks, wanted = burial(record)
    again = record.model_copy(update={"run_id": "r2", "thread_id": "another thread", "status": "running"})
    async with await psycopg.AsyncConnection.connect(database.url) as other:
        await other.execute(QUERIES["lock_for_burial"], locks)
        await other.execute(QUERIES["bury_run"], wanted)
        asking = asyncio.create_task(Runs(database).create(again))
        await blocked(database)
        assert not asking.done()
        await other.commit()
    found = await asking
    assert (found.run_id, found.archived is not None) == ("r1", True)
    assert await database.fetch("SELECT run_id FROM surestep.runs") == []


async def test_a_run_that_begins_on_the_thread_first_keeps_it_from_being_buried(database: Database) -> None:
    """The burial waits for the insert of a new run on the thread, sees it, and leaves everything as it is."""
    record = await ended_run(database)
    await begun(database, record)
    locks, wanted = burial(record)
    async with await psycopg.AsyncConnection.connect(database.url) as other:
        await other.execute(
            "INSERT INTO surestep.runs (run_id, thread_id, request_id, goal, input, input_sha256)"
            " VALUES ('new', %s, 'new', 'a goal', '{}', '')",
            (record.thread_id,),
        )
        burying = asyncio.create_task(
            database.together([(QUERIES["lock_for_burial"], locks), (QUERIES["bury_run"], wanted)])
        )
        await blocked(database)
        await other.commit()
    assert (await burying)[1] == []
    assert len(await database.fetch("SELECT run_id FROM surestep.runs")) == 2


async def test_a_burial_with_an_old_fence_does_nothing(database: Database) -> None:
    """An archive that was away too long, and was taken over, deletes nothing and leaves no tombstone."""
    record = await ended_run(database)
    await begun(database, record)
    locks, wanted = burial(record, fence=0)
    assert (await database.together([(QUERIES["lock_for_burial"], locks), (QUERIES["bury_run"], wanted)]))[1] == []
    assert await Tombstones(database).of_run("r1") is None
    assert len(await database.fetch("SELECT run_id FROM surestep.runs")) == 1


async def test_an_archive_that_was_only_begun_changes_nothing_for_its_request(database: Database) -> None:
    """Until the rows are gone the run is what counts."""
    record = await ended_run(database)
    await begun(database, record)
    found = await Runs(database).create(record)
    assert (found.run_id, found.archived) == ("r1", None)


async def test_the_request_of_an_archived_run_is_known_by_all_its_names(database: Database, tmp_path: Path) -> None:
    """By request, by thread and by run; the same input gives the run, another is refused; tenants are apart."""
    record = await ended_run(database)
    assert await archived(database, tmp_path) == ["r1"]
    runs = Runs(database)
    for found in (await runs.by_request(record.request_id), await runs.latest(record.thread_id)):
        assert found is not None
        assert (found.run_id, found.status, found.thread_id) == ("r1", "done", record.thread_id)
    assert (await runs.create(record)).archived is not None
    with pytest.raises(UsageError, match="another goal or other inputs"):
        await runs.create(record.model_copy(update={"input_sha256": "", "goal": "another"}))
    theirs = record.model_copy(update={"tenant": "b", "run_id": "r2", "input_sha256": ""})
    with pytest.raises(UsageError, match="cannot be used here"):  # a thread stays its tenant's
        await runs.create(theirs)
    assert (await runs.create(theirs.model_copy(update={"thread_id": "another"}))).run_id == "r2"
    assert await Tombstones(database).archived() == 1


async def test_a_moved_archive_is_read_where_it_is_now(database: Database, tmp_path: Path) -> None:
    """A folder that was copied elsewhere is found once the settings say so."""
    await ended_run(database)
    await archived(database, tmp_path)
    (tmp_path / "archive").rename(tmp_path / "moved")
    stone = await Tombstones(database).of_run("r1")
    assert stone is not None
    assert await ArchiveReader(str(tmp_path / "moved")).rows(stone) == []


def test_what_outlives_is_read_from_intents_and_rejections() -> None:
    """The keys under which something may have happened, and the calls that a person has refused; nothing else."""
    rows = [
        Row("r", 1, 1, "intent", "s1", 1, {"key": "k2", "args": {"to": "ann"}}),
        Row("r", 1, 2, "intent", "s1", 2, {"key": "k1", "args": {}}),
        Row("r", 1, 3, "decision", "s2", 1, {"call": "send|1", "kind": "risk", "decision": {"type": "reject"}}),
        Row("r", 1, 4, "decision", "s3", 1, {"call": "send|2", "kind": "risk", "decision": {"type": "approve"}}),
        Row("r", 1, 5, "decision", "s4", 1, {"kind": "unknown_outcome", "decision": {"type": "reject"}}),
    ]
    assert effects_of(rows) == {"keys": ["k1", "k2"], "rejected": ["send|1"]}
