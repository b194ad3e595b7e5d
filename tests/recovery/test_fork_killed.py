"""A process that dies while it makes a fork leaves a proper fork or none: never a run that begins from nothing."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from graph.agent import open_agent
from tests.recovery.forking import PLAN, kit, settings_for

ROOT = Path(__file__).parents[2]
NOTHING = ("lease.acquired",)
A_FORK = ("run.created", "lease.released", "lease.acquired:2", "journal.batch_committed", "approval.recorded")


async def test_killed_at_any_point_of_its_making_a_fork_is_whole_or_not_there(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its one statement there is nothing; after it, whoever goes on has what was kept, and is asked before the
    effect is repeated. The parent is free again at once."""
    ledger = tmp_path / "ledger.txt"
    monkeypatch.setenv("LEDGER", str(ledger))
    async with open_agent([kit], settings=settings_for(database_url, tmp_path)) as agent:
        assert (await agent.run(plan=PLAN, thread_id="t")).status == "done"
        command = [sys.executable, "-m", "tests.recovery.forking", database_url, str(tmp_path), *NOTHING, *A_FORK]
        ended = await asyncio.to_thread(subprocess.check_output, command, cwd=ROOT, text=True, timeout=60)
        assert ended.split() == [str(-signal.SIGKILL)] * len(NOTHING + A_FORK)
        assert Counter(ledger.read_text().split()) == {"a": 1, "b": 1, "c": 1}
        for thread_id in NOTHING:
            assert await agent.engine.runs.latest(thread_id) is None
        for number, thread_id in enumerate(A_FORK, 2):
            paused = await agent.resume(thread_id)
            assert (paused.status, [each.step_id for each in paused.approvals]) == ("paused", ["c"]), thread_id
            done = await agent.resume(thread_id, approve="all")
            assert (done.status, done.answer) == ("done", "ann again"), thread_id
            assert Counter(ledger.read_text().split()) == {"a": 1, "b": 1, "c": number}
        assert (await agent.fork("t", "c")).status == "paused"
