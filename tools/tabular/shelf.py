"""Tables that were read once and may be wanted again: the steps of one plan describe, check and search one file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.tabular.arguments import Reading
from tools.tabular.table import Table

_KEPT = 4


class Key(NamedTuple):
    """A file's content, as far as its file system tells, and how it is to be read."""

    path: Path
    size: int
    modified_ns: int
    inode: int
    sheet: str | None
    reading: Reading

    @classmethod
    def of(cls, path: Path, sheet: str | None, reading: Reading) -> Key:
        """The key of a file as it is now."""
        seen = path.stat()
        return cls(path, seen.st_size, seen.st_mtime_ns, seen.st_ino, sheet, reading)


class Shelf:
    """The last few tables. Threads that want the same one wait for the first of them to read it; a failure is not
    kept, so that each of them hears of it."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._tables: OrderedDict[Key, Table] = OrderedDict()
        self._readers: dict[Key, threading.Lock] = {}
        self._guard = threading.Lock()

    def take(self, key: Key, read: Callable[[Key], Table]) -> Table:
        """The table of this key, read now if it is not here."""
        with self._guard:
            reader = self._readers.setdefault(key, threading.Lock())
        with reader:
            with self._guard:
                if table := self._tables.get(key):
                    self._tables.move_to_end(key)
                    return table
            table = read(key)
            with self._guard:
                self._tables[key] = table
                while len(self._tables) > self._kept:
                    self._tables.popitem(last=False)
                self._readers = {known: lock for known, lock in self._readers.items() if lock.locked()}
            return table
