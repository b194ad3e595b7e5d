"""Who a worker is, as its operating system knows it, and whether one is known to be dead (rule 6)."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_UNKNOWN = "-"
_present: set[str] = set()


def name_of_worker() -> str:
    """A new worker's name in this process: host, boot, pid namespace, pid and its start, and a word of its own.

    Reads files: not for an event loop. Where the system does not tell, there stands "-".
    """
    return " ".join((*_here(), uuid4().hex[:8]))


@contextmanager
def present(name: str) -> Iterator[str]:
    """While the block lasts, a worker of this process lives under this name; afterwards it is dead."""
    _present.add(name)
    try:
        yield name
    finally:
        _present.discard(name)


def known_dead(name: str) -> bool:
    """Whether the worker of this name certainly does nothing any more; False wherever that cannot be known.

    Only the kernel on which it ran can tell. Another boot, container or machine says nothing, and neither does a host's
    name alone, which two machines may share. Reads files: not for an event loop.
    """
    there, here = name.split(" "), _here()
    if len(there) != len(here) + 1 or tuple(there[:3]) != here[:3]:
        return False
    if sys.platform == "linux" and _UNKNOWN in there[:5]:
        return False
    if tuple(there[3:5]) == here[3:]:
        return name not in _present
    return not _lives(int(there[3]), there[4])


def _here() -> tuple[str, str, str, str, str]:
    pid = os.getpid()
    boot = _read(Path("/proc/sys/kernel/random/boot_id"))
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = _UNKNOWN
    state_and_start = _state_and_start(pid)
    started = state_and_start[1] if state_and_start else _UNKNOWN
    return socket.gethostname(), boot or _UNKNOWN, namespace, str(pid), started


def _lives(pid: int, started: str) -> bool:
    if os.name != "posix":  # there the question of a signal 0 is none
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    if started == _UNKNOWN or (found := _state_and_start(pid)) is None:
        return True
    state, since = found
    return since == started and state not in "ZX"


def _state_and_start(pid: int) -> tuple[str, str] | None:
    """The state letter and the start time, in clock ticks since the boot (proc(5), fields 3 and 22)."""
    text = _read(Path(f"/proc/{pid}/stat"))
    fields = text.rpartition(")")[2].split() if text else []
    return (fields[0], fields[19]) if len(fields) > 19 else None


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError:
        return None
