"""Limits over all workers: slots and starts in PostgreSQL, workers that die, and a database that goes away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import tool_slots
from checkpoints.database import Database, open_database
from checkpoints.queries import QUERIES
from checkpoints.tool_slots import PostgresSlots
from checkpoints.workers import name_of_worker, present
from plans.sharing import SlotLimits
from tests.checkpoints.slot_worker import BOOK, slots_of
from tests.tools.calls import code_of, context, ports, tool_of
from tools.call import call
from tools.outcome import CallFailure, Outcome
from tools.ports import Ports
from tools.tool import Tool

ONE = SlotLimits(1, None, 0.0)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="whether a worker is dead is known on Linux only")


class Work:
    """A tool that counts how many of its calls run at once."""

    def __init__(self, seconds: float = 0.005, **declared: Any) -> None:
        self.running = self.most = self.ran = 0
        self.seconds = seconds
        declared = {"limit_scope": "workers", "timeout_s": 30, "retry": {"max_attempts": 1}, **declared}
        self.tool: Tool = tool_of(self.look, name="look", **declared)

    async def look(self) -> int:
        """Look."""
        self.running += 1
        self.ran += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        return 1

    async def call(self, on: Ports, seconds: float = 30.0) -> Outcome:
        """One call of one worker."""
        return await call(self.tool, {}, context(deadline=time.monotonic() + seconds), on)


@pytest.fixture
async def workers(database: Database) -> AsyncIterator[list[Ports]]:
    """Three workers of this process."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(slots_of(database)) for _ in range(3)]


async def rows(database: Database) -> list[dict[str, Any]]:
    """The slots and places that are stored."""
    return await database.fetch("SELECT tool, worker, taken FROM surestep.tool_slots ORDER BY asked_at")


async def none_left(database: Database) -> bool:
    """Whether every slot is given back, within two seconds."""
    for _ in range(100):
        if not await rows(database):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_all_workers_together_never_exceed_the_limit_and_reach_it(
    database: Database, workers: list[Ports]
) -> None:
    """Sixty calls of three workers: as many as allowed run at once, all run, each worker gets its share, and no slot is
    left."""
    work, order = Work(concurrency=3), list[int]()

    async def one(number: int) -> str:
        ended = code_of(await work.call(workers[number]))
        order.append(number)
        return ended

    codes = await asyncio.gather(*(one(number % 3) for number in range(60)))
    assert (set(codes), work.most, work.ran) == ({"OK"}, 3, 60)
    assert min(Counter(order[:30]).values()) >= 5
    assert await none_left(database)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    plan=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["well", "badly", "cancel", "short"]), st.floats(0, 0.03)),
        min_size=3,
        max_size=25,
    ),
    most=st.integers(1, 3),
)
def test_whatever_becomes_of_calls_no_slot_is_lost_or_made(
    database_url: str, tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[int, str, float]], most: int
) -> None:
    """Calls that fail, are cancelled at any moment or run out of time: never more than the limit at once, and
    afterwards all slots are free."""

    async def scenario() -> None:
        folder = tmp_path_factory.mktemp("slots")
        async with open_database(database_url, folder) as database, AsyncExitStack() as stack:
            on = [await stack.enter_async_context(slots_of(database)) for _ in range(3)]
            work = Work(concurrency=most)
            tasks = []
            for worker, fate, gap in plan:
                await asyncio.sleep(gap / 5)
                tasks.append(asyncio.create_task(work.call(on[worker], 0.01 if fate == "short" else 30.0)))
                if fate == "cancel":
                    asyncio.get_running_loop().call_later(gap, tasks[-1].cancel)
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert work.most <= most
            codes = {code_of(outcome) for outcome in ended if not isinstance(outcome, BaseException)}
            assert codes <= {"OK", "TIMEOUT", "POOL_FULL"}
            assert await none_left(database)
            assert code_of(await work.call(on[0])) == "OK"

    asyncio.run(scenario())


async def test_the_rate_holds_over_all_workers_in_the_databases_time(database: Database, workers: list[Ports]) -> None:
    """Twenty calls of three workers, five in any 0.3 s: every start as the database has stored it."""
    await database.execute("CREATE TABLE started (at timestamptz)")
    await database.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO started VALUES (NEW.at); RETURN NEW; END $$"
    )
    await database.execute(
        "CREATE TRIGGER note AFTER INSERT ON surestep.tool_starts FOR EACH ROW EXECUTE FUNCTION note()"
    )
    work = Work(rate_limit={"calls": 5, "per_s": 0.3})
    codes = await asyncio.gather(*(work.call(workers[number % 3]) for number in range(20)))
    times = [row["at"].timestamp() for row in await database.fetch("SELECT at FROM started ORDER BY at")]
    assert ({code_of(outcome) for outcome in codes}, len(times), work.ran) == ({"OK"}, 20, 20)
    assert all(later - earlier >= 0.3 - 1e-6 for earlier, later in zip(times, times[5:], strict=False))
    assert times[-1] - times[0] < 3
    (kept,) = await database.fetch("SELECT count(*) AS n FROM surestep.tool_starts")
    assert kept["n"] <= 10


