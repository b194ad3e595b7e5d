"""Artifacts: nothing is named that is not stored, nothing comes back that was changed, and no name leads outside."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from s3fs import S3FileSystem  # type: ignore[import-untyped]  # it has none

from checkpoints.artifact_files import LocalFolder, files_at, place_of
from checkpoints.artifacts import INLINE_BYTES, Artifact, ArtifactStore
from checkpoints.database import Database
from plans.errors import ArtifactMissing, StorageUnavailable
from tests.checkpoints.runs_table import add_run

LARGE = b"x" * (INLINE_BYTES + 1)


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> ArtifactStore:
    await add_run(database, "r1")
    return ArtifactStore(database, str(tmp_path / "artifacts"))


@pytest.mark.parametrize("size", [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 3_000_000])
async def test_what_is_stored_comes_back_byte_for_byte(store: ArtifactStore, size: int) -> None:
    """Bodies of every size round trip, and `describe` tells beforehand what `put` will answer."""
    body = os.urandom(size)
    stored = await store.put("r1", body, "application/json")
    assert stored == ArtifactStore.describe(body, "application/json")
    assert stored.size == size
    assert await store.get("r1", stored.output_ref) == body


async def test_small_bodies_are_in_the_database_and_large_ones_in_a_file(store: ArtifactStore, tmp_path: Path) -> None:
    """16 KiB is the border: up to it no file is made, above it the database holds no bytes."""
    await store.put("r1", b"s" * INLINE_BYTES, "text/plain")
    assert not (tmp_path / "artifacts").exists()
    large = await store.put("r1", LARGE, "text/plain")
    assert (tmp_path / "artifacts" / place_of(large.sha256)).read_bytes() == LARGE
    rows = await store._database.fetch("SELECT body FROM surestep.artifacts WHERE location IS NOT NULL")
    assert rows == [{"body": None}]


async def test_the_same_bytes_twice_are_one_artifact(store: ArtifactStore) -> None:
    """A repeated put, as after a crash, changes nothing and answers the same."""
    assert await store.put("r1", LARGE, "text/csv") == await store.put("r1", LARGE, "text/csv")
    assert len(await store._database.fetch("SELECT 1 FROM surestep.artifacts")) == 1


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["in the database", "in a file"])
async def test_changed_bytes_are_not_handed_out(store: ArtifactStore, tmp_path: Path, body: bytes) -> None:
    """`get` checks the hash: a result that was altered where it lies is missing, not different."""
    stored = await store.put("r1", body, "text/plain")
    if stored.inline:
        await store._database.execute("UPDATE surestep.artifacts SET body = 'other'")
    else:
        (tmp_path / "artifacts" / place_of(stored.sha256)).write_bytes(body + b"!")
    with pytest.raises(ArtifactMissing, match="was changed"):
        await store.get("r1", stored.output_ref)


async def test_a_deleted_file_is_a_missing_artifact(store: ArtifactStore, tmp_path: Path) -> None:
    """A file somebody removed is told by its path."""
    stored = await store.put("r1", LARGE, "text/plain")
    (tmp_path / "artifacts" / place_of(stored.sha256)).unlink()
    with pytest.raises(ArtifactMissing, match="is gone"):
        await store.get("r1", stored.output_ref)


async def test_a_result_belongs_to_its_run(store: ArtifactStore, database: Database) -> None:
    """Another run cannot read a result by guessing its reference."""
    await add_run(database, "r2")
    stored = await store.put("r1", b"secret", "text/plain")
    with pytest.raises(ArtifactMissing, match="r2"):
        await store.get("r2", stored.output_ref)


@pytest.mark.parametrize(
    "reference", ["../../etc/passwd", "/etc/passwd", "sha256-..", "", "sha256-" + "0" * 64, "a\\b"]
)
async def test_no_reference_leads_outside_the_folder(store: ArtifactStore, reference: str) -> None:
    """A reference is looked up, never opened: whatever it says, it is a known result or none."""
    with pytest.raises(ArtifactMissing):
        await store.get("r1", reference)


async def test_a_row_that_names_another_place_is_not_followed(
    store: ArtifactStore, database: Database, tmp_path: Path
) -> None:
    """Even a location planted in the database opens no file: names are made from the hash alone."""
    (tmp_path / "secret").write_bytes(b"secret")
    stored = await store.put("r1", LARGE, "text/plain")
    await database.execute("UPDATE surestep.artifacts SET location = '../secret', sha256 = '../../secret'")
    with pytest.raises(ArtifactMissing, match="another hash"):
        await store.get("r1", stored.output_ref)


@given(st.text())
def test_only_a_hash_makes_a_place(name: str) -> None:
    """Every text that is not a SHA-256 is refused as a name."""
    with pytest.raises(ValueError, match="64 hex digits"):
        place_of(name)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
async def test_a_disk_that_fails_is_told_by_the_folders_name_and_leaves_no_row(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A full, read-only or broken disk is StorageUnavailable; no artifact is recorded, and no part of a file stays."""

    def fails(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StorageUnavailable, match=str(tmp_path / "artifacts")) as caught:
        await store.put("r1", LARGE, "text/plain")
    assert os.strerror(number) in str(caught.value)
    assert await store._database.fetch("SELECT 1 FROM surestep.artifacts") == []
    assert [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()] == []


