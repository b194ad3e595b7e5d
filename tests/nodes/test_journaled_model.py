"""Tests of what a question to a model costs a run: reserved before it is asked, spent if no answer is known."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from werkzeug import Response

from graph.gateway import Agent
from nodes.fold import fold
from nodes.judging import _question
from nodes.model_settings import estimated
from nodes.prompts import load
from tests.nodes.model_server import Question, ScriptedModel, completion, delta, refused, streamed
from tests.nodes.rows import Row, a_plan, a_step, begun, planned
from tests.running import plan, running

WORDS = {"id": "w", "action": "llm", "instruction": "Say hello.", "reason": "test"}


async def reserved(agent: Agent) -> list[dict[str, Any]]:
    """The reservations of the run."""
    found = await agent.engine.database.fetch(
        "SELECT body FROM surestep.journal WHERE kind = 'reservation' ORDER BY fence, n"
    )
    return [row["body"] for row in found]


async def test_a_reservation_is_accepted_before_the_question_is_put(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """When the request reaches the model its row is committed; the answer then replaces what was reserved."""
    seen: list[int] = []

    def look(_: Question) -> Response:
        with psycopg.connect(database_url) as connection:
            found = connection.execute("SELECT count(*) FROM surestep.journal WHERE kind = 'reservation'").fetchone()
        seen.append(found[0] if found else 0)
        return completion("hello", prompt_tokens=11, completion_tokens=7)

    endpoint.answers(look)
    async with running(database_url, tmp_path, [], model=endpoint) as agent:
        result = await agent.run(plan=plan(WORDS))
        rows = await reserved(agent)
    assert (result.status, seen) == ("done", [1])
    assert (result.usage.model_calls, result.usage.tokens) == (1, 18)
    assert [row["completion_tokens"] for row in rows] == [2_000]
    assert rows[0]["prompt_tokens"] > 50


async def test_a_question_whose_answer_nobody_knows_is_spent_and_asked_again_it_is_reserved_again(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """The drive ends while the model thinks: what it may have cost stays counted, in the next drive too."""
    asked, answer = threading.Event(), threading.Event()

    def slow(_: Question) -> Response:
        asked.set()
        answer.wait(20)
        return completion("hello", prompt_tokens=11, completion_tokens=7)

    endpoint.answers(slow)
    async with running(database_url, tmp_path, [], model=endpoint) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(WORDS), thread_id="t"))
        assert await asyncio.to_thread(asked.wait, 20)
        drive.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drive
        answer.set()
        [lost] = await reserved(agent)
        spent = lost["prompt_tokens"] + lost["completion_tokens"]
        before = (await agent.show("t")).usage
        assert (before.model_calls, before.tokens) == (1, spent)
        result = await agent.resume("t")
        assert (result.status, len(await reserved(agent))) == ("done", 2)
    assert (result.usage.model_calls, result.usage.tokens) == (2, spent + 18)


async def test_a_failed_question_costs_what_it_has_cost_and_its_raw_text_is_an_artifact(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """A broken stream and a refused key: tokens, cost and requests of both count, an estimate is called one, and what
    the endpoint said word for word stands in an artifact, without its secrets, and in no state."""
    endpoint.answers(
        streamed(delta("half of an ans")), refused(401, "key sk-proj-abcdefghijklmnop0123 is unknown: SAID")
    )
    prices = {"scripted": {"prompt": 1_000_000, "completion": 1_000_000}}
    async with running(database_url, tmp_path, [], model=endpoint, prices=prices) as agent:
        result = await agent.run("plan this", thread_id="t")
        config: Any = {"configurable": {"thread_id": "t"}}
        state = str((await agent.graph.aget_state(config)).values)
        [row] = await agent.engine.database.fetch("SELECT body FROM surestep.journal WHERE kind = 'model'")
        raw = await agent.engine.artifacts.get(result.run_id, row["body"]["raw_ref"])
    usage = result.usage
    assert (result.status, usage.model_calls, usage.model_requests) == ("failed", 1, 2)
    assert usage.tokens == usage.estimated_tokens == usage.cost > 100
    assert (row["body"]["failed"], row["body"]["way"]) == ("MODEL_NOT_CONFIGURED", "KeyRefused")
    assert b"is unknown: SAID" in raw
    assert b"abcdefghijklmnop" not in raw
    assert "SAID" not in state + str(row) + str(result)


async def test_the_plan_says_who_wrote_it_and_how(database_url: str, tmp_path: Path, endpoint: ScriptedModel) -> None:
    """Model, mode and the prompt's hash are recorded with a plan, so that planners can be compared."""
    drafted = {"goal": "g", "steps": [WORDS]}
    endpoint.answers(refused(400, "unknown field"), completion(None, calls=[("answer", json.dumps(drafted))]), "hello")
    async with running(database_url, tmp_path, [], model=endpoint) as agent:
        result = await agent.run("say hello")
        [row] = await agent.engine.database.fetch("SELECT body FROM surestep.journal WHERE kind = 'plan'")
    assert (result.status, result.usage.model_calls, result.usage.model_requests) == ("done", 2, 3)
    recorded = {name: row["body"][name] for name in ("model", "mode", "prompt_sha256")}
    assert recorded == {"model": "scripted-1", "mode": "tools", "prompt_sha256": load("planner").sha256}


def test_the_run_s_tokens_count_what_is_reserved() -> None:
    """So a cap holds while questions are out; a journal of the first version has answers without reservations."""
    spent = {"key": "k", "prompt_tokens": 100, "completion_tokens": 50}
    reservation: Row = ("reservation", None, 0, {**spent, "prompt": "p"})
    answer: Row = ("model", None, 0, {"key": "k", "prompt_tokens": 20, "completion_tokens": 10, "text_ref": "x"})
    for rows, expected in (
        ([reservation], (1, 150)),
        ([reservation, answer], (1, 30)),
        ([reservation, reservation, answer], (2, 180)),
        ([answer], (1, 30)),
    ):
        usage = fold([begun(), *rows]).usage
        assert (usage.model_calls, usage.tokens) == expected


def test_a_step_that_was_dropped_and_taken_up_again_is_another_question() -> None:
    """Same id, same words, first attempt again: the answer to the old one is not its answer. A kept step keeps its."""
    one, other = a_step("a", tool=None, action="llm", instruction="Say hello."), a_step("b")
    names = []
    for revisions in ([[one, other]], [[one, other], [one]], [[one, other], [other], [one, other]]):
        picture = fold([begun(), *(planned(a_plan(*steps, revision=n)) for n, steps in enumerate(revisions, 1))])
        session: Any = SimpleNamespace(fold=picture)
        names.append(_question(session, "a", one, 1))
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("a" * 400, 101), ("好" * 400, 301)])
def test_a_text_is_estimated_by_its_bytes(text: str, tokens: int) -> None:
    """Enough to reserve by: in the middle of what tokenizers give."""
    assert estimated(text) == tokens
