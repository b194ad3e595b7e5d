"""A process may die after any row of the journal: whoever goes on ends with the same answer, and repeats nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Approve, Decision, Respond
from plans.failure import ToolFailure
from tests.nodes.model_server import Question, ScriptedModel, completion
from tests.recovery.history import ALL, History, Past
from tests.running import plan, running, step
from tools.registry import ToolContext, Toolkit

LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}
WORDS = {"id": "words", "action": "llm", "instruction": "Say ${price.price} in words.", "reason": "test"}
PLAN = plan(
    step("price", "price", args={"item": "ball"}),
    step("rate", "rate"),
    step("each", "double", args={"number": "${item}"}, for_each="${inputs.numbers}"),
    {**WORDS, "verify_after": True},
    {"id": "rest", "action": "plan", "instruction": "Find out what ${price.price} was before.", "reason": "test"},
    step("charge", "charge", args={"amount": "${price.price}"}),
    step("book", "book", "charge", args={"amount": "${rate.rate}"}),
    step("send", "send", "book", args={"text": "${words}"}, require_approval=True),
    step("total", "total", "send", args={"numbers": "${each[*].number}"}),
    answer="${total.total} ${words} ${send.sent} ${rest.rate}",
)
FOUND_OUT = plan(step("old", "old_rate"), answer="${old}")
QUESTIONS = 4
"""What a model is asked in a run that nobody kills: a mended step, the words, a sub-goal's plan, and a check."""


def unanswered(rows: Sequence[Past]) -> int:
    """Questions of which nothing but the reservation is known: they count as spent."""
    return sum((row.kind == "reservation") - (row.kind == "model") for row in rows)


class World:
    """The tools, and how often each step run has called its tool since the count was set to nothing."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.keys: dict[str, str] = {}
        self.kit = Toolkit("world")
        self._reads()
        self._effects()

    def _reads(self) -> None:
        def take(ctx: ToolContext) -> None:
            self.calls[ctx.step_id] += 1

        @self.kit.tool(effect="read", breaker=LENIENT, repeats=None)
        async def price(item: str, ctx: ToolContext) -> dict[str, int]:
            """There is no ball."""
            take(ctx)
            if item == "ball":
                raise ToolFailure("NOT_FOUND", "there is no ball")
            return {"price": len(item)}

        @self.kit.tool(effect="read", breaker=LENIENT, repeats=None, retry={"max_attempts": 1}, fallbacks=["old_rate"])
        async def rate(ctx: ToolContext) -> dict[str, int]:
            """Always taken by somebody else."""
            take(ctx)
            raise ToolFailure("CONFLICT", "somebody else was quicker")

        @self.kit.tool(effect="read")
        async def old_rate(ctx: ToolContext) -> dict[str, int]:
            """Yesterday's."""
            take(ctx)
            return {"rate": 3}

        @self.kit.tool(effect="read")
        async def double(number: int, ctx: ToolContext) -> dict[str, int]:
            """Twice the number."""
            take(ctx)
            return {"number": 2 * number}

        @self.kit.tool(effect="read")
        async def total(numbers: list[int], ctx: ToolContext) -> dict[str, int]:
            """Their sum."""
            take(ctx)
            return {"total": sum(numbers)}

    def _effects(self) -> None:
        @self.kit.tool(effect="idempotent", sensitive_args=())
        async def charge(amount: int, ctx: ToolContext) -> dict[str, int]:
            """Charge it."""
            self.calls[ctx.step_id] += 1
            self.keys[ctx.step_id] = ctx.idempotency_key
            return {"charged": amount}

        @self.kit.tool(effect="transactional", sensitive_args=())
        async def book(amount: int, ctx: ToolContext) -> dict[str, int]:
            """Book it."""
            self.calls[ctx.step_id] += 1
            await ctx.connection.execute("INSERT INTO bookings VALUES (%s)", (amount,))
            return {"booked": amount}

        @self.kit.tool(effect="irreversible", sensitive_args=())
        async def send(text: str, ctx: ToolContext) -> dict[str, str]:
            """Send it."""
            self.calls[ctx.step_id] += 1
            return {"sent": text}


def by_prompt(question: Question) -> str:
    """What the model says: a mended step, the steps of the sub-goal, that the plan still holds, or words."""
    asked = json.dumps(question["messages"])
    if "is one step of a larger plan" in asked:
        return json.dumps(FOUND_OUT)
    if "You check a plan" in asked:
        return json.dumps({"holds": True, "reason": "eight is a price"})
    mended = plan(step("price", "price", args={"item": "football"}))
    return json.dumps(mended) if "You repair one step" in asked else "eight"


