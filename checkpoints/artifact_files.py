"""Where the bytes of large artifacts are: a folder of this machine, or whatever fsspec reaches by a URL.

A file's name is made from its hash and nothing else, so no name that a run, a tool or a row of the database brings
along can lead anywhere else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from checkpoints.crash_points import reached
from plans.errors import ArtifactMissing, StorageUnavailable

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Files(Protocol):
    """Bytes by their hash. The methods block; each may be called from any thread."""

    def write(self, sha256: str, body: bytes) -> None:
        """Keep the body; when this returns it survives a crash of the machine. StorageUnavailable when it cannot."""

    def read(self, sha256: str) -> bytes:
        """The body. ArtifactMissing when there is none, StorageUnavailable when the place cannot be read."""

    def written_at(self, sha256: str) -> float | None:
        """When the body was last written, in seconds since 1970, or None when there is none. StorageUnavailable."""

    def remove(self, sha256: str) -> None:
        """Delete the body, if it is there. StorageUnavailable when it cannot be deleted."""


def files_at(url: str) -> Files:
    """The files at a path or `file://` URL, or at any URL fsspec knows (`s3://bucket/prefix`). Touches nothing yet."""
    folder = folder_at(url)
    return Bucket(url) if folder is None else LocalFolder(folder)


def folder_at(url: str) -> Path | None:
    """The folder of this machine that a path or `file://` URL names; None for a URL of anything else."""
    if "://" not in url:
        return at_home(url)
    parts = urlsplit(url)
    return Path(unquote(parts.netloc + parts.path)) if parts.scheme in {"file", "local"} else None


def at_home(path: str) -> Path:
    """The path with `~` as a shell has it. StorageUnavailable where nobody is called so."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise StorageUnavailable(f"{path!r} begins with the home folder of somebody who is not there") from None


def place_of(sha256: str) -> str:
    """The relative path of a body: spread over 256 folders. ValueError for what is no hash."""
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"expected the 64 hex digits of a SHA-256, and came {sha256[:80]!r}")
    return f"{sha256[:2]}/{sha256}"


class LocalFolder:
    """A folder of this machine, made when it is first written to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def write(self, sha256: str, body: bytes) -> None:
        """Write beside the name, make it durable, then give it its name: a reader sees all of it or nothing."""
        target = self._folder / place_of(sha256)
        unfinished = target.with_name(f".{uuid4().hex}.unfinished")
        try:
            make_durably(target.parent)
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            reached("artifact.unnamed")
            unfinished.replace(target)
            sync_folder(target.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise StorageUnavailable(
                f"the folder {self._folder} must take a result of {len(body):,} bytes: {error.strerror or error}; "
                "make room or make it writable, or name another with SURESTEP_ARTIFACTS_URL"
            ) from error

    def read(self, sha256: str) -> bytes:
        """The bytes under the hash's name."""
        path = self._folder / place_of(sha256)
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            raise ArtifactMissing(f"the file {path} of a stored result is gone") from error
        except OSError as error:
            raise StorageUnavailable(f"the folder {self._folder} cannot be read: {error.strerror or error}") from error

    def written_at(self, sha256: str) -> float | None:
        """The time of the file."""
        path = self._folder / place_of(sha256)
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageUnavailable(f"the folder {self._folder} cannot be read: {error.strerror or error}") from error

    def remove(self, sha256: str) -> None:
        """Unlink the file."""
        path = self._folder / place_of(sha256)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageUnavailable(f"the file {path} cannot be deleted: {error.strerror or error}") from error


class Bucket:
    """A place that fsspec reaches; a written body is as durable as the place makes what it has confirmed."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    @cached_property
    def _system(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # it has none

        system, root = url_to_fs(self._url)
        return system, str(root)

    def write(self, sha256: str, body: bytes) -> None:
        """Store the body as one object."""
        place = place_of(sha256)
        try:
            system, root = self._system
            system.pipe_file(f"{root}/{place}", body)
        except troubles() as error:
            raise StorageUnavailable(
                f"{self._url} must take a result of {len(body):,} bytes: {in_words(error)}; check that it exists and "
                "that the credentials may write, or name another place with SURESTEP_ARTIFACTS_URL"
            ) from error

    def read(self, sha256: str) -> bytes:
        """The object's bytes."""
        place = place_of(sha256)
        try:
            system, root = self._system
            return bytes(system.cat_file(f"{root}/{place}"))
        except FileNotFoundError as error:
            raise ArtifactMissing(f"the object {self._url}/{place} of a stored result is gone") from error
        except troubles() as error:
            raise StorageUnavailable(f"{self._url} cannot be read: {in_words(error)}") from error

    def written_at(self, sha256: str) -> float | None:
        """When the object was last written, as the place says."""
        place = place_of(sha256)
        try:
            system, root = self._system
            system.invalidate_cache()
            return float(system.modified(f"{root}/{place}").timestamp())
        except FileNotFoundError:
            return None
        except troubles() as error:
            raise StorageUnavailable(f"{self._url} cannot be read: {in_words(error)}") from error

    def remove(self, sha256: str) -> None:
        """Delete the object."""
        place = place_of(sha256)
        try:
            system, root = self._system
            system.rm_file(f"{root}/{place}")
        except FileNotFoundError:
            return
        except troubles() as error:
            raise StorageUnavailable(f"{self._url}/{place} cannot be deleted: {in_words(error)}") from error


def troubles() -> tuple[type[Exception], ...]:
    """What a backend raises when it cannot: an OSError, no such backend, or botocore's own kinds where it is loaded."""
    botocore = sys.modules.get("botocore.exceptions")
    return (OSError, ImportError, ValueError, *((botocore.BotoCoreError,) if botocore else ()))


def in_words(error: Exception) -> str:
    """What a backend says of itself, or at least what kind of trouble it has."""
    return str(error) or type(error).__name__


def make_durably(folder: Path) -> None:
    """Make the folder and those above it that are missing; each name is on the disk when this returns."""
    missing = [folder, *(parent for parent in folder.parents if not parent.exists())] if not folder.exists() else []
    for place in reversed(missing):
        place.mkdir(exist_ok=True, mode=0o700)
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in this folder on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
