"""Nobody is left waiting: what is not answered in time is a no, and what is decided goes on, whoever has died."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from checkpoints.outbox import Outbox
from checkpoints.resumptions import MOST_ATTEMPTS
from graph.gateway import Agent
from graph.sweeping import SweepReport
from plans.decisions import Approve
from plans.errors import StorageUnavailable
from tests.graph.kits import Shop, plan, step
from tests.graph.receiver import Receiver
from tests.running import running
from tools.registry import Toolkit

ASKS = plan(step("s1", "send", args={"to": "ann", "text": "hi"}, require_approval=True))


async def time_passes(agent: Agent) -> None:
    """Every question that can expire has."""
    await agent.engine.database.execute(
        "UPDATE surestep.approvals SET expires_at = now() - interval '1 s' WHERE expires_at IS NOT NULL"
    )


async def worker_dies(agent: Agent, thread_id: str) -> None:
    """What a worker leaves that was killed in the middle of the thread's run."""
    await agent.engine.database.execute(
        "UPDATE surestep.leases SET owner = 'gone', expires_at = now() - interval '1 s' WHERE run_id IN"
        " (SELECT run_id FROM surestep.runs WHERE thread_id = %s)",
        (thread_id,),
    )
    await agent.engine.database.execute("UPDATE surestep.runs SET status = 'running', ended_at = NULL")


def gone_on(report: SweepReport) -> list[tuple[str, str, str]]:
    """With which threads it has gone on, why, and how they stand."""
    return [(each.thread_id, each.why, each.status) for each in report.gone_on]


async def test_silence_becomes_a_stored_no_and_the_run_goes_on(database_url: str, tmp_path: Path) -> None:
    """After the expiry a sweep writes it down, ends what hung on it, and says so; nothing was sent; it does so once."""
    shop = Shop()
    async with running(database_url, tmp_path, [shop.kit]) as agent:
        first = await agent.run(plan=ASKS, thread_id="t1")
        expires_at = first.approvals[0].expires_at
        assert expires_at is not None
        assert (expires_at - first.approvals[0].created_at).total_seconds() == 300
        assert await agent.sweeper.once() == SweepReport()
        await time_passes(agent)
        report = await agent.sweeper.once()
        assert (report.expired, gone_on(report)) == (1, [("t1", "expired", "failed")])
        (stored,) = await agent.engine.approvals.of_run(first.run_id)
        assert (stored.status, stored.decided_at is not None, stored.decision) == ("expired", True, None)
        shown = await agent.show("t1")
        assert [failure.code for failure in shown.failures] == ["APPROVAL_EXPIRED"]
        assert [each.trigger for each in shown.resumes] == ["expiry"]
        assert await agent.sweeper.once() == SweepReport()
    assert shop.calls["send"] == 0


async def test_a_decision_whose_decider_died_is_not_lost(database_url: str, tmp_path: Path) -> None:
    """Of two sweepers at once one goes on with it, and what was approved happens once."""
    shop = Shop()
    async with running(database_url, tmp_path, [shop.kit]) as one, running(database_url, tmp_path, [shop.kit]) as two:
        await one.run(plan=ASKS, thread_id="t1")
        await one.decide("t1", "s1", Approve(), by="ann")
        reports = await asyncio.gather(one.sweeper.once(), two.sweeper.once())
        assert [each for report in reports for each in gone_on(report)] == [("t1", "decided", "done")]
        assert [left for report in reports for left in report.left] == []
        assert (await one.show("t1")).status == "done"
        assert await one.engine.database.fetch("SELECT * FROM surestep.resumptions") == []
    assert shop.calls["send"] == 1


async def test_an_owner_that_comes_to_a_pause_too_late_goes_on_by_itself(database_url: str, tmp_path: Path) -> None:
    """A question that has expired while other steps ran lets no run pause: nobody would answer it any more."""
    shop, kit = Shop(), Toolkit("slow")

    @kit.tool(effect="read")
    async def slow() -> dict[str, int]:
        """Takes longer than anybody has to answer."""
        await asyncio.sleep(0.4)
        return {"n": 1}

    both = plan(step("s1", "send", args={"to": "ann", "text": "hi"}, require_approval=True), step("s2", "slow"))
    async with running(database_url, tmp_path, [shop.kit, kit], approval_expires_s=0.1) as agent:
        result = await agent.run(plan=both, thread_id="t1")
        assert ([failure.code for failure in result.failures], result.approvals) == (["APPROVAL_EXPIRED"], ())
        (stored,) = await agent.engine.approvals.of_run(result.run_id)
        assert stored.status == "expired"


async def test_a_question_waits_for_ever_where_the_setting_says_none(database_url: str, tmp_path: Path) -> None:
    """Turned off, nothing expires, however long it is."""
    async with running(database_url, tmp_path, [Shop().kit], approval_expires_s="none") as agent:
        first = await agent.run(plan=ASKS, thread_id="t1")
        assert first.approvals[0].expires_at is None
        await time_passes(agent)
        assert await agent.sweeper.once() == SweepReport()
        assert (await agent.show("t1")).status == "paused"


async def test_a_run_whose_worker_is_gone_is_gone_on_with_and_one_that_was_stopped_is_not(
    database_url: str, tmp_path: Path
) -> None:
    """Who stops a run in order means it; a worker that was killed did not mean anything."""
    shop = Shop()
    async with running(database_url, tmp_path, [shop.kit]) as agent:
        await agent.run(plan=ASKS, thread_id="lost")
        await agent.run(plan=ASKS, thread_id="stopped")
        await agent.decide("lost", "s1", Approve(), by="ann")
        await worker_dies(agent, "lost")
        report = await agent.sweeper.once()
        assert gone_on(report) == [("lost", "lost", "done")]
        left = {row["thread_id"]: row["why"] for row in await agent.engine.database.fetch(LEFT)}
        assert left == {"stopped": "running"}
    assert shop.calls["send"] == 1