def test_a_really_full_disk_is_told_in_plain_words(tmp_path: Path, small_disk: Path) -> None:
    """On a file system of 1 MB, 2 MB are refused with its name, and 100 KB still fit afterwards."""
    folder = LocalFolder(small_disk / "artifacts")
    big = os.urandom(2_000_000)
    with pytest.raises(StorageUnavailable, match="No space left"):
        folder.write(Artifact.of(big, "x").sha256, big)
    fits = os.urandom(100_000)
    folder.write(Artifact.of(fits, "x").sha256, fits)
    assert folder.read(Artifact.of(fits, "x").sha256) == fits


def test_the_file_then_its_name_then_the_folder_are_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes reach the disk before the name does, and the name before `write` returns: a power cut loses neither."""
    events: list[str] = []
    sync, replace = os.fsync, Path.replace

    def seen_sync(handle: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def seen_replace(self: Path, target: Path) -> Path:
        events.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", seen_sync)
    monkeypatch.setattr(Path, "replace", seen_replace)
    folder = LocalFolder(tmp_path / "new" / "artifacts")
    folder.write(Artifact.of(b"1", "x").sha256, b"1")
    assert events == ["folder", "folder", "folder", "file", "name", "folder"]


async def test_no_row_is_written_before_the_file_is_durable(
    store: ArtifactStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds the row finds the file: while the bytes are on their way, the database knows nothing."""
    sync = os.fsync

    def slow(handle: int) -> None:
        time.sleep(0.1)
        sync(handle)

    monkeypatch.setattr(os, "fsync", slow)
    putting = asyncio.create_task(store.put("r1", LARGE, "text/plain"))
    await asyncio.sleep(0.05)
    assert await database.fetch("SELECT 1 FROM surestep.artifacts") == []
    await putting
    assert len(await database.fetch("SELECT 1 FROM surestep.artifacts")) == 1


async def test_a_slow_disk_does_not_stop_the_event_loop(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written in threads: other work goes on while a disk is slow."""
    monkeypatch.setattr(os, "fsync", lambda _handle: time.sleep(0.2))
    putting = asyncio.create_task(store.put("r1", LARGE, "text/plain"))
    longest, before = 0.0, time.monotonic()
    while not putting.done():
        await asyncio.sleep(0.005)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    assert longest < 0.15


def test_the_local_folder_may_be_a_path_or_a_file_url(tmp_path: Path) -> None:
    """`file://` with escapes and a plain path name the same folder."""
    body = b"1"
    sha256 = Artifact.of(body, "x").sha256
    files_at(str(tmp_path / "a b")).write(sha256, body)
    assert files_at((tmp_path / "a b").as_uri()).read(sha256) == body


@pytest.fixture
def bucket(s3_server: None, request: pytest.FixtureRequest) -> str:
    """URL of a place in a bucket, for one test."""
    return f"s3://results/{request.node.name}"


async def test_a_large_body_lives_in_the_bucket(bucket: str, database: Database) -> None:
    """Put and get through S3, under the prefix and the hash's name."""
    await add_run(database, "r1")
    store = ArtifactStore(database, bucket)
    stored = await store.put("r1", LARGE, "text/plain")
    assert S3FileSystem().find(bucket) == [f"{bucket}/{place_of(stored.sha256)}".removeprefix("s3://")]
    assert await store.get("r1", stored.output_ref) == LARGE


async def test_a_lost_object_is_a_missing_artifact(bucket: str, database: Database) -> None:
    """An object somebody deleted is told by its URL."""
    await add_run(database, "r1")
    store = ArtifactStore(database, bucket)
    stored = await store.put("r1", LARGE, "text/plain")
    S3FileSystem().rm_file(f"{bucket}/{place_of(stored.sha256)}")
    with pytest.raises(ArtifactMissing, match="s3://results"):
        await store.get("r1", stored.output_ref)


async def test_a_bucket_that_does_not_exist_is_told_by_its_url(bucket: str, database: Database) -> None:
    """No bucket, no artifact: StorageUnavailable, and nothing is recorded."""
    await add_run(database, "r1")
    with pytest.raises(StorageUnavailable, match="s3://nowhere"):
        await ArtifactStore(database, "s3://nowhere/x").put("r1", LARGE, "text/plain")
    assert await database.fetch("SELECT 1 FROM surestep.artifacts") == []


async def test_a_place_that_fsspec_does_not_know_is_told(database: Database) -> None:
    """An unknown scheme is StorageUnavailable with the URL, not a ValueError."""
    await add_run(database, "r1")
    with pytest.raises(StorageUnavailable, match="nosuch://"):
        await ArtifactStore(database, "nosuch://x").put("r1", LARGE, "text/plain")
