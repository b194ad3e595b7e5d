"""Tests of how drives begin and end: one owner at a time, nothing lost at the seams, inputs looked at again."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpoints.leases import Lease
from checkpoints.rows import Row
from graph.gateway import Agent
from nodes.reopening import uncounted_s
from plans.decisions import Approve
from plans.errors import RunBusy, StaleOwner
from plans.principals import Principal
from tests.nodes.model_server import ScriptedModel
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit


class Desk:
    """A read, an effect that waits to be let go, and what was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.agent: Agent | None = None
        self.kit = Toolkit("desk")
        self.kit.tool(effect="read")(self._look())
        self.kit.tool(effect="irreversible")(self._send())
        self.kit.tool(effect="read")(self._lose_the_lease())

    def _look(self) -> Any:
        async def look(what: str = "") -> dict[str, str]:
            """Look."""
            self.calls.append(f"look {what}")
            return {"seen": what}

        return look

    def _send(self) -> Any:
        async def send(ctx: ToolContext, text: str = "hi") -> dict[str, str]:
            """Send, once let go."""
            self.calls.append(f"send {text}")
            self.began.set()
            await self.gate.wait()
            return {"sent": text}

        return send

    def _lose_the_lease(self) -> Any:
        async def lose_the_lease(ctx: ToolContext) -> bool:
            """As if this process had been stopped for longer than its lease."""
            assert self.agent is not None
            self.agent.engine.sessions[ctx.run_id].lease.valid_until = -math.inf
            return True

        return lose_the_lease


GUARDED = step("g", "send", require_approval=True)
NEW_LETTER = step("g", "send", args={"text": "new"}, require_approval=True)


async def test_a_run_that_another_process_drives_is_left_alone(database_url: str, tmp_path: Path) -> None:
    """The second is told who has it, or waits, and has written nothing: not a row, not a checkpoint."""
    desk = Desk()
    desk.gate.clear()
    async with (
        running(database_url, tmp_path, [desk.kit]) as first,
        running(database_url, tmp_path, [desk.kit]) as second,
    ):
        drive = asyncio.create_task(first.run(plan=plan(step("s", "send")), thread_id="t", request_id="q"))
        await asyncio.wait_for(desk.began.wait(), 10)
        await asyncio.sleep(0.3)
        count = "SELECT (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM checkpoint_writes)"
        before = await first.engine.database.fetch(count)
        with pytest.raises(RunBusy, match="is being driven by"):
            await second.resume("t")
        again = asyncio.create_task(second.run(plan=plan(step("s", "send")), thread_id="t", request_id="q"))
        await asyncio.sleep(0.5)
        assert not again.done()
        assert await first.engine.database.fetch(count) == before
        desk.gate.set()
        assert [(await drive).status, (await again).status] == ["done", "done"]
    assert desk.calls == ["send hi"]


