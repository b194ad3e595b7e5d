"""Bodies too large for a row of the journal: stored before the row, and given back whole to whoever reads it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from checkpoints.artifacts import INLINE_BYTES, ArtifactStore
from checkpoints.bodies import is_large
from checkpoints.database import Database
from checkpoints.journal import Journal
from plans.errors import StorageUnavailable
from plans.values import JSON
from tests.checkpoints.scenes import a_row, owned_run

LARGE: dict[str, JSON] = {"text": "é" * 100_000, "numbers": [1, 1.0, 1e300, 2**63 - 1]}


async def in_table(database: Database) -> list[JSON]:
    """The bodies as the journal's table has them."""
    return [row["body"] for row in await database.fetch("SELECT body FROM surestep.journal ORDER BY n")]


async def test_a_large_body_is_an_artifact_and_reads_back_whole(database: Database, tmp_path: Path) -> None:
    """The row holds a reference of a hundred bytes; who reads the journal, or looks for the row, gets the body."""
    await owned_run(database)
    store = ArtifactStore(database, str(tmp_path / "files"))
    async with Journal(database, store) as journal:
        for row in (first := a_row(1), large := a_row(2, body=LARGE)):
            await journal.append(row)
        assert await journal.read("r1") == [first, large]
        assert await journal.find("r1", 1, 2) == large
        small, reference = await in_table(database)
    assert small == {"n": 1}
    assert list(reference) == ["$artifact"]
    async with Journal(database) as without:
        with pytest.raises(RuntimeError, match="row 2 of run r1 is an artifact"):
            await without.read("r1")


async def test_a_row_is_not_queued_before_its_body_is_stored_nor_overtaken_meanwhile(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a disk hangs on a large body, later rows of the run wait behind it."""
    await owned_run(database)
    store = ArtifactStore(database, str(tmp_path / "files"))
    writing, go_on = threading.Event(), threading.Event()
    write = store._files.write

    def slow(sha256: str, body: bytes) -> None:
        writing.set()
        go_on.wait(10)
        write(sha256, body)

    monkeypatch.setattr(store._files, "write", slow)
    async with Journal(database, store) as journal:
        large = asyncio.create_task(journal.append(a_row(1, body=LARGE)))
        assert await asyncio.to_thread(writing.wait, 10)
        later = asyncio.create_task(journal.append(a_row(2)))
        await asyncio.sleep(0.05)
        assert await in_table(database) == []
        go_on.set()
        await asyncio.gather(large, later)
        assert [row.n for row in await journal.read("r1")] == [1, 2]


async def test_a_body_that_cannot_be_kept_stops_its_run(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full folder refuses the row and all that come after it: the journal never has a hole."""
    await owned_run(database)
    await owned_run(database, "other")
    store = ArtifactStore(database, str(tmp_path / "files"))

    def full(sha256: str, body: bytes) -> None:
        raise StorageUnavailable(f"no room for {len(body)} bytes of {sha256}")

    monkeypatch.setattr(store._files, "write", full)
    async with Journal(database, store) as journal:
        for row in (a_row(1, body=LARGE), a_row(2)):
            with pytest.raises(StorageUnavailable, match="no room"):
                await journal.append(row)
        await journal.append(a_row(1, "other"))
        assert await journal.read("r1") == []


def test_bytes_are_counted_not_characters() -> None:
    """16 KiB of text are the most that a row holds, whatever the alphabet."""
    assert not is_large("x" * INLINE_BYTES)
    assert is_large("x" * (INLINE_BYTES + 1))
    assert not is_large("é" * (INLINE_BYTES // 2))
    assert is_large("é" * (INLINE_BYTES // 2 + 1))
