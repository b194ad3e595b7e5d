"""What an effect rests on: results that are stored, and rows that are accepted with its intent or before it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from checkpoints.backlog import LONGEST_LINGER_S
from nodes.calling import _check_foundation
from nodes.fold import fold_journal
from plans.errors import StaleOwner, StorageUnavailable
from tests.checkpoints.scenes import backends_waiting_for_a_lock, locked, set_fence, until
from tests.running import plan, running, step
from tools.registry import Toolkit

ROWS = "SELECT kind FROM surestep.journal WHERE kind IN ('outcome', 'intent')"


class Letters:
    """A read whose result has a size, and letters that are counted."""

    def __init__(self, size: int = 10) -> None:
        self.looking, self.go_on = asyncio.Event(), asyncio.Event()
        self.sent: list[int] = []
        self.kit = Toolkit("letters")

        @self.kit.tool(effect="read")
        async def look() -> str:
            """Look."""
            self.looking.set()
            await self.go_on.wait()
            return "x" * size

        @self.kit.tool(effect="irreversible", risk="low")
        async def send(number: int) -> str:
            """Send a letter."""
            self.sent.append(number)
            return f"sent {number}"


def letter(number: int, *after: str) -> dict[str, Any]:
    """A step that sends one."""
    return step(f"letter{number}", "send", *after, args={"number": number})


async def test_an_effect_shares_its_intent_s_commit_with_the_outcome_before_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a chain of effects each costs one commit: artifact and outcome of one, intent of the next."""
    monkeypatch.setattr("nodes.session.EFFECT_LINGER_S", LONGEST_LINGER_S)
    letters = Letters()
    steps = [letter(0), *(letter(n, f"letter{n - 1}") for n in range(1, 20))]
    async with running(database_url, tmp_path, [letters.kit]) as agent:
        result = await agent.run(plan=plan(*steps), approve="all")
        commits = await agent.engine.database.fetch(
            "SELECT xmin::text, array_agg(kind ORDER BY n) AS kinds FROM surestep.journal"
            " WHERE kind IN ('intent', 'outcome') GROUP BY xmin::text"
        )
    assert (result.status, letters.sent) == ("done", list(range(20)))
    assert [each["kinds"] for each in commits].count(["outcome", "intent"]) >= 15
    assert len(commits) <= 26


async def test_an_effect_begins_only_when_all_it_rests_on_is_accepted(database_url: str, tmp_path: Path) -> None:
    """While the database takes no rows the letter waits, though the read before it has ended."""
    letters = Letters()
    async with running(database_url, tmp_path, [letters.kit]) as agent:
        database = agent.engine.database
        drive = asyncio.create_task(agent.run(plan=plan(step("look", "look"), letter(1, "look")), approve="all"))
        await letters.looking.wait()
        run_id = (await agent.runs())[0].run_id
        async with locked(database, run_id):
            letters.go_on.set()
            await until(lambda: backends_waiting_for_a_lock(database))
            await asyncio.sleep(0.05)
            assert letters.sent == []
        assert (await drive).status == "done"
        assert letters.sent == [1]


async def test_an_effect_is_never_sent_when_a_row_it_rests_on_is_refused(database_url: str, tmp_path: Path) -> None:
    """Taken over between a read and the letter that rests on it: both rows are refused, nothing is sent."""
    letters = Letters()
    async with running(database_url, tmp_path, [letters.kit]) as agent:
        database = agent.engine.database
        drive = asyncio.create_task(agent.run(plan=plan(step("look", "look"), letter(1, "look")), approve="all"))
        await letters.looking.wait()
        await set_fence(database, (await agent.runs())[0].run_id, fence=99)
        letters.go_on.set()
        with pytest.raises(StaleOwner):
            await drive
        rows = await database.fetch(ROWS)
    assert (letters.sent, rows) == ([], [])


async def test_an_effect_waits_for_the_large_result_it_rests_on_and_is_not_sent_if_that_fails(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that is still being written is no result: the letter that rests on it does not begin, and when the
    folder turns out to be full it never does, and has no intent."""
    letters = Letters(size=200_000)
    letters.go_on.set()
    writing, full = threading.Event(), threading.Event()

    def write(sha256: str, body: bytes) -> None:
        writing.set()
        full.wait(10)
        raise StorageUnavailable(f"no room for {len(body)} bytes of {sha256}")

    async with running(database_url, tmp_path, [letters.kit]) as agent:
        monkeypatch.setattr(agent.engine.artifacts._files, "write", write)
        drive = asyncio.create_task(agent.run(plan=plan(step("look", "look"), letter(1, "look")), approve="all"))
        assert await asyncio.to_thread(writing.wait, 10)
        await asyncio.sleep(0.05)
        assert letters.sent == []
        full.set()
        with pytest.raises(StorageUnavailable):
            await drive
        rows = await agent.engine.database.fetch(
            "SELECT kind FROM surestep.journal WHERE kind IN ('outcome', 'intent')"
        )
    assert (letters.sent, rows) == ([], [])


async def test_an_effect_on_a_result_that_the_journal_does_not_know_is_a_bug(database_url: str, tmp_path: Path) -> None:
    """Each ancestor is asked for by name, however far back; what is neither stored nor queued stops the run."""
    letters = Letters()
    async with running(database_url, tmp_path, [letters.kit]) as agent:
        letters.go_on.set()
        steps = plan(step("look", "look"), letter(1, "look"), letter(2, "letter1", "look"))
        result = await agent.run(plan=steps, approve="all", thread_id="t")
        session = await agent.engine.session(result.run_id)
        last = session.step("letter2")
        session.known.discard("look")
        with pytest.raises(AssertionError, match="letter2 would rest on look, of which the journal knows nothing"):
            _check_foundation(session, last)
        session.known.add("look")
        _check_foundation(session, last)


async def test_large_arguments_and_plans_are_kept_by_reference_and_read_back_whole(
    database_url: str, tmp_path: Path
) -> None:
    """No row of the journal is large; yet a step in doubt has its 200 KB argument, and a plan all its steps."""
    kit = Toolkit("kit")
    got: list[int] = []

    @kit.tool(effect="idempotent", risk="low")
    async def keep(text: str, number: int) -> int:
        """Keep a text."""
        got.append(len(text))
        return number

    steps = [step(f"keep{n}", "keep", args={"text": "${inputs.text}", "number": n}) for n in range(2)]
    many = [step(f"s{n}", "keep", args={"text": "x" * 300, "number": n}, when="`false`") for n in range(60)]
    async with running(database_url, tmp_path, [kit]) as agent:
        drive = agent.run(plan=plan(*steps, *many), inputs={"text": "y" * 200_000}, limits={"max_steps": 100})
        result = await drive
        sizes = await agent.engine.database.fetch(
            "SELECT kind, max(pg_column_size(body))::int AS size, max(length(body::text)) AS length"
            " FROM surestep.journal GROUP BY kind"
        )
    assert (result.status, got) == ("done", [200_000, 200_000])
    assert {each["kind"] for each in sizes} >= {"run", "plan", "intent", "outcome"}
    assert max(each["length"] for each in sizes) <= 16 * 1024
    async with running(database_url, tmp_path, [kit]) as another:
        rows = await another.engine.journal.read(result.run_id)
        until_intent = rows[: next(n for n, row in enumerate(rows) if row.kind == "intent") + 1]
        doubted = fold_journal(until_intent).steps[until_intent[-1].step_id or ""].in_doubt
        assert doubted is not None
        assert doubted["args"]["text"] == "y" * 200_000
        assert len((await another.show(result.thread_id)).steps) == 62