async def test_an_owner_that_is_late_and_still_the_owner_writes_a_new_intent(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time to begin was over when the intent was accepted, and its lease has been renewed meanwhile: it says anew
    by when it will begin, and calls once."""
    desk = Desk()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        submit, clock = agent.engine.journal.submit, agent.engine.clock

        async def slowly(row: Row, **named: Any) -> asyncio.Future[None]:
            future = await submit(row, **named)
            if row.kind not in ("plan", "intent"):
                return future
            lease = agent.engine.sessions[row.run_id].lease
            if row.kind == "plan":
                lease.valid_until = clock.monotonic() + 0.3
            elif lease.valid_until < clock.monotonic() + 1:
                await asyncio.sleep(0.5)
                lease.valid_until = clock.monotonic() + 30
            return future

        monkeypatch.setattr(agent.engine.journal, "submit", slowly)
        result = await agent.run(plan=plan(step("s", "send")), thread_id="t")
        rows = await agent.engine.database.fetch("SELECT kind FROM surestep.journal WHERE step_id = 's' ORDER BY n")
    assert (result.status, desk.calls) == ("done", ["send hi"])
    assert [row["kind"] for row in rows] == ["intent", "intent", "outcome"]


async def test_after_its_lease_has_run_out_an_owner_begins_no_effect(database_url: str, tmp_path: Path) -> None:
    """Its intent may be accepted, but the call is not made; the next drive asks whether it was."""
    desk = Desk()
    async with running(database_url, tmp_path, [desk.kit]) as desk.agent:
        with pytest.raises(StaleOwner, match="could not be renewed in time"):
            await desk.agent.run(plan=plan(step("l", "lose_the_lease"), step("s", "send", "l")), thread_id="t")
        assert desk.calls == []
        again = await desk.agent.resume("t")
    assert (again.status, [each.kind for each in again.approvals]) == ("paused", ["unknown_outcome"])
    assert desk.calls == []


async def test_a_drive_that_is_cancelled_waits_for_its_effect_and_the_next_goes_on(
    database_url: str, tmp_path: Path
) -> None:
    """The caller gives up while a letter is on its way: its outcome is recorded first, and it is not sent again."""
    desk = Desk()
    desk.gate.clear()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(step("s", "send"), step("z", "look", "s")), thread_id="t"))
        await asyncio.wait_for(desk.began.wait(), 10)
        drive.cancel()
        await asyncio.sleep(0.2)
        drive.cancel()
        desk.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await drive
        result = await agent.resume("t")
    assert (result.status, desk.calls) == ("done", ["send hi", "look "])


async def test_an_effect_whose_end_cannot_be_stored_is_unknown_when_the_drive_ends(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever: past its deadline it is recorded as unknown, and the next drive asks a person."""
    post, posted = Toolkit("post"), asyncio.Event()

    @post.tool(effect="irreversible")
    async def publish() -> str:
        """Publish it; what comes back is large."""
        posted.set()
        return "x" * 40_000

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("nodes.scheduler.STORING_S", 0.2)
    async with running(database_url, tmp_path, [post]) as agent, running(database_url, tmp_path, [post]) as other:
        monkeypatch.setattr(agent.engine.artifacts, "put", never)
        drive = asyncio.create_task(agent.run(plan=plan(step("p", "publish", timeout_s=0.5)), thread_id="t"))
        await asyncio.wait_for(posted.wait(), 10)
        drive.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(drive, 10)
        result = await other.resume("t")
    assert (result.status, [each.kind for each in result.approvals]) == ("paused", ["unknown_outcome"])
    assert "could not be stored" in result.approvals[0].reason


async def test_a_session_that_is_being_closed_is_closed_although_who_closes_it_is_cancelled(
    database_url: str, tmp_path: Path
) -> None:
    """Whoever comes second waits for the same end: the letter's outcome is in the journal before the lease is free."""
    desk = Desk()
    desk.gate.clear()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(step("s", "send")), thread_id="t"))
        await asyncio.wait_for(desk.began.wait(), 10)
        run_id = (await agent.runs())[0].run_id
        closing = asyncio.create_task(agent.engine.close_session(run_id))
        await asyncio.sleep(0.1)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        second = asyncio.create_task(agent.engine.close_session(run_id))
        await asyncio.sleep(0.1)
        assert not second.done()
        desk.gate.set()
        await asyncio.wait_for(second, 10)
        kinds = [row.kind for row in await agent.engine.journal.read(run_id) if row.step_id == "s"]
        await asyncio.gather(drive, return_exceptions=True)
        result = await agent.resume("t")
    assert kinds == ["intent", "outcome"]
    assert (result.status, desk.calls) == ("done", ["send hi"])


