"""Tests of answers that come after their call was given up: noted always, believed where nobody knows better."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graph.commands.looking import _remark
from graph.gateway import Agent
from graph.result import RunResult, StepResult
from nodes import scheduler
from nodes.events import Event
from plans.decisions import Reject, Respond
from plans.failure import ToolFailure
from plans.principals import Principal
from tests.running import plan, running, step
from tests.tools.test_isolation import eventually
from tools.registry import Toolkit

ONCE = {"max_attempts": 1}


class Slow:
    """Tools that block their thread until they are let go, and one that keeps the run alive meanwhile."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.over = asyncio.Event()
        self.calls: list[str] = []
        self.raises: list[Exception] = []
        self.kit = Toolkit("slow")
        self.kit.add(self.send, effect="irreversible", timeout_s=0.3)
        self.kit.add(self.charge, effect="idempotent", timeout_s=0.3, retry=ONCE)
        self.kit.add(self.read, effect="read", timeout_s=0.3, retry=ONCE)
        self.kit.add(self.stubborn, effect="irreversible", timeout_s=0.3)
        self.kit.add(self.wait, effect="read", timeout_s=30)
        self.kit.add(self.after, effect="read")

    def _block(self, name: str) -> dict[str, int]:
        self.calls.append(name)
        if self.calls.count(name) == 1:
            self.go.wait(20)
            if self.raises:
                raise self.raises.pop()
        return {"call": self.calls.count(name)}

    def send(self, text: str = "hi") -> dict[str, int]:
        """Send it."""
        return self._block("send")

    def charge(self) -> dict[str, int]:
        """Charge it."""
        return self._block("charge")

    def read(self) -> dict[str, int]:
        """Read it."""
        return self._block("read")

    async def stubborn(self) -> dict[str, int]:
        """Goes on when it is told to stop."""
        self.calls.append("stubborn")
        while not self.go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return {"call": 1}

    async def wait(self) -> str:
        """Last until the test says so."""
        await self.over.wait()
        return "over"

    async def after(self, given: int) -> int:
        """Take a result on."""
        return given


@pytest.fixture
async def slow() -> AsyncIterator[Slow]:
    """Nothing of it blocks when the test is over."""
    made = Slow()
    yield made
    made.go.set()


WAIT = step("w", "wait")


async def asked(agent: Agent) -> str:
    """The id of the question, once there is one."""
    async with asyncio.timeout(10):
        while not (waiting := await agent.engine.approvals.pending("t")):  # noqa: ASYNC110 (another task asks)
            await asyncio.sleep(0.02)
    return waiting[0].approval_id


async def late_rows(agent: Agent) -> list[dict[str, Any]]:
    """The rows of late answers in the journal."""
    rows = await agent.engine.database.fetch("SELECT body FROM surestep.journal WHERE kind = 'late' ORDER BY fence, n")
    return [row["body"] for row in rows]


async def noted(agent: Agent) -> None:
    """Wait until a late answer is in the journal."""
    async with asyncio.timeout(10):
        while not await late_rows(agent):  # noqa: ASYNC110 (another task writes)
            await asyncio.sleep(0.02)


def one(result: RunResult, name: str) -> StepResult:
    """A step of the result."""
    return next(each for each in result.steps if each.id == name)


async def test_a_late_result_settles_an_effect_in_doubt(database_url: str, tmp_path: Path, slow: Slow) -> None:
    """A person is asked, the thread comes back: it has happened, with this result. Nobody is asked any more, nothing is
    sent again, and what depends on it runs."""
    events: list[Event] = []
    after = step("a", "after", "s", args={"given": "${s.call}"})
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(
            agent.run(plan=plan(step("s", "send"), after, WAIT), thread_id="t", on_event=events.append)
        )
        await asked(agent)
        slow.go.set()
        await noted(agent)
        assert await agent.engine.approvals.pending("t") == []
        slow.over.set()
        result = await going
        shown = one(await agent.show("t"), "s")
    assert (result.status, slow.calls) == ("done", ["send"])
    assert {each.id: each.status for each in result.steps} == {"s": "done", "a": "done", "w": "done"}
    assert shown == one(result, "s")
    [end] = shown.late
    assert (end.attempt, end.code, end.output_ref, end.settled) == (1, None, shown.output_ref, True)
    assert end.late_s > 0
    assert "attempt 1 came back" in _remark(shown)
    assert "well, which settled it" in _remark(shown)
    assert any("so it has happened" in (event.message or "") for event in events)
    assert result.as_json()["steps"][0]["late"][0]["settled"] is True


