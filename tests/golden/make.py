"""Makes the golden database of the Surestep that runs it: `python -m tests.golden.make FILE`.

It has a run that waits for a person, one that was killed inside of an effect, one that stopped at a limit and one that
is done. Made once, with the released code, and never again: what a version has written cannot be written anew.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

from checkpoints.database import Database, open_database
from graph.agent import open_agent
from graph.settings import Settings
from tests.golden.kit import DIE, LEDGER, PLANS, kit

TABLES = (
    "surestep.runs", "surestep.leases", "surestep.journal", "surestep.artifacts", "surestep.approvals",
    "public.checkpoints", "public.checkpoint_blobs", "public.checkpoint_writes",
)  # fmt: skip


async def run(folder: Path, thread_id: str) -> None:
    """The run of one thread, in this process."""
    limits = {"max_wall_s": 0.1} if thread_id == "limited" else None
    settings = Settings.load(environment={}, folder=folder, output=folder / "out")
    async with open_agent([kit], settings=settings) as agent:
        await agent.run(plan=PLANS[thread_id], thread_id=thread_id, limits=limits)


def plain(value: Any) -> Any:
    """A column's value as JSON: bytes and times are marked as such."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime | date):
        return {"time": value.isoformat()}
    raise TypeError(f"a column holds {type(value).__name__}")


async def dump(database: Database) -> dict[str, Any]:
    """Every table that holds runs, and the migrations that made them."""
    tables = {table: await database.fetch(f"TABLE {table}") for table in TABLES}
    applied = await database.fetch("SELECT name FROM surestep.migrations ORDER BY name")
    return {"migrations": [row["name"] for row in applied], "tables": tables}


def main(target: Path) -> None:
    """Run all of it in a folder of its own, then write down what the database holds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[LEDGER] = str(folder / "ledger.txt")
        for thread_id in PLANS:
            environment = {**os.environ, **({DIE: "1"} if thread_id == "doubt" else {})}
            child = subprocess.run(
                [sys.executable, "-m", "tests.golden.make", str(folder), thread_id], env=environment, check=False
            )
            expected = -signal.SIGKILL if thread_id == "doubt" else 0
            if child.returncode != expected:
                raise SystemExit(f"the run {thread_id!r} ended with {child.returncode}, expected {expected}")
        found = json.dumps(asyncio.run(read(folder)), default=plain, indent=1)
        target.write_bytes(gzip.compress(found.encode("utf-8"), mtime=0))


async def read(folder: Path) -> dict[str, Any]:
    """What the runs have left in their database."""
    async with open_database(None, folder) as database:
        return await dump(database)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