async def test_a_decision_in_the_moment_of_letting_go_is_not_lost(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody decides after the run has looked and before it lets go: it goes on by itself, without an interrupt."""
    desk = Desk()
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        release = agent.engine.leases.release

        async def late(lease: Lease, *, unless_decided: Any = ()) -> bool:
            for approval_id in unless_decided:
                await agent.engine.approvals.decide(approval_id, Approve(), Principal(name="ann"))
            return await release(lease, unless_decided=unless_decided)

        monkeypatch.setattr(agent.engine.leases, "release", late)
        result = await agent.run(plan=plan(GUARDED), thread_id="t")
        state = await agent.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert (result.status, desk.calls, state.interrupts) == ("done", ["send hi"], ())


async def test_a_limited_end_that_was_not_told_is_still_limited_and_goes_on_when_raised(
    database_url: str, tmp_path: Path
) -> None:
    """The process died on its way out of a limited run: that is told first, never a success that is none."""
    desk = Desk()
    each = step("e", "look", args={"what": "${item}"}, for_each="${inputs.list}")
    async with running(database_url, tmp_path, [desk.kit]) as agent:
        limited = await agent.run(
            plan=plan(each), inputs={"list": ["a", "b"]}, thread_id="t", limits={"max_for_each": 1}
        )
        assert limited.status == "limited"
        await agent.engine.database.execute("UPDATE surestep.runs SET status = 'running'")
        await agent.engine.database.execute(
            "DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"
        )
        await agent.engine.database.execute(
            "DELETE FROM checkpoint_writes WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"
        )
        told = await agent.resume("t")
        assert (told.status, desk.calls) == ("limited", [])
        raised = await agent.resume("t", limits={"max_for_each": 2})
    assert (raised.status, sorted(desk.calls)) == ("done", ["look a", "look b"])


@pytest.mark.parametrize("raised", [None, {"max_replans": 1}], ids=["as it was", "under a higher limit"])
async def test_a_changed_input_has_the_rest_planned_anew_where_a_model_can(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel, raised: dict[str, int] | None
) -> None:
    """While the run waits its input file changes: nothing of the old plan is sent; the planner is told what happened,
    what is finished is kept, and the same change is not told twice. A limit that whoever goes on has raised counts."""
    desk = Desk()
    orders = tmp_path / "orders.csv"
    orders.write_text("one")
    endpoint.answers(json.dumps(plan(step("n", "look", args={"what": "again"}), NEW_LETTER)))
    first = step("f", "look", args={"what": "first"})
    async with running(database_url, tmp_path, [desk.kit], model=endpoint) as agent:
        given = plan(first, {**GUARDED, "depends_on": ["f"]})
        limits = {"max_replans": 0} if raised else None
        paused = await agent.run(plan=given, inputs={"orders": orders}, thread_id="t", limits=limits)
        orders.write_text("two")
        again = await agent.resume("t", decisions={paused.approvals[0].approval_id: Approve()}, limits=raised)
        assert again.status == "paused", again.answer
        assert again.usage.global_replans == 1
        done = await agent.resume("t", decisions={again.approvals[0].approval_id: Approve()})
    assert (done.status, done.usage.global_replans) == ("done", 1)
    assert desk.calls == ["look first", "look again", "send new"]
    assert "INPUT_CHANGED" in endpoint.prompt(0)


def row(fence: int, n: int, seconds: float, **body: Any) -> Row:
    """A row that was accepted at this second."""
    at = datetime(2026, 11, 29, 12, tzinfo=UTC) + timedelta(seconds=seconds)
    return Row("r", fence, n, "outcome", "s", 1, body, at=at)


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([], 0.0),
        ([row(1, 1, 0.0), row(1, 2, 7.0)], 7.0),
        ([row(1, 1, 0.0), row(1, 2, 5.0, wall_s=5.0)], 0.0),
        ([row(1, 1, 0.0), row(1, 2, 5.0, wall_s=5.0), row(1, 3, 6.5)], 1.5),
        ([row(1, 1, 0.0), row(1, 2, 5.0), row(2, 1, 90.0, wall_s=5.0), row(2, 2, 92.0)], 2.0),
    ],
    ids=["nothing", "killed", "ended in order", "killed after a pause", "killed twice"],
)
def test_the_time_of_a_killed_drive_is_known_from_its_rows(rows: list[Row], seconds: float) -> None:
    """From its first row, or the last that wrote the time down, to its last; time between drives is not the run's."""
    assert uncounted_s(rows) == seconds