LEFT = "SELECT thread_id, status AS why FROM surestep.runs WHERE status NOT IN ('done', 'failed')"


async def test_a_sweeper_without_a_run_s_tools_leaves_it_to_one_that_has_them(
    database_url: str, tmp_path: Path
) -> None:
    """It would fail for nothing but where it was taken up; it is named instead, and nothing of it is touched."""
    shop = Shop()
    async with running(database_url, tmp_path, [shop.kit]) as agent, running(database_url, tmp_path, []) as poor:
        await agent.run(plan=ASKS, thread_id="t1")
        await agent.decide("t1", "s1", Approve(), by="ann")
        report = await poor.sweeper.once()
        assert report.gone_on == ()
        (left,) = report.left
        assert (left.thread_id, left.reason.split(";")[0]) == ("t1", "needs tools that are not here: send")
        assert gone_on(await agent.sweeper.once()) == [("t1", "decided", "done")]
    assert shop.calls["send"] == 1


async def test_a_run_that_gets_nowhere_is_not_tried_for_ever_and_is_told(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt waits longer for the next one; after the last one people are told, and `doctor` has the reason."""
    async with running(database_url, tmp_path, [Shop().kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t1")
        await agent.decide("t1", "s1", Approve(), by="ann")

        async def breaks(*_: Any, **__: Any) -> None:
            raise StorageUnavailable("the bucket is away")

        monkeypatch.setattr("graph.driving.Driver.go_on", breaks)
        for attempt in range(MOST_ATTEMPTS + 2):
            (left,) = (await agent.sweeper.once()).left
            assert ("times in vain" in left.reason) == (attempt >= MOST_ATTEMPTS), left
            assert "the bucket is away" in left.reason
            assert attempt >= MOST_ATTEMPTS - 1 or await agent.sweeper.once() == SweepReport()  # not yet again
            await agent.engine.database.execute("UPDATE surestep.resumptions SET next_at = now()")
        events = await Outbox(agent.engine.database).claim()
        assert [(event.kind, event.code) for event in events if event.kind == "run_stuck"] == [
            ("run_stuck", "RUN_STUCK")
        ]


async def test_a_question_is_told_anew_to_those_it_escalates_to(
    database_url: str, tmp_path: Path, httpserver: HTTPServer
) -> None:
    """At its time it is told once more, with who may decide now; answered by nobody, its expiry is told too."""
    receiver = Receiver(httpserver)
    async with running(database_url, tmp_path, [Shop().kit], **receiver.settings) as agent:
        await agent.run(plan=ASKS, thread_id="t1")
        await agent.sweeper.once()
        await agent.engine.database.execute(
            """UPDATE surestep.approvals SET request = request ||
            '{"escalates_at": "2026-01-01T00:00:00Z", "escalates_to": ["head"]}'"""
        )
        assert (await agent.sweeper.once()).escalated == 1
        assert (await agent.sweeper.once()).escalated == 0
        await time_passes(agent)
        await agent.sweeper.once()
    assert receiver.types() == ["approval.requested", "approval.escalated", "approval.expired", "run.failed"]
    assert receiver.heard[1]["approval"]["escalates_to"] == ["head"]
    assert receiver.heard[2]["code"] == receiver.heard[3]["code"] == "APPROVAL_EXPIRED"


async def test_a_sweeper_that_is_cancelled_lets_its_runs_go_in_order(database_url: str, tmp_path: Path) -> None:
    """What it has gone on with is let go as by any stop, and the next sweeper need not wait for a lease to run out."""
    kit, begun = Toolkit("slow"), asyncio.Event()

    @kit.tool(effect="read")
    async def slow() -> dict[str, int]:
        """Does not end by itself."""
        begun.set()
        await asyncio.sleep(60)
        return {"n": 1}

    shop = Shop()
    after = plan(*ASKS["steps"], step("s2", "slow", "s1"))
    async with running(database_url, tmp_path, [shop.kit, kit]) as agent:
        await agent.run(plan=after, thread_id="t1")
        await agent.decide("t1", "s1", Approve(), by="ann")
        sweeping = asyncio.create_task(agent.sweeper.forever(0.1))
        await asyncio.wait_for(begun.wait(), 20)
        sweeping.cancel()
        await asyncio.wait({sweeping})
        (lease,) = await agent.engine.database.fetch("SELECT owner FROM surestep.leases")
        assert lease["owner"] is None
    assert shop.calls["send"] == 1


async def test_sweeping_for_ever_finds_what_comes_later(database_url: str, tmp_path: Path) -> None:
    """Inside a program that lives long: a decision that comes while it sweeps is gone on with by itself."""
    shop, told = Shop(), list[str]()
    async with running(database_url, tmp_path, [shop.kit]) as agent:
        sweeping = asyncio.create_task(agent.sweeper.forever(0.1, told.append))
        await agent.run(plan=ASKS, thread_id="t1")
        await agent.decide("t1", "s1", Approve(), by="ann")
        async with asyncio.timeout(20):
            while not told:  # noqa: ASYNC110 (what is waited for happens in another task)
                await asyncio.sleep(0.02)
        sweeping.cancel()
        await asyncio.wait({sweeping})
        assert told == ["t1: gone on with (decided), now done"]
    assert shop.calls["send"] == 1
