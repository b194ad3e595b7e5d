"""Tests of what a question to a model costs a run: reserved before it is asked, spent if no answer is known."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from werkzeug import Response

from graph.gateway import Agent
from nodes.fold import fold
from nodes.journaled_model import estimated
from nodes.judging import _question
from tests.nodes.model_server import Question, ScriptedModel, completion
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
