"""Folders for what does not fit memory: gone with their owner, and, when its process was killed, with the next reader.

Each folder holds a file that its owner keeps locked. The system drops a dead process's locks, so whoever can take the
lock of another folder knows that nobody needs it. This holds between containers as well, where process ids do not.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from plans.failure import ToolFailure

_PREFIX = "surestep-table-"
_LOCK = "in-use"


def no_room(error: Exception) -> ToolFailure:
    """The failure of a temporary folder that takes nothing more."""
    return ToolFailure("UNAVAILABLE", f"the temporary folder cannot be written ({str(error)[-60:]}): free space there, "
                       "or set TMPDIR to another folder")  # fmt: skip


class Scratch:
    """A folder of one's own until `close`. ToolFailure UNAVAILABLE when none can be made."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        while True:
            try:
                self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            except OSError as error:
                raise no_room(error) from None
            self._lock = _locked(self.folder / _LOCK, os.O_CREAT)
            if self._lock is not None:
                return

    def close(self) -> None:
        """Removes the folder. It is free only when it is empty: a sweep in between finds it in use."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@cache
def _sweep(parent: Path) -> None:
    """Removes what killed processes left behind; once per process."""
    for left in parent.glob(f"{_PREFIX}*"):
        if (lock := _locked(left / _LOCK)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def _locked(path: Path, create: int = 0) -> int | None:
    """The file, open and locked; None when another holds it, or it is not ours to open."""
    try:
        lock = os.open(path, os.O_RDWR | create, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
