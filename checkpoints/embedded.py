"""The embedded PostgreSQL: a real server whose files are in a folder of the user's, shared by all its processes.

Who stops it: the last one to leave. Every process that uses the server holds a shared lock on a file; who closes last
finds that it alone holds it, and stops the server. So a short command leaves no server behind, a second process that
runs at the same time keeps its server, and a process that was killed needs no cleaning up, since the kernel drops its
lock: its server stays until the next process closes. Starting costs about 0.1 s and stopping as much, which is little
beside the start of Python; a server that stayed for ever would have to be found and killed by the user.

Only this folder's owner can enter it (mode 0700), which is what guards the server: it listens on a socket in there,
and on no network address.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from checkpoints.cluster import Cluster
from plans.errors import DatabaseUnavailable, StorageUnavailable

_LOG = logging.getLogger(__name__)
_FOLDER_BYTES = 85  # a socket's path has room for 107 bytes, of which its own name takes up to 16


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server that this process uses; `release()` it when done."""

    url: str
    cluster: Cluster
    _users: int

    @classmethod
    def open(cls, folder: Path) -> EmbeddedServer:
        """The server with its files in `folder/postgres`, started (and made) when it is not running.

        Blocks for about 0.1 s when it has to be started, 1 s when it has to be made. Raises StorageUnavailable when the
        folder cannot be written, DatabaseUnavailable when the server does not start.
        """
        folder = folder.expanduser().resolve()
        with _starting(folder):
            users = _open_lock(folder / "postgres.users")
            try:
                fcntl.flock(users, fcntl.LOCK_SH)
                with _plain_words(folder):
                    cluster = Cluster.at(folder / "postgres")
                    reached_by = _short_enough(cluster.home)
                    if cluster.port() is None:
                        cluster.start()
                    port = cluster.port()
                if port is None:
                    raise DatabaseUnavailable(f"the database in {cluster.home} was started and does not answer")
                return cls(_url(reached_by, port), cluster, users)
            except BaseException:
                os.close(users)
                raise

    def release(self) -> None:
        """Stop using the server, and stop it when nobody else uses it. Blocks for about 0.1 s then."""
        with _starting(self.cluster.home.parent):
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.cluster.stop()
                _short_link(self.cluster.home).unlink(missing_ok=True)
            except BlockingIOError:
                pass
            except DatabaseUnavailable as error:
                _LOG.warning("%s", error)
            finally:
                fcntl.flock(self._users, fcntl.LOCK_UN)
                os.close(self._users)


@contextmanager
def _starting(folder: Path) -> Iterator[None]:
    """One process at a time makes, starts or stops the server of a folder."""
    with _plain_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = _open_lock(folder / "postgres.starting")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open_lock(path: Path) -> int:
    with _plain_words(path.parent):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _plain_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(
            f"the folder {folder} must be writable for the database that Surestep keeps in it: "
            f"{error.strerror or error}; make it so, choose another with SURESTEP_FOLDER, or set SURESTEP_DATABASE_URL"
        ) from error


def _url(reached_by: Path, port: int) -> str:
    return f"postgresql://postgres@/postgres?host={quote(os.fsencode(reached_by), safe='/')}&port={port}"


def _short_enough(home: Path) -> Path:
    """A path to the data directory that a socket's name and a connection string can hold."""
    if len(os.fsencode(home)) > _FOLDER_BYTES or "," in str(home):
        return _linked(home)
    return home


def _short_link(home: Path) -> Path:
    """Where a short name for the data directory may stand, in a folder of the temporary directory."""
    names = Path(tempfile.gettempdir()) / f"surestep-{os.geteuid()}"
    return names / hashlib.sha256(os.fsencode(home)).hexdigest()[:16]


def _linked(home: Path) -> Path:
    """The short name, made; only we can write the folder it is in."""
    link = _short_link(home)
    names = link.parent
    try:
        names.mkdir(mode=0o700, exist_ok=True)
        seen = names.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o022:
            raise DatabaseUnavailable(f"{names} must be a folder that only you can write; remove it and try again")
        fresh = names / f"{link.name}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(home)
        fresh.replace(link)
    except OSError as error:
        raise StorageUnavailable(
            f"the path {home} is too long for a socket, and {names} cannot hold a short name for it ({error.strerror})"
        ) from error
    return link
