"""The loop of the simulation keeps asyncio's promises, on time of its own."""

from __future__ import annotations

import asyncio

import pytest

from tests.simulation.timeline import Stuck, Timeline, chance, simulated
from tests.simulation.virtual_loop import VirtualLoop


def test_time_jumps_to_the_next_timer() -> None:
    """A year of sleep takes no time, and a timeout inside it comes at its instant."""

    async def work() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.sleep(31_536_000)
        early = loop.time()
        await asyncio.sleep(31_536_000)
        return early, loop.time()

    assert simulated(work()) == (86_400, 86_400 + 31_536_000)


def test_what_would_need_a_thread_runs_in_the_loop() -> None:
    """`to_thread` gives the function's result, or what it raised, without a thread."""

    async def work() -> str:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(lambda: "done")

    assert simulated(work()) == "done"


def test_waiting_for_nothing_is_told() -> None:
    """A wait that nothing can end is an error, not a hang."""

    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        simulated(work())


def _order_of(seed: int, shuffle: float) -> list[int]:
    timeline, said = Timeline(chance(seed)), list[int]()
    loop = VirtualLoop(timeline, order=chance(seed), shuffle=shuffle)
    timeline.run(loop)

    async def say(number: int) -> None:
        await asyncio.sleep(1)
        said.append(number)

    async def work() -> None:
        await asyncio.gather(*(say(number) for number in range(12)))

    try:
        timeline.complete(loop, work())
    finally:
        loop.close()
    return said


def test_a_seed_is_a_schedule() -> None:
    """Without shuffling there is one order; with it there are many, the same for the same seed."""
    assert _order_of(1, 0.0) == _order_of(2, 0.0)
    assert _order_of(1, 1.0) == _order_of(1, 1.0)
    assert len({tuple(_order_of(seed, 1.0)) for seed in range(5)}) == 5


def test_a_loop_that_is_paused_goes_on_later() -> None:
    """Its timers wait for it; those of other loops do not."""
    timeline = Timeline()
    first, second = VirtualLoop(timeline), VirtualLoop(timeline)
    woken: list[tuple[str, float]] = []

    async def work(name: str) -> None:
        await asyncio.sleep(10)
        woken.append((name, timeline.now))

    timeline.run(first)
    slow = first.create_task(work("first"))
    timeline.step()
    timeline.pause(first)
    timeline.run(second)
    timeline.complete(second, work("second"))
    timeline.complete(second, work("second"))
    timeline.run(first)
    while not slow.done():
        timeline.step()
    assert woken == [("second", 10), ("second", 20), ("first", 20)]
    first.close()
    second.close()