async def test_a_late_answer_that_it_has_not_happened_is_a_failure_like_any_other(
    database_url: str, tmp_path: Path, slow: Slow
) -> None:
    """A refusal that comes late is certain: the step is tried again by the rules of its code, and no oftener."""
    slow.raises = [ToolFailure("CONFLICT", "somebody else is at it")]
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("s", "send"), WAIT), thread_id="t"))
        await asked(agent)
        slow.go.set()
        await eventually(lambda: len(slow.calls) == 2)
        slow.over.set()
        result = await going
    [end] = one(result, "s").late
    assert (result.status, end.code, end.settled, slow.calls) == ("done", "CONFLICT", True, ["send", "send"])
    assert result.approvals == ()


@pytest.mark.parametrize(
    "error", [ConnectionResetError("cut"), ToolFailure("OUTPUT_INVALID", "x")], ids=["cut off", "its own word"]
)
async def test_a_late_failure_says_only_what_it_is_certain_of(
    database_url: str, tmp_path: Path, slow: Slow, error: Exception
) -> None:
    """A connection that is cut leaves the question with the person; what the tool says itself is its word."""
    slow.raises = [error]
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("s", "send"), WAIT), thread_id="t"))
        await asked(agent)
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
    is_certain = isinstance(error, ToolFailure)
    assert [end.settled for end in one(result, "s").late] == [is_certain]
    assert (result.status, slow.calls) == ("failed" if is_certain else "paused", ["send"])


@pytest.mark.parametrize(
    ("decision", "status"), [(Reject(message="leave it"), "skipped"), (Respond('{"call": 7}'), "done")]
)
async def test_a_persons_decision_is_not_overridden(
    database_url: str, tmp_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch, decision: Any, status: str
) -> None:
    """Somebody has decided, and the run has not seen it yet: the late answer is noted, and the decision holds."""
    monkeypatch.setattr(scheduler, "DECISIONS_EVERY_S", 60.0)
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("s", "send"), WAIT), thread_id="t"))
        await agent.engine.approvals.decide(await asked(agent), decision, Principal(name="ann"))
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
        shown = one(result, "s")
        if status == "done":
            assert (await agent.output("t", shown.output_ref or "")) == b'{"call":7}'
    assert (shown.status, [end.settled for end in shown.late], slow.calls) == (status, [False], ["send"])


async def test_a_charge_that_waits_to_be_sent_again_is_not_sent(database_url: str, tmp_path: Path, slow: Slow) -> None:
    """An idempotent effect would be sent again in a second; its first answer comes before, and that is that."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("c", "charge"), WAIT), thread_id="t"))
        await eventually(lambda: bool(slow.calls))
        await asyncio.sleep(0.6)  # its time is over, and the wait before the next attempt has begun
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
    assert (one(result, "c").status, slow.calls) == ("done", ["charge"])
    assert [end.settled for end in one(result, "c").late] == [True]


async def test_a_late_answer_of_a_read_is_noted(database_url: str, tmp_path: Path, slow: Slow) -> None:
    """The second attempt has given the result; what the first one said late changes nothing."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("r", "read"), WAIT), thread_id="t"))
        await eventually(lambda: len(slow.calls) == 2)
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
        assert await agent.output("t", one(result, "r").output_ref or "") == b'{"call":2}'
    [end] = one(result, "r").late
    assert (end.attempt, end.settled, one(result, "r").attempts) == (1, False, 2)


async def test_what_was_told_to_stop_is_not_believed(database_url: str, tmp_path: Path, slow: Slow) -> None:
    """An async tool that swallows its cancellation may return half of what it has done: a person decides."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(step("s", "stubborn"), WAIT), thread_id="t"))
        await asked(agent)
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
    assert (result.status, [end.settled for end in one(result, "s").late]) == ("paused", [False])
    assert one(result, "s").in_doubt


async def test_a_late_result_that_is_no_success_is_a_persons_to_judge(
    database_url: str, tmp_path: Path, slow: Slow
) -> None:
    """The step's own criterion is false of it: it is noted, and the question stays."""
    never = step("s", "send", success_when="call > `5`")
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        going = asyncio.create_task(agent.run(plan=plan(never, WAIT), thread_id="t"))
        await asked(agent)
        slow.go.set()
        await noted(agent)
        slow.over.set()
        result = await going
    assert (result.status, [end.settled for end in one(result, "s").late]) == ("paused", [False])


