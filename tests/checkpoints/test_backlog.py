"""The queue before the journal's writer: its order, and its bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from checkpoints.backlog import ALL_ROWS, BATCH_ROWS, LONGEST_LINGER_S, RUN_ROWS, Backlog
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


async def test_rows_that_linger_are_sent_together_when_their_time_has_come() -> None:
    """However long they could wait, 10 ms after the first of them all are due; none is left behind."""
    backlog = Backlog()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for n in range(3):
        await backlog.put(a_row(n), "{}", linger_s=60.0)
    async with asyncio.timeout(5):
        await backlog.filled()
    assert loop.time() - began >= LONGEST_LINGER_S * 0.9
    assert len(backlog.head(BATCH_ROWS)) == 3


async def test_a_full_commit_lingers_no_longer() -> None:
    """The tail of a run that only reads is at most 64 rows: the 64th makes them due at once."""
    backlog = Backlog()
    for n in range(RUN_ROWS):
        assert not is_due(backlog), n
        await backlog.put(a_row(n), "{}", linger_s=60.0)
    assert is_due(backlog)


async def test_a_row_that_somebody_waits_for_takes_those_before_it_along() -> None:
    """An intent does not linger, and what lingers before it goes in the same commit."""
    backlog = Backlog()
    await backlog.put(a_row(1), "{}", linger_s=60.0)
    assert not is_due(backlog)
    await backlog.put(a_row(2), "{}")
    assert is_due(backlog)
    assert [entry.row.n for entry in backlog.head(BATCH_ROWS)] == [1, 2]


@pytest.mark.parametrize("wait", [lambda backlog: backlog.flush("r1"), lambda backlog: backlog.drain()])
async def test_whoever_flushes_does_not_wait_for_rows_that_linger(wait: Callable[[Backlog], Any]) -> None:
    """The end of a node, or of the journal, makes lingering rows due at once."""
    backlog = Backlog()
    await backlog.put(a_row(1), "{}", linger_s=60.0)
    waiting = asyncio.create_task(wait(backlog))
    await asyncio.sleep(0)
    assert is_due(backlog)
    backlog.settle([None])
    await waiting
    assert not is_due(backlog)


async def test_what_came_during_a_commit_may_linger_on() -> None:
    """After a commit only rows whose time has come are sent at once."""
    backlog = Backlog()
    await backlog.put(a_row(1), "{}")
    await backlog.put(a_row(2), "{}", linger_s=60.0)
    backlog.settle([None])
    assert not is_due(backlog)
    async with asyncio.timeout(5):
        await backlog.filled()


def is_due(backlog: Backlog) -> bool:
    """Whether the writer would send something now."""
    filled = backlog.filled()
    try:
        filled.send(None)
    except StopIteration:
        return True
    filled.close()
    return False
