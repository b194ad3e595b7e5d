"""A worker for the test of a shared breaker: its tool fails until it is told otherwise; it says when."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from checkpoints.breaker_windows import BreakerWindows
from checkpoints.database import open_database
from checkpoints.tool_stores import PostgresBreakers
from plans.failure import ToolFailure
from tests.checkpoints.slot_worker import say
from tests.tools.calls import code_of, context, ports, tool_of
from tools.call import call
from tools.ports import Ports
from tools.tool import Tool

COOLDOWN_S = 2.0


class Service:
    """What the tool asks; it is down or not."""

    def __init__(self, *, is_down: bool) -> None:
        self.is_down = is_down
        once = {"max_attempts": 1}
        self.tool: Tool = tool_of(self.ask, name="ask", retry=once, breaker={"cooldown_s": COOLDOWN_S}, repeats=None)

    async def ask(self) -> int:
        """Ask."""
        if self.is_down:
            raise ToolFailure("UNAVAILABLE", "down")
        return 1

    async def until(self, code: str, on: Ports) -> float:
        """Call every 20 ms until the call ends so; the wall time then."""
        while code_of(await call(self.tool, {}, context(), on)) != code:  # noqa: ASYNC110 (the database has no event)
            await asyncio.sleep(0.02)
        return time.time()


@asynccontextmanager
async def breakers_of(url: str) -> AsyncIterator[Ports]:
    """What the calls of one worker need."""
    async with open_database(url, Path()) as database:
        yield replace(ports(), breakers=BreakerWindows(PostgresBreakers(database), monotonic=time.monotonic))


async def work(url: str) -> None:
    """Fail until the breaker is open; then say when it is closed for this worker."""
    async with breakers_of(url) as shared:
        service = Service(is_down=True)
        say(f"{await service.until('BREAKER_OPEN', shared)}")
        await asyncio.to_thread(sys.stdin.readline)
        service.is_down = False
        say(f"{await service.until('OK', shared)}")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
