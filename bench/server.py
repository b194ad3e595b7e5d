"""One embedded PostgreSQL with its durable settings, a fresh database per peer, and what the measurements rest on."""

from __future__ import annotations

import itertools
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from uuid import uuid4

import psycopg
from psycopg import sql

from checkpoints.embedded import EmbeddedServer
from plans.errors import ConfigurationError

DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
"""Settings that must be on: without them a commit is a promise and nothing more."""

_numbers = itertools.count(1)


class Server:
    """The server of one bench, and the folder it lives in."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def database(self) -> str:
        """URL of a new empty database."""
        name = f"bench_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url.replace("/postgres?", f"/{name}?", 1)

    def settings(self) -> dict[str, str]:
        """The server's version and what durability depends on. Raises ConfigurationError where it is switched off."""
        found = {name: self._shown(name) for name in ("server_version", *DURABLE, "wal_sync_method")}
        if off := [name for name in DURABLE if found[name] != "on"]:
            raise ConfigurationError(f"{' and '.join(off)} must be on for a measurement that means anything")
        return found

    def environment(self) -> str:
        """One sentence on the machine and the server."""
        said = self.settings()
        durable = ", ".join(f"{name} {said[name]}" for name in (*DURABLE, "wal_sync_method"))
        return (
            f"{os.cpu_count()} cores ({_processor()}), load {os.getloadavg()[0]:.1f} at the start, "
            f"Python {platform.python_version()}, embedded PostgreSQL {said['server_version']} on the same machine "
            f"({durable})"
        )

    def _shown(self, name: str) -> str:
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        return str(row[0]) if row else ""


def fetched(url: str, query: LiteralString) -> list[tuple[object, ...]]:
    """The rows of one query."""
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    """A server in a folder below `root` that is removed afterwards."""
    folder = root / uuid4().hex[:8]
    folder.mkdir(parents=True)
    try:
        server = EmbeddedServer.open(folder)
        try:
            yield Server(server.url, folder)
        finally:
            server.release()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
