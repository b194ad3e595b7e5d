"""What a probe must leave as it was: the schema, everybody else's rows, and files and hosts that are none of its."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

SCHEMA = """
SELECT 'column' AS what, table_schema || '.' || table_name || '.' || column_name AS name,
    concat_ws(' ', data_type, column_default, is_nullable) AS said
FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT 'function', oid::regprocedure::text, md5(prosrc) FROM pg_proc
    WHERE pronamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT 'trigger', tgname || ' on ' || tgrelid::regclass, tgenabled::text FROM pg_trigger
UNION ALL SELECT 'constraint', conname || ' on ' || conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
UNION ALL SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid::regclass::text NOT LIKE 'pg\\_%'
UNION ALL SELECT 'role', rolname, concat_ws(' ', rolsuper, rolcanlogin) FROM pg_roles
ORDER BY 1, 2, 3
"""
OWNED = """
SELECT c.table_schema || '.' || c.table_name AS name, array_agg(c.column_name::text) AS columns
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.column_name IN ('run_id', 'thread_id') AND t.table_type = 'BASE TABLE'
GROUP BY 1 ORDER BY 1
"""


def rows_of(url: str, thread_id: str) -> dict[str, list[str]]:
    """The schema, and every row of every table that is of this thread or of a run of it."""
    with psycopg.connect(url) as connection:
        found = {"schema": [" ".join(map(str, row)) for row in connection.execute(SCHEMA)]}
        runs = [
            row[0] for row in connection.execute("SELECT run_id FROM surestep.runs WHERE thread_id = %s", [thread_id])
        ]
        for name, columns in connection.execute(OWNED).fetchall():
            theirs = " OR ".join(f"{column} = ANY (%(ids)s)" for column in columns)
            asked: Any = f"SELECT to_jsonb(t)::text FROM {name} t WHERE {theirs} ORDER BY 1"  # noqa: S608  # names of the catalogue
            found[name] = [row[0] for row in connection.execute(asked, {"ids": [thread_id, *runs]})]
    return found


CHANGING = frozenset(
    {"os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.truncate", "os.chmod"}
)
REACHING = frozenset(
    {"socket.connect", "socket.getaddrinfo", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Witness:
    """What this process has done to files, and whom it has tried to reach, while it was watched."""

    read: set[Path] = field(default_factory=set)
    written: set[Path] = field(default_factory=set)
    reached: list[str] = field(default_factory=list)

    def outside(self, *folders: Path) -> set[Path]:
        """What was written and is not below these folders."""
        return {path for path in self.written if not any(path.is_relative_to(folder.resolve()) for folder in folders)}


_watching: list[Witness] = []


def _see(event: str, args: tuple[Any, ...]) -> None:
    if not _watching:
        return
    witness = _watching[-1]
    if event == "open" and isinstance(args[0], str | bytes | os.PathLike):
        path = Path(os.path.realpath(os.fsdecode(args[0]).replace("\0", "")))
        writes = bool(args[2] & _WRITING) if isinstance(args[2], int) else False
        (witness.written if writes else witness.read).add(path)
    elif event in CHANGING:
        witness.written |= {
            Path(os.path.realpath(os.fsdecode(arg))) for arg in args if isinstance(arg, str | bytes | os.PathLike)
        }
    elif event in REACHING:
        witness.reached.append(f"{event} {args[1:] if event == 'socket.connect' else args}")


@cache
def _hook() -> None:
    """One for all tests: an audit hook cannot be taken out again."""
    sys.addaudithook(_see)


@contextmanager
def watched() -> Iterator[Witness]:
    """All that Python code of this process does to files and hosts within the block; libpq does more, unseen."""
    _hook()
    witness = Witness()
    _watching.append(witness)
    try:
        yield witness
    finally:
        _watching.remove(witness)
