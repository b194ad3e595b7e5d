"""Where archives are: files by their path below a folder of this machine, or below any URL that fsspec reaches."""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from checkpoints.artifact_files import at_home, folder_at, in_words, make_durably, sync_folder, troubles
from plans.errors import ArtifactMissing, StorageUnavailable, Unreadable
from plans.values import printable

_ADVICE = "or name another place with SURESTEP_ARCHIVE_URL or --to"


class Place(Protocol):
    """Files by relative paths that this package makes up itself. The methods block, and may be called from any thread.

    Each raises StorageUnavailable where the place cannot be reached, read or written, and Unreadable for a path that
    leads out of it: paths come back from the database, where somebody else may have written.
    """

    def write(self, path: str, body: bytes) -> None:
        """Keep the body; when this returns it survives a crash of the machine, and there was never half of it."""

    def read(self, path: str) -> bytes:
        """The body. ArtifactMissing when there is none."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder, by their paths in it, with their sizes in bytes; none where there is no folder."""

    def remove(self, folder: str) -> None:
        """Delete a folder, all that is below it, and the folders above it that are empty then."""


def place_at(url: str) -> Place:
    """The place at a path or `file://` URL, or at any URL fsspec knows (`s3://bucket/prefix`). Touches nothing yet."""
    folder = folder_at(url)
    return RemotePlace(url) if folder is None else LocalPlace(folder)


def name_of(url: str) -> str:
    """How a place is written down: a folder by its whole path, and never a password."""
    if "://" not in url:
        return str(at_home(url).absolute())
    parts = urlsplit(url)
    secret = parts.password
    netloc = parts.netloc.replace(f":{secret}@", "@") if secret is not None else parts.netloc
    return urlunsplit(parts._replace(netloc=netloc)).rstrip("/")


def within(path: str) -> str:
    """The path, if it stays below where it is put. Raises Unreadable."""
    if "\\" in path or "\0" in path or {"", ".", ".."} & set(path.split("/")):
        raise Unreadable(f"{printable(path)!r} is no path of an archive that Surestep has written")
    return path


class LocalPlace:
    """A folder of this machine, made when it is first written to."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def write(self, path: str, body: bytes) -> None:
        """Write beside the name, make it durable, then give it its name. What a killed writer left is written over."""
        target = self._root / within(path)
        unfinished = target.with_name(f".{target.name}.unfinished")
        try:
            make_durably(target.parent)
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
            sync_folder(target.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise StorageUnavailable(
                f"the folder {self._root} must take a file of {len(body):,} bytes: {error.strerror or error}; make "
                f"room or make it writable, {_ADVICE}"
            ) from error

    def read(self, path: str) -> bytes:
        """The bytes of the file."""
        try:
            return (self._root / within(path)).read_bytes()
        except FileNotFoundError as error:
            raise ArtifactMissing(f"the archived file {self._root / path} is gone") from error
        except OSError as error:
            raise StorageUnavailable(f"{self._root / path} cannot be read: {error.strerror or error}") from error

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below the folder; those that a killed writer has left half written are none."""
        top = self._root / within(folder)
        try:
            return {
                str(file.relative_to(top)): file.stat().st_size
                for file in top.rglob("*")
                if file.is_file() and not file.name.endswith(".unfinished")
            }
        except OSError as error:
            raise StorageUnavailable(f"{top} cannot be read: {error.strerror or error}") from error

    def remove(self, folder: str) -> None:
        """Delete the tree, then its parents as long as they are empty."""
        top = self._root / within(folder)
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(top)
            for parent in top.parents:
                if parent == self._root or any(parent.glob("*")):
                    break
                with contextlib.suppress(FileNotFoundError):
                    parent.rmdir()
        except OSError as error:
            raise StorageUnavailable(f"{top} cannot be deleted: {error.strerror or error}") from error


class RemotePlace:
    """A place that fsspec reaches; what is written is as durable as the place makes what it has confirmed."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._name = name_of(url)

    @cached_property
    def _system(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # it has none

        system, root = url_to_fs(self._url)
        return system, str(root).rstrip("/")

    def write(self, path: str, body: bytes) -> None:
        """Store the body as one object."""
        try:
            system, root = self._system
            system.pipe_file(f"{root}/{within(path)}", body)
        except troubles() as error:
            raise StorageUnavailable(
                f"{self._name} must take a file of {len(body):,} bytes: {in_words(error)}; check that it exists and "
                f"that the credentials may write, {_ADVICE}"
            ) from error

    def read(self, path: str) -> bytes:
        """The object's bytes."""
        try:
            system, root = self._system
            return bytes(system.cat_file(f"{root}/{within(path)}"))
        except FileNotFoundError as error:
            raise ArtifactMissing(f"the archived object {self._name}/{path} is gone") from error
        except troubles() as error:
            raise StorageUnavailable(f"{self._name} cannot be read: {in_words(error)}") from error

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below the prefix."""
        try:
            system, root = self._system
            system.invalidate_cache()
            found: dict[str, Any] = system.find(f"{root}/{within(folder)}", detail=True)
        except FileNotFoundError:
            return {}
        except troubles() as error:
            raise StorageUnavailable(f"{self._name} cannot be read: {in_words(error)}") from error
        return {name.partition(f"{folder}/")[2]: int(entry["size"]) for name, entry in found.items()}

    def remove(self, folder: str) -> None:
        """Delete every object below the prefix; what is gone already is no trouble."""
        for path in self.sizes(folder):
            try:
                system, root = self._system
                system.rm_file(f"{root}/{folder}/{path}")
            except FileNotFoundError:
                continue
            except troubles() as error:
                raise StorageUnavailable(f"{self._name}/{folder} cannot be deleted: {in_words(error)}") from error
