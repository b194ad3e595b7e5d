"""A process may die after any row of a repair that comes to nothing: what is decided about it is decided once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Respond
from plans.failure import ToolFailure
from tests.nodes.model_server import Question, ScriptedModel, completion
from tests.recovery.history import History, Past
from tests.running import plan, running, step
from tools.registry import Toolkit

LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}
GIVEN = plan(step("charge", "charge", args={"amount": 13}))
GOOD = plan(step("less", "charge", args={"amount": 6}), answer="charged ${less.charged}")


def till() -> Toolkit:
    """A critical tool that never charges thirteen."""
    kit = Toolkit("till")

    @kit.tool(effect="idempotent", retry={"max_attempts": 1}, critical=True, repeats=None, breaker=LENIENT)
    async def charge(amount: int) -> dict[str, int]:
        """Charge it."""
        if amount == 13:
            raise ToolFailure("NOT_FOUND", "there is no such amount")
        return {"charged": amount}

    return kit


def by_prompt(question: Question) -> str:
    """A step that has failed already, a plan that has failed already, or a good plan for who is told what to do."""
    asked = json.dumps(question["messages"])
    if "take 6" in asked:
        return json.dumps(GOOD)
    return json.dumps(GIVEN)


async def to_its_end(agent: Agent, result: RunResult) -> RunResult:
    """The ticket is answered with an instruction."""
    while result.status == "paused":
        answers = {request.approval_id: Respond("take 6") for request in result.approvals}
        result = await agent.resume("t", decisions=answers)
    return result


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_killed_after_a_row_of_the_ladder_each_repair_is_decided_and_counted_once(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel, *, every: bool
) -> None:
    """Local replan, global replan, ticket, instruction: after a kill behind the row of any verdict, with checkpoints
    lost, no model is asked again, and as many repairs are counted as without it."""
    endpoint.answers(lambda question: completion(by_prompt(question)))
    async with running(database_url, tmp_path, [till()], model=endpoint) as agent:
        await agent.engine.database.execute("CREATE TABLE bookings (amount integer)")
        history = History(agent.engine.database)
        first = await to_its_end(agent, await agent.run(plan=GIVEN, thread_id="t"))
        assert (first.status, first.answer, first.usage.local_replans, first.usage.global_replans) == (
            "done", "charged 6", 1, 1,
        )  # fmt: skip
        questions = len(endpoint.questions)
        await history.keep()
        for count, row in enumerate(history.rows, 1):
            if every or row.body.get("verdict", {}).get("verdict") == "global_replan":
                endpoint.questions.clear()
                await history.cut_after(count, 2)
                again = await to_its_end(agent, await agent.resume("t"))
                place = f"after row {count}: {row.kind} {row.step_id}"
                assert (again.status, again.answer) == ("done", first.answer), place
                assert len(endpoint.questions) == questions - answered(history.rows[:count]), place
                assert (again.usage.local_replans, again.usage.global_replans) == (1, 1), place


def answered(rows: list[Past]) -> int:
    """Questions whose answers are known."""
    return sum(row.kind == "model" for row in rows)
