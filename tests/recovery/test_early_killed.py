"""Reads that began while the planner wrote, in a process that is killed: of them nothing is left but their count."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug import Response

from checkpoints import crash_points
from tests.nodes.model_server import Question, ScriptedModel, delta, streamed
from tests.running import plan, running, step
from tools.registry import Toolkit

PLAN = plan(
    step("s1", "look", args={"key": "a"}),
    step("s2", "look", args={"key": "${s1.key}"}),
    step("s3", "charge", args={"key": "${s2.key}"}),
    answer="${s3}",
)
EARLY: dict[str, Any] = {"eager": True, "structured_output": "text"}


def market(book: Path, *, dies_at: str = "") -> Toolkit:
    """A lookup and a charge; every call is a line of the book, and the process dies in the lookup of one key."""
    kit = Toolkit("market")

    @kit.tool(effect="read")
    async def look(key: str) -> dict[str, str]:
        """Look it up."""
        _note(book, f"look {key}")
        if key == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"key": f"{key}!"}

    @kit.tool(effect="idempotent", risk="low")
    async def charge(key: str) -> str:
        """Charge it."""
        _note(book, f"charge {key}")
        return key

    return kit


def _note(book: Path, line: str) -> None:
    with book.open("a") as lines:
        lines.write(f"{line}\n")


def reached_at(base_url: str) -> Any:
    """The endpoint as another process sees it."""
    return SimpleNamespace(base_url=base_url)


def drive(url: str, folder: Path, base_url: str, moment: str) -> None:
    """What the child does: it pursues the goal, and dies where it was told."""

    async def run() -> None:
        kit = market(folder / "book", dies_at="a!" if moment == "reading" else "")
        async with running(url, folder, [kit], model=reached_at(base_url), **EARLY) as agent:
            crash_points.hook = lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == moment else None
            await agent.run("look and charge", thread_id="t")

    asyncio.run(run())


def written(_: Question) -> Response:
    """The plan, its end a while after its reads."""
    text = json.dumps(PLAN)
    place = text.index('{"id": "s3"')
    return streamed(delta(text[:place]), 0.5, delta(text[place:]), delta(finish_reason="stop"))(_)


@pytest.mark.parametrize(
    ("moment", "answered", "planned"),
    [
        ("reading", False, False),
        ("plan.queued", True, False),
        pytest.param("model.answered", False, False, marks=pytest.mark.slow),
        pytest.param("effect.intended", True, True, marks=pytest.mark.slow),
    ],
)
async def test_killed_with_early_reads_the_run_is_as_if_they_had_never_been(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel, moment: str, answered: bool, planned: bool
) -> None:
    """Killed in a read before the plan is whole, with its answer not stored, with the plan queued, or at an effect:
    before the plan there is no step's row; then the run ends as without a kill, and the effect happens once."""
    endpoint.answers(written)
    child: Any = multiprocessing.get_context("spawn").Process(
        target=drive, args=(database_url, tmp_path, endpoint.base_url, moment)
    )
    child.start()
    await asyncio.to_thread(child.join)
    assert child.exitcode == -signal.SIGKILL
    assert (tmp_path / "book").read_text() == "look a\nlook a!\n"
    async with running(database_url, tmp_path, [market(tmp_path / "book")], model=endpoint, **EARLY) as agent:
        before = await agent.engine.journal.read((await agent.show("t")).run_id)
        result = await agent.resume("t")
        rows = await agent.engine.journal.read(result.run_id)
    kinds = [row.kind for row in rows]
    assert ("plan" in [row.kind for row in before]) is planned
    assert any("text_ref" in row.body for row in before if row.kind == "model") is answered
    assert "outcome" not in kinds[: kinds.index("plan")]
    assert (result.status, (result.answer or "").splitlines()[0]) == ("done", "a!!")
    calls = Counter((tmp_path / "book").read_text().splitlines())
    assert calls["charge a!!"] == 1
    assert max(calls.values()) <= 2
    reads = [row for row in rows if row.kind == "early"]
    made_again = sum(row.kind == "outcome" and row.body.get("called", True) for row in rows)
    assert result.usage.attempts == len(reads) + made_again >= sum(calls.values())
