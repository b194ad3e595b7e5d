"""Workers of two versions of the plan contract on one database: each goes on where the other was killed, or refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Approve, Edit
from plans.errors import VersionTooNew
from tests.recovery.version_worker import SAID, UNSAID, worker

STORED = ("surestep.journal", "surestep.runs", "surestep.approvals", "surestep.artifacts", "public.checkpoints")


def killed(url: str, folder: Path, knows: str, **plans: dict[str, Any]) -> None:
    """A worker begins these runs, and is killed in the third step of all of them."""
    folder.mkdir(exist_ok=True)
    order = [sys.executable, "-m", "tests.recovery.version_worker", url, str(folder), knows, json.dumps(plans)]
    assert subprocess.run(order, check=False, timeout=120).returncode == -signal.SIGKILL


def stored(url: str) -> dict[str, list[Any]]:
    """All that is stored of runs."""
    with psycopg.connect(url) as connection:
        return {table: connection.execute(f"TABLE {table}").fetchall() for table in STORED}


def bodies(url: str, thread: str, kind: str) -> list[dict[str, Any]]:
    """The bodies of a thread's rows of one kind, in their order."""
    query = (
        "SELECT body FROM surestep.journal JOIN surestep.runs USING (run_id)"
        " WHERE thread_id = %s AND kind = %s ORDER BY fence, n"
    )
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(query, (thread, kind))]


def versions(url: str, thread: str) -> list[tuple[int, list[str]]]:
    """For each revision of a thread's plan the version it is in, and those that it has beside it."""
    return [(row["plan"]["schema_version"], sorted(row.get("older", {}))) for row in bodies(url, thread, "plan")]


def done(folder: Path, result: RunResult) -> Counter[str]:
    """What a run's tools have done, and how often."""
    lines = (line.split(" ", 1) for line in (folder / "ledger").read_text("utf-8").splitlines())
    return Counter(what for run_id, what in lines if run_id == result.run_id)


async def answered(agent: Agent, thread: str, text: str | None = None) -> RunResult:
    """The run after a person has allowed the call that it asks about; with `text`, with that in the letter."""
    [asked] = await agent.approvals(thread)
    decision = Approve() if text is None else Edit(args={"text": text})
    return await agent.resume(thread, decisions={asked.approval_id: decision})


async def test_an_old_worker_goes_on_with_a_run_of_a_new_one_and_back(database_url: str, tmp_path: Path) -> None:
    """Killed in its third step, taken over by a worker that does not know the plan's version, which writes a revision
    of its own, then by a new one again: every letter once, every look of a finished step once, one contract all along.
    That the old worker fell back is counted. A plan that it cannot be told is refused, and nothing of it changed."""
    killed(database_url, tmp_path, "new", said=SAID, unsaid=UNSAID)
    async with worker(database_url, tmp_path, "old") as old:
        before = stored(database_url)
        with pytest.raises(VersionTooNew, match=r"schema_version 2, and this one reads up to 1.*nothing was changed"):
            await old.resume("unsaid")
        assert stored(database_url) == before
        assert (await old.resume("said")).status == "paused"
        assert (await answered(old, "said", "fore")).status == "paused"
    assert bodies(database_url, "said", "older_form") == [{"written": 2, "read": 1}] * 2  # each time it is taken
    async with worker(database_url, tmp_path, "new") as new:
        result = await answered(new, "said", "fife")
        assert (result.status, result.answer) == ("done", "one fife")
        assert result.plan is not None
        assert [each.title for each in result.plan.steps] == ["Look", None, "Look again", "Write", None]
        assert (await new.resume("unsaid")).status == "paused"
    assert versions(database_url, "said") == [(2, ["1"]), (1, []), (2, ["1"])]
    assert versions(database_url, "unsaid") == [(2, [])]
    assert done(tmp_path, result) == {"s1 one": 1, "s2 two": 1, "s3 three": 2, "s4 fore": 1, "s5 fife": 1}
    assert not bodies(database_url, "said", "unknown")


@pytest.mark.slow
async def test_a_new_worker_goes_on_with_a_run_of_an_old_one(database_url: str, tmp_path: Path) -> None:
    """It reads the plan raised to its own version, keeps what has finished, and leaves the run on the version it was
    begun on: an old worker could take it back, and a run that is begun at this share of none is on the old one too."""
    killed(database_url, tmp_path, "old", said=SAID)
    async with worker(database_url, tmp_path, "new", canary=100.0) as new:
        assert (await new.resume("said")).status == "paused"
        assert (await answered(new, "said", "fore")).status == "paused"
        result = await answered(new, "said")
        assert (result.status, result.answer) == ("done", "one five")
    assert done(tmp_path, result) == {"s1 one": 1, "s2 two": 1, "s3 three": 2, "s4 fore": 1, "s5 five": 1}
    assert versions(database_url, "said") == [(1, []), (1, [])]
    async with worker(database_url, tmp_path, "new", canary=0.0) as careful:
        assert (await careful.run(plan=SAID, thread_id="careful")).status == "paused"
    assert versions(database_url, "careful") == [(1, [])]
    assert not bodies(database_url, "careful", "older_form")