def answer_to(kind: str) -> Decision:
    """What the person in this test says."""
    return Respond('{"sent": "eight"}') if kind == "unknown_outcome" else Approve()


async def to_its_end(agent: Agent, result: RunResult) -> RunResult:
    """Every question is answered, until there is none."""
    while result.status == "paused":
        answers = {request.approval_id: answer_to(request.kind) for request in result.approvals}
        result = await agent.resume("t", decisions=answers)
    return result


def finished(rows: Sequence[Past]) -> set[str]:
    """Step runs whose end is accepted."""
    ends = [row for row in rows if row.kind in ("outcome", "settlement") and "output" in row.body]
    return {row.step_id for row in ends if row.step_id}


def in_doubt(rows: Sequence[Past]) -> dict[str, str]:
    """The keys of step runs that have begun an effect, and of which no more is known."""
    begun = {row.step_id: row.body["key"] for row in rows if row.step_id and row.kind == "intent"}
    return {unit: key for unit, key in begun.items() if unit not in finished(rows)}


class Trial:
    """One world, one finished run in it, and its history."""

    def __init__(self, agent: Agent, world: World, endpoint: ScriptedModel) -> None:
        self.agent, self.world, self.endpoint = agent, world, endpoint
        self.history = History(agent.engine.database)

    async def first_run(self) -> None:
        """The run without a crash; its history is kept."""
        await self.agent.engine.database.execute("CREATE TABLE bookings (amount integer)")
        begun = await self.agent.run(plan=PLAN, inputs={"numbers": [1, 2, 3]}, thread_id="t")
        await self._keep(await to_its_end(self.agent, begun))

    async def crashed_in_the_middle_of_the_letter(self) -> None:
        """The run once more, with a crash after the letter's intent; that history is kept instead."""
        intent = next(n for n, row in enumerate(self.history.rows) if (row.kind, row.step_id) == ("intent", "send"))
        await self.history.cut_after(intent + 1, 0)
        await self._keep(await to_its_end(self.agent, await self.agent.resume("t")))

    async def _keep(self, result: RunResult) -> None:
        assert result.status == "done", result.answer
        assert (result.answer or "").startswith("12 eight eight"), result.answer
        self.result = result
        await self.history.keep()

    async def killed_after(self, count: int, lost: int) -> None:
        """Cut after so many rows, with so many checkpoints lost, go on to the end, and count."""
        rows = self.history.rows[:count]
        place = f"after row {count}: {rows[-1].kind} {rows[-1].step_id}"
        await self.history.cut_after(count, lost)
        calls, keys = self.world.calls, self.world.keys
        calls.clear()
        keys.clear()
        self.endpoint.questions.clear()
        again = await to_its_end(self.agent, await self.agent.resume("t"))
        assert (again.status, again.answer) == ("done", self.result.answer), place
        assert not set(calls) & finished(rows), place
        assert all(calls[unit] <= 1 for unit in calls if unit not in ("rate", "price")), place
        doubt = in_doubt(rows)
        assert calls["send"] == ("send" not in doubt and "send" not in finished(rows)), place
        assert keys.get("charge") == doubt.get("charge", keys.get("charge")), place
        assert len(self.endpoint.questions) == QUESTIONS - sum(row.kind == "model" for row in rows), place
        booked = await self.agent.engine.database.fetch("SELECT amount FROM bookings")
        assert [row["amount"] for row in booked] == [3], place
        usage = (again.usage.steps, again.usage.model_calls, again.usage.local_replans)
        assert usage == (self.result.usage.steps, QUESTIONS + unanswered(rows), 1), place


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("lost", "in_doubt_before"),
    [
        (3, True),
        *(pytest.param(lost, before, marks=pytest.mark.slow) for lost in (0, 1, 2, 5, ALL) for before in (False, True)),
    ],
)
async def test_killed_after_any_row_nothing_finished_runs_again_and_the_answer_is_the_same(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel, lost: int, in_doubt_before: bool
) -> None:
    """For every row: finished steps and accepted answers of the model are not asked for again, an effect in doubt is
    sent under its own key or asked about, the booking is there once, and the run ends as it would have."""
    world = World()
    endpoint.answers(lambda question: completion(by_prompt(question)))
    async with running(database_url, tmp_path, [world.kit], model=endpoint) as agent:
        trial = Trial(agent, world, endpoint)
        await trial.first_run()
        if in_doubt_before:
            await trial.crashed_in_the_middle_of_the_letter()
        assert len(trial.history.rows) > 30
        for count in range(1, len(trial.history.rows) + 1):
            await trial.killed_after(count, lost)
