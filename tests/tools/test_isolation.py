"""Tests of the thread pool: bounded, fair between tools, and never in the way of the process's end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from plans.failure import ToolFailure
from tests.tools.calls import context, tool_of
from tools.context import ToolContext
from tools.isolation import ThreadPool


class Gate:
    """Work that runs until it is let go."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def work(self) -> str:
        self.open.wait(10)
        return threading.current_thread().name


@pytest.fixture
def gate() -> Gate:
    """Closed at first."""
    return Gate()


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something is so; fails after five seconds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 (threads tell nobody when they end)
            await asyncio.sleep(0.005)


async def test_a_full_pool_refuses(gate: Gate) -> None:
    """Work that finds no free thread is refused at once: it never queues behind hung work."""
    pool = ThreadPool(size=4)
    waiting = [pool.submit(name, gate.work) for name in "aabb"]
    with pytest.raises(ToolFailure) as refused:
        pool.submit("c", gate.work)
    assert refused.value.code == "POOL_FULL"
    gate.open.set()
    assert [(await future)[1] for future in waiting] == [None] * 4
    await eventually(lambda: pool.running == 0)
    assert (await pool.submit("c", lambda: 3))[0] == 3


async def test_one_tool_takes_half_of_the_pool_at_most(gate: Gate) -> None:
    """A tool that hangs leaves threads to the others."""
    pool = ThreadPool(size=4)
    hung = [pool.submit("hung", gate.work) for _ in range(2)]
    with pytest.raises(ToolFailure, match="2 calls of hung still run"):
        pool.submit("hung", gate.work)
    assert (await pool.submit("other", lambda: "done"))[0] == "done"
    gate.open.set()
    await asyncio.gather(*hung)


async def test_threads_are_used_again() -> None:
    """A hundred calls one after the other need one or two threads, not a hundred."""
    pool = ThreadPool(size=50)
    names = {(await pool.submit("t", lambda: threading.current_thread().name))[0] for _ in range(100)}
    assert len(names) <= 3


async def test_a_result_that_nobody_waits_for_is_dropped(gate: Gate) -> None:
    """A cancelled wait leaves the thread to end by itself; its place is free again afterwards."""
    pool = ThreadPool(size=2)
    future = pool.submit("t", gate.work)
    future.cancel()
    assert pool.running == 1
    gate.open.set()
    await eventually(lambda: pool.running == 0)
    assert future.cancelled()


@pytest.mark.parametrize("error", [KeyError("x"), StopIteration("x"), SystemExit(3), StopAsyncIteration()])
async def test_whatever_a_thread_raises_arrives(error: BaseException) -> None:
    """Even exceptions that a future or a coroutine treats specially come out as what they are."""

    def work() -> None:
        raise error

    returned, raised = await ThreadPool(size=1).submit("t", work)
    assert (returned, raised) == (None, error)


def test_a_loop_that_has_closed_gets_nothing(gate: Gate) -> None:
    """Work that outlives its event loop ends quietly."""
    pool = ThreadPool(size=2)

    async def start() -> None:
        pool.submit("t", gate.work)

    asyncio.run(start())
    gate.open.set()
    ends = time.monotonic() + 5
    while pool.running and time.monotonic() < ends:
        time.sleep(0.005)
    assert pool.running == 0


async def test_progress_from_a_thread_is_told_on_the_loop() -> None:
    """The person who watches gets a sync tool's progress on the loop's own thread."""
    heard: list[tuple[float | None, str, str]] = []

    def work(ctx: ToolContext) -> None:
        ctx.progress(0.5, "half")

    bare = context()
    told = ToolContext(**{**vars(bare), "progress": lambda f, m: heard.append((f, m, threading.current_thread().name))})
    await tool_of(work).invoke({}, told)
    await eventually(lambda: bool(heard))
    assert heard == [(0.5, "half", threading.main_thread().name)]


def test_a_hung_tool_does_not_keep_the_process_from_ending() -> None:
    """A program with a tool that hangs for ever ends when it is done with the rest."""
    program = (
        "import asyncio, threading, time\n"
        "from tools.isolation import ThreadPool\n"
        "async def main():\n"
        "    ThreadPool().submit('hung', lambda: time.sleep(60))\n"
        "    await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], timeout=30, check=False)
    assert ended.returncode == 0
