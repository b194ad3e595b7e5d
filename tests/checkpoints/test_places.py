"""Places of archives: a folder and a bucket behave alike, and neither ever holds half a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkpoints.places import Place, name_of, place_at
from plans.errors import ArtifactMissing, StorageUnavailable

FOLDER = "date=2026-11-29/thread=t%2F1%20%C3%BC%2A/run=r1"


@pytest.fixture(params=["folder", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a place of each kind, for one test."""
    if request.param == "folder":
        return str(tmp_path / "the archive")
    request.getfixturevalue("s3_server")
    return f"s3://results/{tmp_path.name}"


@pytest.fixture
def place(url: str) -> Place:
    return place_at(url)


def test_what_is_written_can_be_read_listed_and_removed(place: Place) -> None:
    """Names with every odd character a thread can have; written again it is the new body; removed it is gone."""
    for path, body in {"a.json": b"1", "artifacts/b": b"22", "artifacts/c": b""}.items():
        place.write(f"{FOLDER}/{path}", b"before")
        place.write(f"{FOLDER}/{path}", body)
    place.write("date=2026-11-29/thread=u/run=r2/a.json", b"another")
    assert place.sizes(FOLDER) == {"a.json": 1, "artifacts/b": 2, "artifacts/c": 0}
    assert place.read(f"{FOLDER}/artifacts/b") == b"22"
    place.remove(FOLDER)
    place.remove(FOLDER)
    assert place.sizes(FOLDER) == {}
    with pytest.raises(ArtifactMissing, match=r"a\.json is gone"):
        place.read(f"{FOLDER}/a.json")
    assert place.read("date=2026-11-29/thread=u/run=r2/a.json") == b"another"


def test_a_run_whose_name_begins_like_another_is_another(place: Place) -> None:
    """Removing run r1 leaves run r10 where it is."""
    place.write("thread=t/run=r1/a", b"1")
    place.write("thread=t/run=r10/a", b"10")
    place.remove("thread=t/run=r1")
    assert place.sizes("thread=t/run=r10") == {"a": 2}


def test_a_removed_folder_leaves_no_name_behind(tmp_path: Path) -> None:
    """The folders above it are gone too when they are empty: a thread's name is in one of them."""
    place = place_at(str(tmp_path / "archive"))
    place.write(f"{FOLDER}/a", b"1")
    place.remove(FOLDER)
    assert list((tmp_path / "archive").iterdir()) == []


def test_a_half_written_file_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed writer has left under another name is not listed, and the next writer writes over it."""
    place = place_at(str(tmp_path))
    place.write("f/a", b"1")
    (tmp_path / "f/.b.unfinished").write_bytes(b"half")
    assert place.sizes("f") == {"a": 1}
    place.write("f/b", b"whole")
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["a", "b"]


def test_a_full_disk_is_told_and_leaves_the_old_file(small_disk: Path) -> None:
    """No room: the folder is named, what was there is whole, and what is small still fits."""
    place = place_at(str(small_disk / "archive"))
    place.write("f/a", b"1")
    with pytest.raises(StorageUnavailable, match=r"No space left.*SURESTEP_ARCHIVE_URL"):
        place.write("f/a", os.urandom(2_000_000))
    assert place.read("f/a") == b"1"
    assert place.sizes("f") == {"a": 1}


def test_a_bucket_that_does_not_exist_is_told(s3_server: None) -> None:
    """Writing to no bucket is StorageUnavailable with its URL."""
    with pytest.raises(StorageUnavailable, match="s3://nowhere"):
        place_at("s3://nowhere/x").write("f/a", b"1")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket/path/", "s3://bucket/path"),
        ("sftp://ann:secret@host/path", "sftp://ann@host/path"),
        ("/a/b", "/a/b"),
    ],
)
def test_a_place_is_written_down_without_a_password(url: str, name: str) -> None:
    """What is stored in the database, and said, can be read by anyone who may read tombstones."""
    assert name_of(url) == name
