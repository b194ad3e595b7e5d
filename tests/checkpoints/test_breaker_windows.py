"""A worker's own windows over the shared states of breakers, as real calls move them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from checkpoints.breaker_windows import BreakerWindows
from checkpoints.database import Database
from checkpoints.tool_stores import PostgresBreakers
from plans.failure import ToolFailure
from tests.checkpoints.breaker_worker import COOLDOWN_S, Service, breakers_of
from tests.tools.calls import code_of, context, ports, tool_of
from tools.breaker import open_tools
from tools.call import call


class Worker:
    """A process that calls one tool, which fails when it is told to."""

    def __init__(self, database: Database, now: list[float]) -> None:
        self.swaps = 0
        shared = PostgresBreakers(database, monotonic=lambda: now[0])
        swap = shared.swap

        async def counted(*args: Any) -> bool:
            self.swaps += 1
            return await swap(*args)

        shared.swap = counted  # type: ignore[method-assign, assignment]
        self.breakers = BreakerWindows(shared, monotonic=lambda: now[0])
        self.ports = replace(ports(), breakers=self.breakers)

        async def look(*, fails: bool) -> int:
            """Look."""
            await asyncio.sleep(0)
            if fails:
                raise ToolFailure("UNAVAILABLE", "not now")
            return 1

        self.tool = tool_of(look, retry={"max_attempts": 1}, breaker={"cooldown_s": 0.3})

    async def call(self, *, fails: bool = False) -> str:
        """OK, or the code of the failure."""
        return code_of(await call(self.tool, {"fails": fails}, context(), self.ports))


async def test_a_tool_that_fails_now_and_then_costs_no_commit_per_call(database: Database) -> None:
    """Eight at once, every fifth fails: all are counted here, and stored twice a second."""
    now = [50.0]
    worker = Worker(database, now)
    for _ in range(10):
        told = await asyncio.gather(*(worker.call(fails=n == 4) for n in range(8)))
        assert told.count("OK") == 7
    assert worker.swaps == 1
    state = await worker.breakers.load("look")
    assert state is not None
    assert len(state["window"]) == 10
    assert False in state["window"]
    now[0] += 0.5
    await worker.call()
    assert worker.swaps == 2


async def test_what_one_worker_opens_and_closes_is_open_and_closed_for_all(database: Database) -> None:
    """A breaker that opens is refused at once here and within half a second elsewhere; a probe that succeeds anywhere
    closes it for all, and what was counted before counts no more."""
    now = [50.0]
    one, two = Worker(database, now), Worker(database, now)
    assert await two.call(fails=True) == "UNAVAILABLE"
    for _ in range(2):  # the other's failure is stored, and counts
        assert await one.call(fails=True) == "UNAVAILABLE"
    assert await one.call() == "BREAKER_OPEN"
    now[0] += 0.5
    assert await two.call() == "BREAKER_OPEN"
    await asyncio.sleep(0.3)  # the cooldown is on the wall's clock
    assert await two.call() == "OK"
    now[0] += 0.5
    assert await one.call() == "OK"
    for _ in range(2):
        assert await two.call(fails=True) == "UNAVAILABLE"
    assert await two.call() == "OK"


async def test_of_many_that_fail_together_one_opens_the_breaker(database: Database) -> None:
    """Eight failures at once open it once; nobody goes on as if it were closed."""
    worker = Worker(database, [50.0])
    await asyncio.gather(*(worker.call(fails=True) for _ in range(8)))
    assert await worker.call() == "BREAKER_OPEN"
    (stored,) = (await worker.breakers.load_all()).values()
    assert (stored["status"], stored["turn"]) == ("open", 1)


async def test_a_worker_that_starts_goes_on_with_the_window_that_is_stored(database: Database) -> None:
    """Two failures in a row were stored by a worker that has died: a third one opens the breaker."""
    now = [50.0]
    gone = Worker(database, now)
    for _ in range(2):
        await gone.call(fails=True)
        now[0] += 0.5
    new = Worker(database, now)
    await new.call(fails=True)
    assert await new.call() == "BREAKER_OPEN"


@contextmanager
def a_process(url: str) -> Iterator[subprocess.Popen[str]]:
    """A worker of its own, which is killed afterwards."""
    order = [sys.executable, "-m", "tests.checkpoints.breaker_worker", url]
    with subprocess.Popen(order, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


async def test_two_processes_open_and_close_one_breaker_within_a_second(database_url: str) -> None:
    """One process's failures keep the other from calling within a second; after the cooldown one of them probes, and
    what it finds is known to the other within a second too."""
    with a_process(database_url) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        async with breakers_of(database_url) as shared:
            service = Service(is_down=False)
            seen = asyncio.create_task(service.until("BREAKER_OPEN", shared))
            opened = float(await asyncio.to_thread(child.stdout.readline))
            assert -0.1 < await seen - opened < 1.0
            assert await open_tools({"ask": service.tool}, shared) == {"ask"}
            closed = await service.until("OK", shared)
            assert closed - opened > COOLDOWN_S - 1.1
            child.stdin.write("\n")
            child.stdin.flush()
            assert float(await asyncio.to_thread(child.stdout.readline)) - closed < 1.0
            assert await open_tools({"ask": service.tool}, shared) == frozenset()