async def test_what_comes_back_after_the_run_was_let_go_changes_nothing(
    database_url: str, tmp_path: Path, slow: Slow
) -> None:
    """The run waits for a person and nobody owns it: the answer is not taken, and the person's is."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        paused = await agent.run(plan=plan(step("s", "send")), thread_id="t")
        slow.go.set()
        await asyncio.sleep(0.1)
        assert (paused.status, await late_rows(agent)) == ("paused", [])
        [question] = paused.approvals
        result = await agent.resume("t", decisions={question.approval_id: Respond('{"call": 9}')})
        assert await agent.output("t", one(result, "s").output_ref or "") == b'{"call":9}'
    assert (result.status, slow.calls) == ("done", ["send"])


async def test_what_comes_back_while_the_run_is_let_go_changes_nothing(
    database_url: str, tmp_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the decision to pause and the pause the answer comes: the question stays, and a person answers it."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        release = agent.engine.leases.release

        async def slowly(lease: Any, **more: Any) -> bool:
            slow.go.set()
            await asyncio.sleep(0.2)
            return await release(lease, **more)

        monkeypatch.setattr(agent.engine.leases, "release", slowly)
        paused = await agent.run(plan=plan(step("s", "send")), thread_id="t")
        assert (paused.status, await late_rows(agent)) == ("paused", [])
        [question] = await agent.engine.approvals.pending("t")
        result = await agent.resume("t", decisions={question.approval_id: Respond('{"call": 9}')})
    assert (result.status, slow.calls) == ("done", ["send"])


async def test_what_comes_back_while_a_person_is_being_asked_takes_the_question_back(
    database_url: str, tmp_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the failure and its question the answer comes: no question about a step that is done is left."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        record = agent.engine.approvals.record

        async def slowly(requests: Any) -> None:
            slow.go.set()
            await asyncio.sleep(0.2)
            await record(requests)

        monkeypatch.setattr(agent.engine.approvals, "record", slowly)
        going = asyncio.create_task(agent.run(plan=plan(step("s", "send"), WAIT), thread_id="t"))
        await noted(agent)
        slow.over.set()
        result = await going
        assert await agent.engine.approvals.pending("t") == []
    assert (result.status, [end.settled for end in one(result, "s").late]) == ("done", [True])


async def test_a_question_that_was_taken_back_without_a_word_is_asked_again(
    database_url: str, tmp_path: Path, slow: Slow
) -> None:
    """Whoever took it back died before the row that says why: whoever goes on with the run asks anew, and the answer
    is taken."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        paused = await agent.run(plan=plan(step("s", "send")), thread_id="t")
        [question] = paused.approvals
        assert await agent.engine.approvals.withdraw([question.approval_id]) == [question.approval_id]
        await agent.engine.database.execute("UPDATE surestep.runs SET status = 'running'")
        again = await agent.resume("t")
        assert (again.status, again.approvals) == ("paused", paused.approvals)
        result = await agent.resume("t", decisions={question.approval_id: Respond('{"call": 9}')})
    assert (result.status, slow.calls) == ("done", ["send"])


async def test_only_the_owner_takes_a_question_back(database_url: str, tmp_path: Path, slow: Slow) -> None:
    """A worker that has lost the run to another cannot take back what that one asks."""
    async with running(database_url, tmp_path, [slow.kit]) as agent:
        paused = await agent.run(plan=plan(step("s", "send")), thread_id="t")
        [question] = paused.approvals
        [lease] = await agent.engine.database.fetch("SELECT fence FROM surestep.leases")
        take = agent.engine.approvals.withdraw_as_owner
        assert await take(paused.run_id, lease["fence"] - 1, [question.approval_id]) == []
        assert len(await agent.engine.approvals.pending("t")) == 1
        assert await take(paused.run_id, lease["fence"], [question.approval_id]) == [question.approval_id]