async def test_a_turn_past_the_deadline_is_refused_at_once(database: Database, workers: list[Ports]) -> None:
    """With one call a minute the second worker is told when to come back, and keeps no place."""
    work = Work(rate_limit={"calls": 1, "per_s": 60}, concurrency=1)
    assert code_of(await work.call(workers[0])) == "OK"
    began = time.monotonic()
    refused = await work.call(workers[1], 5)
    assert isinstance(refused, CallFailure)
    assert (refused.failure.code, refused.called) == ("RATE_LIMITED", False)
    assert refused.failure.delay_s == pytest.approx(60, abs=3)
    assert time.monotonic() - began < 2
    assert await none_left(database)


async def test_who_finds_no_slot_until_its_deadline_is_told_so(database: Database, workers: list[Ports]) -> None:
    """POOL_FULL, within its time, and whoever waits longer gets the slot."""
    work = Work(0.6, concurrency=1)
    first = asyncio.create_task(work.call(workers[0]))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(work.call(workers[1]))
    began = time.monotonic()
    assert code_of(await work.call(workers[2], 0.2)) == "POOL_FULL"
    assert time.monotonic() - began < 0.4
    assert [code_of(await task) for task in (first, second)] == ["OK", "OK"]
    assert work.most == 1


async def test_changed_limits_are_followed_by_all_workers(workers: list[Ports]) -> None:
    """4, then 2: a worker that knows of the change starts nothing while more run; then 6 lets it go at once."""
    work = Work(0.4, concurrency=4)
    running = [asyncio.create_task(work.call(workers[n % 2])) for n in range(4)]
    await asyncio.sleep(0.15)
    assert work.running == 4
    fewer, more = (replace(work.tool, spec=work.tool.spec.changed({"concurrency": most})) for most in (2, 6))
    assert code_of(await call(fewer, {}, context(deadline=time.monotonic() + 0.1), workers[2])) == "POOL_FULL"
    assert code_of(await call(more, {}, context(deadline=time.monotonic() + 5), workers[2])) == "OK"
    assert work.most == 5
    await asyncio.gather(*running)


async def test_without_a_database_nothing_is_called(tmp_path: Path, database_url: str) -> None:
    """Fail closed: the call is refused in plain words and is not made; it is no exception."""
    async with open_database(database_url, tmp_path) as database, slots_of(database) as shared:
        work = Work(concurrency=3)
        assert code_of(await work.call(shared)) == "OK"
        await database.pool.close()
        refused = await work.call(shared)
        assert isinstance(refused, CallFailure)
        assert (refused.failure.code, refused.called, work.ran) == ("UNAVAILABLE", False, 1)
        assert refused.failure.message == (
            "whether look may be called now is not known: the limits of all workers are out of reach"
        )


