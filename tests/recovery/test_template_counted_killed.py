"""A run whose process is killed around its end counts for its template once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoints.template_uses import Standing
from graph.agent import open_agent
from graph.settings import Settings
from tests.graph.test_templates_in_use import PRICE_OF

PROGRAM = """
import asyncio, os, signal, sys
from checkpoints import crash_points
from graph.agent import open_agent
from graph.settings import Settings
from tests.graph.kits import Shop

def die(point):
    if point == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    settings = Settings.load(environment={}, database_url=sys.argv[1], folder=sys.argv[2] + "/s", templates=sys.argv[2])
    async with open_agent([Shop().kit], settings=settings) as agent:
        crash_points.hook = die
        await agent.run("What does a cup cost?", thread_id="t")

asyncio.run(main())
"""


async def resumed(url: str, folder: Path) -> tuple[str, list[Standing]]:
    """How the run ends when it is gone on with, twice, and what its template has to show for it."""
    from tests.graph.kits import Shop

    settings = Settings.load(environment={}, database_url=url, folder=folder / "s", templates=folder, lease_s=1.0)
    async with open_agent([Shop().kit], settings=settings) as agent:
        await agent.resume("t")
        status = (await agent.resume("t")).status
        return status, list((await agent.engine.template_uses.standing()).values())


@pytest.mark.parametrize(
    "point",
    [
        "run.status_set",
        pytest.param("finish.recorded", marks=pytest.mark.slow),
        pytest.param("session.closing", marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_counts_once(database_url: str, tmp_path: Path, point: str) -> None:
    """Killed before its end is stored it counts when it is gone on with; killed after, it has counted."""
    (tmp_path / "price_of.yaml").write_text(PRICE_OF)
    child = subprocess.run(  # our own interpreter
        [sys.executable, "-c", PROGRAM, database_url, str(tmp_path), point], env=dict(os.environ), check=False
    )
    assert child.returncode == -signal.SIGKILL
    status, [standing] = asyncio.run(resumed(database_url, tmp_path))
    assert (status, standing.used, standing.succeeded, standing.recent) == ("done", 1, 1, (True,))
