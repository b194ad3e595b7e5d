"""Reads a file in a process of its own with limited memory: what its library makes of a hostile file stays there.

A workbook of 1 kB with cells in A1 and XFD1048576 makes its library ask for 549 GB and abort, and a Parquet file with
a few bytes changed makes its library panic; either would take the whole run with it.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from plans.failure import ToolFailure
from tools.tabular.scratch import no_room

MOST_MEMORY = 4 << 30
_FULL = f"os error {errno.ENOSPC}".encode()


def read_apart(program: ModuleType, path: Path, *arguments: str, seconds: float) -> dict[str, Any]:
    """What the program says of the file, as one JSON object. ToolFailure INVALID_INPUT when it dies of the file or of
    its limit, TIMEOUT when it is not done in time, UNAVAILABLE when the disk is full."""
    command = [sys.executable, "-P", str(program.__file__), str(MOST_MEMORY), str(path), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - a program of our own
            command, capture_output=True, check=False, timeout=max(seconds, 0.1), stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ToolFailure("TIMEOUT", f"{path.name} was not read in time; save it as CSV, which is read quicker, or "
                          "allow the step more time (timeout_s)") from None  # fmt: skip
    if _FULL in (done.stdout + done.stderr):
        raise no_room(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        reason = "reading it takes more memory than it may" if "alloc" in said or "Memory" in said else "it is damaged"
        raise ToolFailure("INVALID_INPUT", f"{path.name} cannot be read: {reason}. Open it in the program it comes "
                          "from, remove what lies far off the table, and save it again, or as CSV")  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
