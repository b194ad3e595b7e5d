"""Tests of verdicts in a run: one for each outcome, whatever fails at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.agent import open_agent
from graph.settings import Settings
from plans.failure import CODES, ToolFailure
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit

LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}
PLAIN = ("CONFLICT", "NOT_FOUND", "TOOL_ERROR", "CRITERION_FALSE", "PREMISE_BROKEN", "LIMIT_COST", "REJECTED", None)


def failing_kit() -> Toolkit:
    """A tool that fails as it is told, and its alternative, which does not."""
    kit = Toolkit("failing")

    @kit.tool(effect="read", retry={"max_attempts": 1}, breaker=LENIENT)
    async def act(code: str | None) -> dict[str, bool]:
        """Fail with this code."""
        if code is not None:
            raise ToolFailure(code, f"it is {code}")
        return {"done": True}

    @kit.tool(effect="read", retry={"max_attempts": 1}, breaker=LENIENT, fallbacks=["act"])
    async def mended(code: str | None) -> dict[str, bool]:
        """Fail with this code, and have an alternative that does too."""
        raise ToolFailure(code or "TOOL_ERROR", "no")

    return kit


@pytest.mark.timeout(300)
def test_each_outcome_gets_exactly_one_verdict_whatever_fails_at_once(database_url: str, tmp_path: Path) -> None:
    """Soft, hard, semantic, policy and limit failures of several steps in one moment: after the run each failed
    attempt has one verdict, none has two, and only the end of the run leaves one without."""
    loaded = Settings.load(environment={}, database_url=database_url, folder=tmp_path, output=tmp_path / "out")
    opening = open_agent([failing_kit()], settings=loaded)
    with asyncio.Runner() as runner:
        agent = runner.run(opening.__aenter__())

        @settings(max_examples=30)
        @given(st.lists(st.tuples(st.sampled_from(["act", "mended"]), st.sampled_from(PLAIN)), min_size=1, max_size=6))
        def example(drawn: list[tuple[str, str | None]]) -> None:
            steps = [step(f"s{n}", tool, args={"code": code}) for n, (tool, code) in enumerate(drawn)]
            result = runner.run(agent.run(plan=plan(*steps)))
            rows = runner.run(agent.engine.journal.read(result.run_id))
            failures = [(row.step_id, row.attempt) for row in rows if row.body.get("failure") and row.kind != "finish"]
            verdicts = [(row.step_id, row.attempt) for row in rows if row.kind == "verdict"]
            assert len(set(verdicts)) == len(verdicts)
            assert set(verdicts) <= set(failures)
            ended_early = any(row.body["verdict"]["verdict"] == "finish" for row in rows if row.kind == "verdict")
            assert ended_early or set(verdicts) == set(failures)
            limited = any(CODES[failure.code].class_ == "limit" for failure in result.failures)
            whole = all(each.status == "done" for each in result.steps)
            assert result.status == ("limited" if limited else "done" if whole else "failed")

        try:
            example()
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def test_a_list_whose_element_is_lost_is_not_tried_again_as_a_whole(database_url: str, tmp_path: Path) -> None:
    """The element had its tries; its step fails with the element's code at once, without waits and without calls."""
    kit = Toolkit("list")
    calls: list[Any] = []

    @kit.tool(effect="read", retry={"max_attempts": 1}, breaker=LENIENT)
    async def act(number: int, ctx: ToolContext) -> int:
        """Fail for 2."""
        calls.append(number)
        if number == 2:
            raise ToolFailure("CONFLICT", "two is taken")
        return number

    each = step("e", "act", args={"number": "${item}"}, for_each="${inputs.list}")
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(each), inputs={"list": [1, 2, 3]})
        rows = await agent.engine.journal.read(result.run_id)
    assert (result.status, sorted(calls)) == ("failed", [1, 2, 2, 2, 3])
    assert {failure.code for failure in result.failures} == {"CONFLICT"}
    assert [row.body["verdict"]["verdict"] for row in rows if row.kind == "verdict" and row.step_id == "e"] == ["next"]


async def test_criterion_and_alternative_work_for_each_element(database_url: str, tmp_path: Path) -> None:
    """The criterion judges the elements, not their list; a lost element is answered by the alternative."""
    kit = Toolkit("list")

    @kit.tool(effect="read", retry={"max_attempts": 1}, breaker=LENIENT, fallbacks=["spare"])
    async def act(number: int) -> dict[str, int]:
        """Fail for 2."""
        if number == 2:
            raise ToolFailure("NOT_FOUND", "there is no two")
        return {"number": number}

    @kit.tool(effect="read")
    async def spare(number: int) -> dict[str, int]:
        """The same, elsewhere."""
        return {"number": number * 100}

    each = step("e", "act", args={"number": "${item}"}, for_each="${inputs.list}", success_when="number > `0`")
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(each, answer="${e[*].number}"), inputs={"list": [1, 2, 3]})
    assert (result.status, (result.answer or "").splitlines()[0]) == ("done", "[1, 200, 3]")
    assert "e[1] was answered by spare" in (result.answer or "")
