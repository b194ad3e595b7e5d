"""Tests of how a run ends: an honest status and answer, in an order that a crash cannot spoil."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nodes.finish import finish
from nodes.state import AgentState
from plans.failure import ToolFailure
from tests.running import plan, running, step
from tools.registry import Toolkit

kit = Toolkit("ending")


@kit.tool(effect="read", retry={"max_attempts": 1})
async def give(value: Any) -> Any:
    """Give it back, or fail."""
    if value == "fail":
        raise ToolFailure("NOT_FOUND", "there is no such thing")
    return value


@kit.tool(effect="irreversible")
async def send(text: str) -> str:
    """Send it."""
    return text


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"summary": "all is well", "rows": [1]}, "all is well"),
        ({"rows": [1]}, '{"rows": [1]}'),
        ("plain words", "plain words"),
        (["订单"], '["订单"]'),
    ],
)
async def test_a_run_without_a_planned_answer_shows_its_last_result(
    database_url: str, tmp_path: Path, value: Any, answer: str
) -> None:
    """What the result calls its summary, else the result itself, readable in any language."""
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(step("a", "give", args={"value": value})))
    assert (result.status, result.answer) == ("done", answer)


async def test_a_run_whose_steps_were_all_skipped_says_so(database_url: str, tmp_path: Path) -> None:
    """It is done, and it does not pretend to have a result."""
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(
            plan=plan(step("a", "give", args={"value": 1}, when="inputs.n > `5`")), inputs={"n": 1}
        )
    assert result.status == "done"
    assert result.answer == "There is no result. Left out: step a (its condition is false: inputs.n > `5`)."


async def test_a_partial_success_names_what_is_missing_and_what_was_left_out(database_url: str, tmp_path: Path) -> None:
    """The run goes on without the lost step: the answer says what failed, what ran without it, and what did not run."""
    steps = [
        step("lost", "give", args={"value": "fail"}),
        step("with_null", "give", args={"value": {"from": "${lost.deep}"}}, on_dependency_failure="degrade"),
        step("without", "give", args={"value": "${lost}"}, on_dependency_failure="skip"),
        step("free", "give", args={"value": 1}),
    ]
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(*steps, answer="seen: ${with_null}"), thread_id="t")
        state = await agent.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert (result.partial, [each.step for each in result.missing]) == (True, ["lost", "without"])
    assert state.values["missing"] == {each.step: each.why for each in result.missing}
    assert (result.status, [each.status for each in result.steps]) == ("done", ["failed", "done", "skipped", "done"])
    assert (result.answer or "").splitlines() == [
        'seen: {"from": null}',
        "Note: step with_null was run without the result of lost.",
        "Missing: step lost (there is no such thing).",
        "Left out: step without (needs lost, which gave no result).",
    ]


async def test_a_line_of_the_answer_that_finds_nothing_is_told(database_url: str, tmp_path: Path) -> None:
    """In the answer and as a value of its own. Of one about a step that the plan itself has left out only the latter:
    that is what such lines are for."""
    steps = [
        step("a", "give", args={"value": {"x": 1}}, output_schema={}),
        step("b", "give", "a", args={"value": 2}, when="a.x > `5`"),
    ]
    answer = "x is ${a.x}\ny is ${a.y}\nb is ${b}"
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(*steps, answer=answer))
    assert (result.status, result.partial) == ("done", False)
    assert (result.answer or "").splitlines() == [
        "x is 1",
        "Left out: a line of the answer (${a.y} finds nothing in an object with the keys x).",
    ]
    assert [(each.line, each.why) for each in result.left_out] == [
        ("y is ${a.y}", "${a.y} finds nothing in an object with the keys x"),
        ("b is ${b}", "${b} names 'b', which has no result"),
    ]
    assert [each["line"] for each in result.as_json()["left_out"]] == ["y is ${a.y}", "b is ${b}"]


async def test_a_failed_run_takes_its_open_questions_back(database_url: str, tmp_path: Path) -> None:
    """Nobody is asked any more about a run that has ended."""
    guarded = step("g", "send", args={"text": "x"}, require_approval=True)
    lost = step("lost", "give", args={"value": "fail"})
    after = step("z", "give", "lost", args={"value": 1})
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(guarded, lost, after), thread_id="t")
        assert await agent.approvals("t") == []
    assert (result.status, result.approvals) == ("failed", ())


async def test_an_end_that_was_recorded_and_not_told_is_told_again_unchanged(database_url: str, tmp_path: Path) -> None:
    """The process died after the end was in the journal: the node says the same, and writes the status, not the end."""
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(step("a", "give", args={"value": 1})), thread_id="t")
        await agent.engine.database.execute("UPDATE surestep.runs SET status = 'running', summary = '{}'")
        session = await agent.engine.session(result.run_id)
        told = await finish(AgentState(), session)
        await agent.engine.close_session(result.run_id)
        again = await agent.show("t")
        ends = [row for row in await agent.engine.journal.read(result.run_id) if row.kind == "finish"]
    assert (told["status"], told["answer"]) == ("done", "1")
    assert (again.status, again.answer, len(ends)) == ("done", "1", 1)
    assert again.usage == result.usage


async def test_the_status_is_never_ahead_of_the_journal(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the table of runs says that a run is done, its end has been accepted: the answer can be read back."""
    async with running(database_url, tmp_path, [kit]) as agent:
        seen: list[list[str]] = []
        write = agent.engine.runs.set_status

        async def watched(run_id: str, fence: int, status: Any, summary: Any, **more: Any) -> None:
            if status == "done":
                seen.append([row.kind for row in await agent.engine.journal.read(run_id)])
            await write(run_id, fence, status, summary, **more)

        monkeypatch.setattr(agent.engine.runs, "set_status", watched)
        await agent.run(plan=plan(step("a", "give", args={"value": 1})))
    assert seen
    assert all(kinds[-1] == "finish" for kinds in seen)


async def test_time_is_counted_once_over_pauses_and_ends(database_url: str, tmp_path: Path) -> None:
    """The time of every drive counts, the time in which a run waits for a person does not, and nothing counts twice."""
    slow = Toolkit("slow")

    @slow.tool(effect="read")
    async def nap() -> int:
        """A quarter of a second."""
        await asyncio.sleep(0.25)
        return 1

    steps = [step("n", "nap"), step("g", "nap", "n", require_approval=True)]
    async with running(database_url, tmp_path, [slow]) as agent:
        paused = await agent.run(plan=plan(*steps), thread_id="t")
        assert 0.25 <= paused.usage.wall_s < 2.0
        await asyncio.sleep(2.0)
        from plans.decisions import Approve

        done = await agent.resume("t", decisions={paused.approvals[0].approval_id: Approve()})
        state = await agent.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert paused.usage.wall_s + 0.25 <= done.usage.wall_s < paused.usage.wall_s + 1.9
    assert abs(state.values["usage"].wall_s - done.usage.wall_s) < 0.2
