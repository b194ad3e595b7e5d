"""Tests of asking people: the shape that inboxes read, exact answers only, edits that are never lost and never loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nodes.asking import record_request
from plans.decisions import Approve, Edit, Respond
from plans.errors import ApprovalConflict
from plans.principals import Principal
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit


class Office:
    """A tool that sends, one that waits until it is let go, and what was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.gate = asyncio.Event()
        self.kit = Toolkit("office")
        self.kit.tool(effect="irreversible")(self._send())
        self.kit.tool(effect="read", timeout_s=20)(self._wait())

    def _send(self) -> Any:
        async def send(text: str, ctx: ToolContext) -> dict[str, str]:
            """Send it."""
            self.sent.append(text)
            return {"sent": text}

        return send

    def _wait(self) -> Any:
        async def wait() -> dict[str, bool]:
            """Wait to be let go."""
            await self.gate.wait()
            return {"waited": True}

        return wait


GUARDED = step("g", "send", args={"text": "hi"}, require_approval=True)


async def test_an_edit_that_comes_while_others_run_is_used_and_not_asked_again(
    database_url: str, tmp_path: Path
) -> None:
    """The edited call runs while the slow step still does, as a revision of its own, and exactly once."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(step("w", "wait"), GUARDED), thread_id="t"))
        async with asyncio.timeout(10):
            while not await agent.approvals("t"):  # noqa: ASYNC110 (it is asked in the database)
                await asyncio.sleep(0.01)
            await agent.decide("t", "g", Edit(args={"text": "bye ${x}"}), "ann")
            while not office.sent:  # noqa: ASYNC110 (it is sent in another task)
                await asyncio.sleep(0.01)
        assert not drive.done()
        office.gate.set()
        result = await drive
    assert (result.status, office.sent) == ("done", ["bye ${x}"])
    assert result.plan is not None
    assert (result.plan.revision, result.plan.source) == (2, "human")


async def test_an_edit_that_changes_nothing_is_an_approval(database_url: str, tmp_path: Path) -> None:
    """The same arguments again: the call runs, without a new revision and without asking for ever."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        paused = await agent.run(plan=plan(GUARDED), thread_id="t")
        edit = Edit(args={"text": "hi"})
        result = await asyncio.wait_for(
            agent.resume("t", decisions={paused.approvals[0].approval_id: edit}), timeout=20
        )
    assert (result.status, office.sent) == ("done", ["hi"])
    assert result.plan is not None
    assert result.plan.revision == 1


async def test_an_edit_that_cannot_be_a_plan_is_put_aside_and_asked_about_anew(
    database_url: str, tmp_path: Path
) -> None:
    """Text that looks like a reference and is none is refused: nothing is sent, the question comes back under an id of
    its own, and can be answered."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        paused = await agent.run(plan=plan(GUARDED), thread_id="t")
        first = paused.approvals[0].approval_id
        edit = agent.resume("t", decisions={first: Edit(args={"text": "{{g}}"})})
        again = await asyncio.wait_for(edit, timeout=20)
        assert (again.status, office.sent) == ("paused", [])
        assert again.approvals[0].approval_id != first
        done = await agent.resume("t", decisions={again.approvals[0].approval_id: Approve()})
    assert (done.status, office.sent) == ("done", ["hi"])


async def test_a_decision_about_other_arguments_than_were_seen_is_refused(database_url: str, tmp_path: Path) -> None:
    """The hash of what the person saw goes with the decision; if the stored request is another, nothing is decided."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        paused = await agent.run(plan=plan(GUARDED), thread_id="t")
        await agent.engine.database.execute(
            "UPDATE surestep.approvals SET args_sha256 = 'other',"
            """ request = jsonb_set(request, '{args_sha256}', '"other"')"""
        )
        with pytest.raises(ApprovalConflict, match="not the ones that were shown"):
            await agent.resume("t", decisions={paused.approvals[0].approval_id: Approve()})
    assert office.sent == []


async def test_an_answer_of_a_kind_that_the_question_does_not_take_is_refused(
    database_url: str, tmp_path: Path
) -> None:
    """A risky call is approved, edited or rejected; free text decides nothing, and the question stays."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        paused = await agent.run(plan=plan(GUARDED), thread_id="t")
        with pytest.raises(ApprovalConflict, match="no answer to send"):
            await agent.resume("t", decisions={paused.approvals[0].approval_id: Respond("sure")})
        assert len(await agent.approvals("t")) == 1


async def test_no_answer_in_time_is_a_no(database_url: str, tmp_path: Path) -> None:
    """An approval that has expired fails its step with its own code, and nothing is sent."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        await agent.run(plan=plan(GUARDED), thread_id="t")
        await agent.engine.database.execute("UPDATE surestep.approvals SET expires_at = now() - interval '1 s'")
        result = await asyncio.wait_for(agent.resume("t"), timeout=20)
    assert (result.status, [each.code for each in result.failures]) == ("failed", ["APPROVAL_EXPIRED"])
    assert office.sent == []


async def test_a_run_told_to_ask_nobody_takes_a_no_for_every_question(database_url: str, tmp_path: Path) -> None:
    """`approve="none"` rejects at once and ends honestly; `"all"` approves; neither pauses."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        refused = await agent.run(plan=plan(GUARDED), approve="none")
        assert ([each.code for each in refused.failures], office.sent) == (["REJECTED"], [])
        assert refused.failures[0].message.startswith("nobody has approved ")
        allowed = await agent.run(plan=plan(GUARDED), approve="all")
    assert (refused.status, allowed.status, office.sent) == ("failed", "done", ["hi"])


async def test_a_step_that_asks_with_other_arguments_takes_its_older_question_back(
    database_url: str, tmp_path: Path
) -> None:
    """Whatever the older one was about, nobody can approve it any more, in the table or after a crash."""
    desk = Toolkit("desk")

    @desk.tool(effect="irreversible")
    async def send(text: str) -> str:
        """Send it."""
        return text

    async with running(database_url, tmp_path, [desk]) as agent:
        steps = [step(name, "send", args={"text": name}, require_approval=True) for name in ("a", "b")]
        paused = await agent.run(plan=plan(*steps), thread_id="t")
        old = {request.step_id: request.approval_id for request in paused.approvals}
        run_id = paused.run_id
        session = await agent.engine.session(run_id)
        await record_request(session, "a", "risk", "send", {"text": "other"}, "high", "it reads otherwise now")
        await agent.engine.close_session(run_id)
        with pytest.raises(ApprovalConflict, match="withdrawn"):
            await agent.engine.approvals.decide(old["a"], Approve(), Principal(name="ann"))
        shown = await agent.show("t")
    assert {request.args["text"] for request in shown.approvals} == {"other", "b"}
    assert old["b"] in {request.approval_id for request in shown.approvals}
    assert old["a"] not in {request.approval_id for request in shown.approvals}
