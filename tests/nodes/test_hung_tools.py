"""Tests of tools that hang: they hold up their own run, and nobody else's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import plan, running, step
from tests.tools.test_isolation import eventually
from tools.isolation import POOL, THREADS
from tools.registry import Toolkit

ONCE = {"max_attempts": 1}


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """What lets hung tools end; set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def hanging(name: str, go: threading.Event) -> Any:
    """A sync tool that hangs."""

    def hang() -> str:
        go.wait(30)
        return name

    return hang


def toolkit(go: threading.Event, count: int) -> Toolkit:
    """So many tools that hang, and one each that answers from a thread and on the loop."""
    kit = Toolkit("hung")
    for number in range(count):
        kit.add(hanging(f"hang{number}", go), name=f"hang{number}", effect="read", timeout_s=20, retry=ONCE)

    @kit.tool(effect="read")
    def quick() -> int:
        """Answer from a thread."""
        return 1

    @kit.tool(effect="read")
    async def light() -> int:
        """Answer on the loop."""
        return 2

    return kit


@pytest.mark.parametrize("count", [6, 60])
async def test_hung_tools_of_one_run_starve_no_other_run(
    database_url: str, tmp_path: Path, go: threading.Event, count: int
) -> None:
    """Asyncio's own pool has six threads here: with six and with sixty sync tools that hang in one run, another run of
    the same process and engine, of sync and async tools, finishes as on a quiet day."""
    hung = [step(f"h{number}", f"hang{number}") for number in range(count)]
    other = [step("q1", "quick"), step("l1", "light", "q1"), step("q2", "quick", "l1"), step("q3", "quick", "q2")]
    before = POOL.running
    async with running(database_url, tmp_path, [toolkit(go, count)]) as agent:
        limits = {"concurrency": count, "max_steps": count}
        stuck = asyncio.create_task(agent.run(plan=plan(*hung), thread_id="stuck", limits=limits))
        await eventually(lambda: POOL.running == before + count)
        began = time.monotonic()
        result = await agent.run(plan=plan(*other, answer="${q3}"), thread_id="other")
        took = time.monotonic() - began
        assert not stuck.done()
        go.set()
        assert (await stuck).status == "done"
    assert (result.status, result.answer) == ("done", "1")
    assert took < 3.0  # some 0.1 s on a free machine; the hung ones have twenty


async def test_a_tool_that_fills_its_share_is_refused_at_once(
    database_url: str, tmp_path: Path, go: threading.Event
) -> None:
    """Half of the threads are one tool's at most: its next call fails with POOL_FULL at once, and others run."""
    half = THREADS // 2
    hung = [step(f"h{number}", "hang0") for number in range(half + 1)]
    async with running(database_url, tmp_path, [toolkit(go, 1)]) as agent:
        limits = {"concurrency": half + 1, "max_steps": half + 1, "max_attempts": 1}
        stuck = asyncio.create_task(agent.run(plan=plan(*hung), thread_id="stuck", limits=limits))
        await asyncio.sleep(1.0)
        went_on = await agent.run(plan=plan(step("q", "quick"), answer="${q}"), thread_id="other")
        go.set()
        result = await stuck
    codes = [each.failure.code for each in result.steps if each.failure is not None]
    assert (codes, went_on.answer) == (["POOL_FULL"], "1")
    assert next(each.elapsed_s for each in result.steps if each.failure is not None) < 1.0
