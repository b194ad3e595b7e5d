"""One PostgreSQL data directory: made, started and stopped.

The wheel's own launcher is not used: as root it opens every folder above the data (and above the installation) to
everybody, it does not quote paths, and it takes a recycled process id for a running server. Here the programs run
*inside* the data directory and know it only as their working directory. So any path works, of any length and with any
characters, below a folder that only root may enter too.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from checkpoints.programs import MAJOR, Programs
from plans.errors import DatabaseUnavailable, StorageUnavailable

_HERE = "/proc/self/cwd"
_SETTINGS = (
    "listen_addresses=",
    "unix_socket_directories=.",
    "cluster_name=surestep",
    "max_connections=200",
    "max_wal_size=256MB",  # the folder stays small; the default lets it grow to 1 GB
    "log_checkpoints=off",  # and so does the log
)
_LOCALE = ("--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \S+ \[\d+\] ")
_DISK_WORDS = ("No space left on device", "Read-only file system", "Disk quota exceeded")


@dataclass(frozen=True)
class Cluster:
    """A data directory that was made, and the programs that run it."""

    home: Path
    programs: Programs

    @classmethod
    def at(cls, home: Path) -> Cluster:
        """The cluster in `home`, which is made when it is not there yet; its parent must exist.

        DatabaseUnavailable when the programs do not run or the data is of another major version; StorageUnavailable
        when the disk is full or read-only. Only one process at a time may call this for a directory.
        """
        programs = Programs.for_home(home)
        version = home / "PG_VERSION"
        if not version.exists():
            _make(home, programs)
        found = version.read_text().strip()
        if found != MAJOR:
            raise DatabaseUnavailable(
                f"the database in {home} was made by PostgreSQL {found}, and this Surestep brings PostgreSQL {MAJOR}; "
                "move it away, or serve it yourself and set SURESTEP_DATABASE_URL"
            )
        return cls(home, programs)

    def port(self) -> int | None:
        """The port in the name of the server's socket, or None when no server takes connections in this directory."""
        try:
            lines = (self.home / "postmaster.pid").read_text().splitlines()
            port = int(lines[3])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return port if lines[-1].strip() == "ready" and _answers(self.home, port) else None

    def start(self) -> None:
        """Start the server and wait until it takes connections; what it says goes to `log` in the data directory."""
        self._forget_foreign_pid()
        if not self._pg_ctl("-l", f"{_HERE}/log", "start").returncode:
            return
        time.sleep(1)  # the children of a server that was killed a moment ago still hold its shared memory
        again = self._pg_ctl("-l", f"{_HERE}/log", "start")
        if again.returncode:
            raise _failure(self.home, "cannot be started", again.stdout + _tail(self.home / "log"))

    def stop(self) -> None:
        """Stop the server: open transactions are rolled back, what was committed is kept."""
        stopped = self._pg_ctl("-m", "fast", "stop")
        if stopped.returncode and self.port() is not None:
            raise _failure(self.home, "cannot be stopped", stopped.stdout)

    def _pg_ctl(self, *arguments: str) -> CompletedProcess[str]:
        return self.programs.run("pg_ctl", "-D", _HERE, "-w", "-t", "60", *arguments, cwd=self.home)

    def _forget_foreign_pid(self) -> None:
        """Remove a pid file whose number now belongs to another program: PostgreSQL would believe it and refuse."""
        pid_file = self.home / "postmaster.pid"
        try:
            number = int(pid_file.read_text().split("\n", 1)[0])
            program = Path(f"/proc/{number}/comm").read_text().strip()
        except (OSError, ValueError):
            return
        if program != "postgres":
            pid_file.unlink(missing_ok=True)


def _make(home: Path, programs: Programs) -> None:
    """Fill the directory under another name and rename it, so that a kill in between leaves nothing half made."""
    unfinished = home.with_name(f"{home.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if programs.account is not None:
        os.chown(unfinished, programs.account.uid, programs.account.gid)
    settings = [word for setting in _SETTINGS for word in ("--set", setting)]
    made = programs.run("initdb", "-D", _HERE, "-U", "postgres", "--auth=trust", *_LOCALE, *settings, cwd=unfinished)
    if made.returncode:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise _failure(home, "cannot be made", made.stdout)
    unfinished.rename(home)


def _answers(home: Path, port: int) -> bool:
    """Whether a server takes connections on the socket; the path is opened from a handle, for it may be too long."""
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect(f"/proc/self/fd/{handle}/.s.PGSQL.{port}")
            return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _failure(home: Path, what: str, words: str) -> DatabaseUnavailable | StorageUnavailable:
    told = f"the database in {home} {what}: {_telling(words).replace(_HERE, str(home))}"
    if any(word in words for word in _DISK_WORDS):
        return StorageUnavailable(f"{told}; free some space there, or choose another folder")
    return DatabaseUnavailable(f"{told}; or set SURESTEP_DATABASE_URL to a server of yours")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else ""


def _telling(words: str) -> str:
    """What a program's output says is wrong: the line with the strongest mark, and the one before that explains it."""
    lines = [_STAMP.sub("", line).strip() for line in words.splitlines() if line.strip()]
    for mark in (*_DISK_WORDS, "PANIC:", "FATAL:", "error:"):
        for number, line in enumerate(lines):
            if mark in line:
                return "; ".join(lines[max(0, number - 1) : number + 1])
    return lines[-1] if lines else "it says nothing"