async def test_a_slot_is_held_while_its_thread_hangs(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was given up at its deadline and whose thread goes on keeps its slot, far beyond what it was taken
    for; when the thread ends the slot is free."""
    monkeypatch.setattr(tool_slots, "RENEW_EVERY_S", 0.1)
    with present(name_of_worker()) as worker:
        async with PostgresSlots(database, worker, hold_s=0.3) as slots:
            shared, hangs = replace(ports(), slots=slots), {"retry": {"max_attempts": 1}, "limit_scope": "workers"}
            tool = tool_of(lambda: time.sleep(1.2), name="hung", timeout_s=0.1, concurrency=1, **hangs)
            assert code_of(await call(tool, {}, context(), shared)) == "TIMEOUT"
            await asyncio.sleep(0.7)
            late = context(deadline=time.monotonic() + 0.1)
            assert code_of(await call(tool, {}, late, shared)) == "POOL_FULL"
            ended = await call(tool, {}, context(deadline=time.monotonic() + 2), shared)
            assert code_of(ended) == "TIMEOUT"  # it was called


async def test_what_a_worker_of_another_machine_held_comes_back_when_it_expires(database: Database) -> None:
    """Nobody can know that it is dead: its slot is free once its time is over, and not before."""
    gone = PostgresSlots(database, "elsewhere boot pid:[1] 17 99 abc", hold_s=0.5)
    assert (await gone.take("a", "look", ONE, 60)).granted
    with present(name_of_worker()) as worker:
        slots = PostgresSlots(database, worker)
        began = time.monotonic()
        assert not (await slots.take("b", "look", ONE, 60)).granted
        for _ in range(100):
            if (await slots.take("b", "look", ONE, 60)).granted:
                break
            await asyncio.sleep(0.02)
        assert 0.4 < time.monotonic() - began < 2


async def test_a_question_whose_answer_was_lost_is_asked_again_without_a_second_start(database: Database) -> None:
    """The same slot is taken once, and starts once, however often it is asked for."""
    slots = PostgresSlots(database, "w")
    limits = SlotLimits(1, 1, 60.0)
    assert (await slots.take("a", "look", limits, 60)).granted
    assert (await slots.take("a", "look", limits, 60)).granted
    (starts,) = await database.fetch("SELECT count(*) AS n FROM surestep.tool_starts")
    assert starts["n"] == 1


async def test_two_workers_that_ask_at_the_same_moment_do_not_both_get_the_last_slot(
    database: Database, database_url: str
) -> None:
    """Who asks while another's question is not yet committed waits for it, and sees what it has taken."""
    slots = PostgresSlots(database, "w")
    given = {"slot": "a", "tool": "look", "worker": "v", "hold_s": 60, "waiting_s": 3, **ONE._asdict()}
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute(QUERIES["lock_tool_slots"], {"tool": "look"})
        await other.execute(QUERIES["take_slot"], given)
        asking = asyncio.create_task(slots.take("b", "look", ONE, 60))
        await asyncio.sleep(0.3)
        assert not asking.done()
        await other.commit()
        assert not (await asking).granted


async def test_who_is_cancelled_while_it_asks_leaves_no_slot_behind(
    database: Database, database_url: str, workers: list[Ports]
) -> None:
    """The question may still be on its way: what it takes is given back when that is known."""
    work = Work(concurrency=1)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute(QUERIES["lock_tool_slots"], {"tool": "look"})
        asking = asyncio.create_task(work.call(workers[0]))
        await asyncio.sleep(0.3)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await asyncio.sleep(0.3)  # its place is given back, before it was taken
        await other.commit()
    assert await none_left(database)
    assert code_of(await work.call(workers[1], 2)) == "OK"


async def test_who_came_first_is_first_and_who_stopped_asking_is_not_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free slot is for the first in line, whichever worker asks; a place that is not asked for is lost."""
    monkeypatch.setattr(tool_slots, "WAITING_S", 0.3)
    one, two, three = (PostgresSlots(database, name) for name in "xyz")
    assert (await one.take("a", "look", ONE, 60)).granted
    assert not (await two.take("b", "look", ONE, 60)).granted
    assert not (await three.take("c", "look", ONE, 60)).granted
    one.give_back("a")
    assert await one._send()
    assert not (await three.take("c", "look", ONE, 60)).granted
    await asyncio.sleep(0.35)
    assert (await three.take("c", "look", ONE, 60)).granted


@contextmanager
def a_process(url: str, name: str, calls: int, seconds: float, most: int) -> Iterator[subprocess.Popen[str]]:
    """A worker of its own, which is killed if it still lives afterwards."""
    order = [sys.executable, "-m", "tests.checkpoints.slot_worker", url, name, *map(str, (calls, seconds, most))]
    with subprocess.Popen(order, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


@LINUX
async def test_slots_of_a_killed_process_come_back_and_the_limit_holds_over_processes(
    database: Database, database_url: str
) -> None:
    """Three processes and two slots: one process takes both and is killed; the two others then make all their calls,
    never more than two at once, without waiting for its slots to expire."""
    await database.execute(BOOK)
    with a_process(database_url, "doomed", 2, 60, 2) as doomed:
        assert doomed.stdout is not None
        assert [doomed.stdout.readline() for _ in range(2)] == ["working\n"] * 2
        with a_process(database_url, "two", 10, 0.05, 2) as two, a_process(database_url, "three", 10, 0.05, 2) as three:
            await asyncio.sleep(1.5)
            assert await database.fetch("SELECT worker FROM worked WHERE worker <> 'doomed'") == []
            doomed.kill()
            began = time.monotonic()
            told = await asyncio.gather(*(asyncio.to_thread(child.communicate) for child in (two, three)))
    assert [out.splitlines()[-1] for out, _ in told] == ["OK", "OK"]
    assert time.monotonic() - began < 15
    spans = await database.fetch("SELECT worker, began, ended FROM worked WHERE worker <> 'doomed'")
    assert Counter(row["worker"] for row in spans) == {"two": 10, "three": 10}
    at_once = [sum(other["began"] <= row["began"] < other["ended"] for other in spans) for row in spans]
    assert max(at_once) == 2
