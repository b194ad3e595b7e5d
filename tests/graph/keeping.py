"""What the tests of archive and erasure share: a run with large and small results, and looks at what is left of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from checkpoints.artifacts import INLINE_BYTES
from graph.gateway import Agent
from tests.running import plan, step
from tools.registry import Toolkit

kit = Toolkit("archived")


@kit.tool(effect="read")
def text(size: int, letter: str = "x") -> dict[str, str]:
    """So many letters."""
    return {"text": letter * size}


@kit.tool(effect="read", cache_ttl_s=600)
def kept(letter: str) -> str:
    """The same letter."""
    return letter


@kit.tool(effect="irreversible")
def send(to: str) -> dict[str, str]:
    """Send a letter."""
    return {"sent": to}


LARGE = INLINE_BYTES * 2
PLAN = plan(
    step("s1", "text", args={"size": LARGE}),
    step("s2", "text", args={"size": 5}),
    step("s3", "send", "s1", args={"to": "ann"}),
    answer="sent to ${s3.sent}",
)
QUESTION = plan(step("s1", "send", args={"to": "ann"}, require_approval=True))
TABLES = ("runs", "leases", "journal", "artifacts", "approvals", "loose_files")


async def rows_of(agent: Agent, table: str) -> int:
    """How many rows a table has."""
    name = table if table.startswith("checkpoint") else f"surestep.{table}"
    counted = await agent.engine.database.fetch(f"SELECT count(*) AS n FROM {name}")  # noqa: S608 (names of ours)
    return int(counted[0]["n"])


async def left(agent: Agent) -> dict[str, int]:
    """The tables that hold anything of runs."""
    counts = {table: await rows_of(agent, table) for table in (*TABLES, "checkpoints", "checkpoint_blobs")}
    return {table: count for table, count in counts.items() if count}


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file, by its path."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def lines_of(body: bytes) -> list[dict[str, Any]]:
    """The objects of a file with one a line."""
    return [json.loads(line) for line in body.splitlines()]
