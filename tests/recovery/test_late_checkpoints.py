"""Checkpoints that come late: from a worker that was stopped, and at the end of a drive whose question was answered."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig

from checkpoints.fences import Fences
from plans.decisions import Approve
from tests.recovery.trial import Trials
from tests.running import plan, running, step
from tools.registry import Toolkit

VALIDATED = 2
"""At which coming to the end of a node: `validate`, after `plan`."""


def newest_checkpoint(url: str, thread_id: str) -> Any:
    """Id and status of the thread's newest checkpoint."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT checkpoint_id, checkpoint -> 'channel_values' ->> 'status' FROM checkpoints WHERE thread_id = %s"
            " ORDER BY checkpoint_id DESC LIMIT 1",
            (thread_id,),
        ).fetchone()


def test_a_worker_that_wakes_after_another_took_over_saves_no_newer_checkpoint(trials: Trials) -> None:
    """Stopped past its lease between two nodes and continued when the run is done: the thread's state stays done."""
    trial = trials.trial()
    first = trial.start("first", at="node.flushed", nth=VALIDATED, action="stop", lease_s=1.0, patience_s=0.0)
    first.until("stopped")
    assert trial.start("second").ended()["status"] == "done"
    newest = newest_checkpoint(trials.url, trial.book)
    assert newest[1] == "done"
    first.signal(signal.SIGCONT)
    assert first.ends() != 0
    assert "StaleOwner" in first.log()
    assert newest_checkpoint(trials.url, trial.book) == newest


async def test_who_asked_gets_how_the_run_stands_when_it_was_answered_before_its_last_checkpoint(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is answered by another process in the moment between let go and last checkpoint: the first caller
    gets the run's end, not an error, and the thread's state is that end."""
    monkeypatch.setattr("nodes.engine_opening.fences_of", lambda _: Fences())  # two processes do not share their tables
    kit = Toolkit("asking")

    @kit.tool(effect="read")
    async def look() -> dict[str, int]:
        """Look."""
        return {"seen": 1}

    async with running(database_url, tmp_path, [kit]) as first, running(database_url, tmp_path, [kit]) as other:
        saver: Any = first.graph.checkpointer
        real = saver.aput
        answered = False

        async def late(config: RunnableConfig, *rest: Any) -> RunnableConfig:
            nonlocal answered
            fence = first.engine.fences.of("t")
            if not answered and fence is not None and fence.run_id not in first.engine.sessions:
                answered = True
                decisions = {request.approval_id: Approve() for request in await other.approvals("t")}
                assert (await other.resume("t", decisions=decisions)).status == "done"
            stored: RunnableConfig = await real(config, *rest)
            return stored

        monkeypatch.setattr(saver, "aput", late)
        result = await first.run(plan=plan(step("s1", "look", require_approval=True)), thread_id="t")
        assert answered
        assert result.status == "done"
        assert result == await other.show("t")
    assert newest_checkpoint(database_url, "t")[1] == "done"


async def test_the_result_of_a_drive_is_what_the_journal_says(database_url: str, tmp_path: Path) -> None:
    """It is told from what the session knows, without a second reading; the two are the same."""
    kit = Toolkit("double")

    @kit.tool(effect="read")
    async def double(number: int) -> dict[str, int]:
        """Twice the number."""
        return {"number": 2 * number}

    steps = plan(
        step("each", "double", args={"number": "${item}"}, for_each="${inputs.numbers}"),
        step("last", "double", "each", args={"number": "${each[1].number}"}, require_approval=True),
    )
    async with running(database_url, tmp_path, [kit]) as agent:
        paused = await agent.run(plan=steps, inputs={"numbers": [1, 2, 3]}, thread_id="t")
        assert paused.status == "paused"
        assert paused == await agent.show("t")
        done = await agent.resume("t", approve="all")
        assert done.status == "done"
        assert done == await agent.show("t")
