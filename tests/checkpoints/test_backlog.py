"""The queue before the journal's writer: its order, and its bounds."""

from __future__ import annotations

import asyncio

import pytest

from checkpoints.backlog import ALL_ROWS, RUN_ROWS, Backlog
from tests.checkpoints.scenes import a_row


async def test_a_row_that_waits_for_room_is_not_overtaken() -> None:
    """Rows of one run enter in the order of the calls, also when one finds room that another has waited for."""
    backlog = Backlog()
    for n in range(RUN_ROWS):
        await backlog.put(a_row(n), "{}")
    waiting = asyncio.create_task(backlog.put(a_row(RUN_ROWS), "{}"))
    await asyncio.sleep(0)
    backlog.settle([None] * 2)
    await backlog.put(a_row(RUN_ROWS + 1), "{}")
    await waiting
    assert [entry.row.n for entry in backlog.head(ALL_ROWS)] == list(range(2, RUN_ROWS + 2))


async def test_all_runs_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs there are, memory stays flat: a row beyond the bound waits until one is written."""
    monkeypatch.setattr("checkpoints.backlog.ALL_ROWS", 3)
    backlog = Backlog()
    for n in range(3):
        await backlog.put(a_row(1, f"r{n}"), "{}")
    waiting = asyncio.create_task(backlog.put(a_row(1, "r3"), "{}"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    backlog.settle([None])
    await waiting
    assert [entry.row.run_id for entry in backlog.head(10)] == ["r1", "r2", "r3"]


async def test_whoever_waits_for_room_hears_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that never came into the queue is refused when the queue is closed, and not left waiting for ever."""
    monkeypatch.setattr("checkpoints.backlog.ALL_ROWS", 1)
    backlog = Backlog()
    queued = await backlog.put(a_row(1, "r1"), "{}")
    waiting = asyncio.create_task(backlog.put(a_row(1, "r2"), "{}"))
    await asyncio.sleep(0)
    backlog.close(ValueError("closed"))
    for refused in (queued, waiting):
        with pytest.raises(ValueError, match="closed"):
            await refused
    await backlog.drain()


async def test_a_caller_cancelled_while_it_waits_for_room_leaves_no_trace() -> None:
    """Its row is not queued, and those that wait behind it come in."""
    backlog = Backlog()
    for n in range(RUN_ROWS):
        await backlog.put(a_row(n), "{}")
    first = asyncio.create_task(backlog.put(a_row(100), "{}"))
    second = asyncio.create_task(backlog.put(a_row(101), "{}"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    backlog.settle([None])
    await second
    assert [entry.row.n for entry in backlog.head(ALL_ROWS)][-1] == 101


async def test_a_run_that_is_over_leaves_nothing_behind() -> None:
    """A process that drives a million runs does not remember them; a refusal is remembered until it is forgotten."""
    backlog = Backlog()
    for n in range(5):
        await backlog.put(a_row(1, f"r{n}"), "{}")
    backlog.settle([None, None, ValueError("no"), None, None])
    assert list(backlog._tails) == ["r2"]
    with pytest.raises(ValueError, match="no"):
        await backlog.flush("r2")
    backlog.forget("r2")
    assert not backlog._tails
