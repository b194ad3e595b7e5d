"""Tests of candidates that are called beside the tool they shadow, and of those that answer instead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from plans.errors import DatabaseUnavailable
from plans.failure import ToolFailure
from plans.shadowing import Agreement, Pair
from tests.tools.calls import Time, code_of, context, ports
from tools.call import Outcome, Success, call
from tools.context import ToolContext
from tools.local import LocalSettings
from tools.ports import Clock, Ports
from tools.registry import Registry, Toolkit
from tools.shadows import FLUSH_S, Shadows


@dataclass
class Counts:
    """A store in memory that can be gone."""

    stored: dict[Pair, Agreement] = field(default_factory=dict)
    gone: bool = False

    async def add(self, counted: Mapping[Pair, Agreement]) -> None:
        if self.gone:
            raise DatabaseUnavailable("gone")
        for pair, found in counted.items():
            self.stored[pair] = self.stored.get(pair, Agreement()).then(found)


@dataclass
class Scene:
    """A tool, its candidate, and what is counted about them."""

    registry: Registry
    ports: Ports
    shadows: Shadows
    counts: Counts
    settings: LocalSettings

    async def ask(self, order: str = "A1", **more: Any) -> Outcome:
        given = more.pop("ctx", None) or context(deadline=time.monotonic() + 30)
        return await call(self.registry["present"], {"order": order}, given, self.ports, **more)

    async def found(self) -> Agreement:
        """What was counted, once all that is in flight has ended."""
        await until(lambda: not self.shadows.in_flight)
        await self.shadows.flush()
        return next(iter(self.counts.stored.values()), Agreement())

    def promote(self) -> None:
        self.settings.changes["present"] = {"answered_by": "next"}


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens in the background."""
    for _ in range(20_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


def counted(found: Agreement) -> tuple[int, int, int, int]:
    return found.agreed, found.differed, found.failed, found.in_a_row


MakeScene = Callable[..., Scene]


@pytest.fixture
async def scene() -> AsyncIterator[MakeScene]:
    """`scene(present, candidate, ...)`; its shadows are closed when the test ends."""
    made: list[Scene] = []

    def make(
        present: Any, candidate: Any, *, now: Any = None, clock: Clock | None = None, most: int = 16, **declared: Any
    ) -> Scene:
        kit = Toolkit("kit")
        once = {"effect": "read", "retry": {"max_attempts": 1}}
        kit.add(present, name="present", **{**once, **(now or {})})
        kit.add(candidate, name="next", shadow_of="present", **{**once, **declared})
        registry, settings, counts = Registry.of(kit), LocalSettings(), Counts()
        bare = ports(clock, settings=settings)
        shadows = Shadows(registry, registry.shadows, counts, bare.clock, most=most)
        made.append(Scene(registry, replace(bare, shadows=shadows), shadows, counts, settings))
        return made[-1]

    yield make
    for each in made:
        await each.shadows.close()


async def today(order: str) -> dict[str, str]:
    """The tool of today."""
    return {"order": order}


async def test_a_candidate_that_says_the_same_is_counted_and_never_used(scene: MakeScene) -> None:
    """The answer is the tool's own, the candidate was given the same arguments, and the row grows."""
    given = list[str]()

    async def tomorrow(order: str) -> dict[str, str]:
        given.append(order)
        return {"order": order}

    on = scene(today, tomorrow)
    for order in ("A1", "A2", "A3"):
        outcome = await on.ask(order)
        assert isinstance(outcome, Success)
        assert (outcome.value, outcome.answered_by, outcome.degraded) == ({"order": order}, None, None)
    assert counted(await on.found()) == (3, 0, 0, 3)
    assert given == ["A1", "A2", "A3"]
    (pair,) = on.counts.stored
    assert (pair.tool, pair.candidate) == ("present", "next")


async def test_a_difference_breaks_the_row_and_is_kept_without_what_it_says(scene: MakeScene) -> None:
    """Places and a hash: neither the arguments nor a value stands in what is stored."""

    async def tomorrow(order: str) -> dict[str, str]:
        return {"order": "s3cret" if order == "B7-secret" else order}

    on = scene(today, tomorrow)
    for order in ("A1", "A2", "B7-secret", "A3"):
        await on.ask(order)
    found = await on.found()
    assert counted(found) == (3, 1, 0, 1)
    assert [each.places for each in found.differences] == [("result.order: another value",)]
    assert "secret" not in repr(found)
    assert "s3cret" not in repr(found)


async def test_only_what_the_comparison_selects_has_to_agree(scene: MakeScene) -> None:
    """A JMESPath over both results."""

    async def tomorrow(order: str) -> dict[str, Any]:
        return {"order": order, "took_s": time.monotonic()}

    assert counted(await _after_one(scene(today, tomorrow))) == (0, 1, 0, 0)
    assert counted(await _after_one(scene(today, tomorrow, shadow_compare="order"))) == (1, 0, 0, 1)


async def _after_one(on: Scene) -> Agreement:
    await on.ask()
    return await on.found()


async def test_a_slow_candidate_delays_nothing_and_ends_at_its_own_deadline(scene: MakeScene) -> None:
    """The call returns at once; the shadow has the time that its own spec gives it, not the run's."""
    began = list[float]()

    async def tomorrow(order: str, ctx: ToolContext) -> str:
        began.append(ctx.seconds_left)
        await asyncio.sleep(60)
        return order

    on = scene(today, tomorrow, timeout_s=0.2)
    started = time.monotonic()
    await on.ask(ctx=context(deadline=time.monotonic() + 0.05))
    assert time.monotonic() - started < 0.15
    assert counted(await on.found()) == (0, 0, 1, 0)
    assert 0.15 < time.monotonic() - started < 2
    assert 0.1 < began[0] <= 0.2


async def test_a_failing_candidate_fails_nothing_and_its_breaker_is_its_own(scene: MakeScene) -> None:
    """Whatever it raises; after three failures it is left alone, which is neither agreement nor failure."""
    calls = list[str]()

    async def tomorrow(order: str) -> str:
        calls.append(order)
        raise RuntimeError("no")

    on = scene(today, tomorrow)
    for number in range(6):
        assert code_of(await on.ask(f"A{number}")) == "OK"
        await on.found()
    assert counted(await on.found()) == (0, 0, 3, 0)
    assert len(calls) == 3
    states = await on.ports.breakers.load_all()
    assert {name: state["status"] for name, state in states.items()} == {"next": "open", "present": "closed"}


async def test_a_call_that_is_cancelled_takes_its_shadow_along(scene: MakeScene) -> None:
    """Who stops waiting for a read leaves no shadow of it behind."""
    ended = list[str]()

    async def slow(order: str) -> str:
        await asyncio.sleep(60)
        return order

    async def tomorrow(order: str) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(order)
        return order

    on = scene(slow, tomorrow, timeout_s=60)
    asked = asyncio.create_task(on.ask())
    await asyncio.sleep(0.02)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert counted(await on.found()) == (0, 0, 0, 0)
    assert ended == ["A1"]


async def test_an_answer_from_the_cache_is_no_live_call(scene: MakeScene) -> None:
    """A kept result is not compared, and spares the candidate too."""
    on = scene(today, today, now={"cache_ttl_s": 60})
    for _ in range(3):
        await on.ask()
    assert counted(await on.found()) == (1, 0, 0, 1)


async def test_a_candidate_that_is_switched_off_or_not_of_this_share_is_not_called(scene: MakeScene) -> None:
    """`disable` stops it; `shadow_share` spares the other side, in what is declared or changed while running."""
    drawn = iter([0.1, 0.5, 0.49, 0.9])
    clock = replace(Clock(), uniform=lambda _low, _high: next(drawn))
    on = scene(today, today, clock=clock, shadow_share=0.5)
    for _ in range(4):
        await on.ask()
    assert counted(await on.found()) == (2, 0, 0, 2)
    on.settings.changes["next"] = {"shadow_share": 1}
    await on.ask()
    assert counted(await on.found()) == (3, 0, 0, 3)
    on.settings.changes["next"] = {"enabled": False}
    await on.ask()
    assert counted(await on.found()) == (3, 0, 0, 3)


async def test_a_shadow_can_write_nothing_and_tells_nobody(scene: MakeScene, tmp_path: Path) -> None:
    """Its output is refused, its progress goes nowhere, and what it does to its arguments stays with it."""
    said = list[str]()

    async def mine(order: str, ctx: ToolContext) -> str:
        ctx.progress(0.5, "mine")
        return order

    async def tomorrow(order: str, ctx: ToolContext) -> str:
        ctx.progress(0.5, "theirs")
        ctx.files.writable("report.txt").write_text(order)
        return order

    on = scene(mine, tomorrow)
    ctx = replace(context(tmp_path, deadline=time.monotonic() + 5), progress=lambda _f, message: said.append(message))
    await on.ask(ctx=ctx)
    found = await on.found()
    assert (said, [*tmp_path.iterdir()], found.differed) == (["mine"], [], 1)  # noqa: ASYNC240 (a folder of this test)
    assert found.differences[0].places == ("failure: new", "result: missing")


async def test_shadows_in_flight_are_bounded_and_hung_threads_are_among_them(scene: MakeScene) -> None:
    """Above the bound calls go without one; a thread that goes on after its deadline still counts."""
    let_go, calls = threading.Event(), list[str]()

    def tomorrow(order: str) -> str:
        calls.append(order)
        let_go.wait(20)
        return order

    on = scene(today, tomorrow, most=2, timeout_s=0.1)
    try:
        for number in range(5):
            await on.ask(f"A{number}")
        await on.found()
        await on.ask("A9")
        assert (len(calls), on.shadows.working) == (2, 2)
    finally:
        let_go.set()
    await until(lambda: not on.shadows.working)
    await on.ask("B1")
    await on.found()
    assert "B1" in calls


async def test_closing_ends_what_is_in_flight_and_stores_what_was_counted(scene: MakeScene) -> None:
    """Nothing hangs, nothing is left running, nothing that was counted is lost."""

    async def tomorrow(order: str) -> Any:
        if order == "slow":
            await asyncio.sleep(60)
        return {"order": order}

    on = scene(today, tomorrow, timeout_s=60)
    await on.ask("A1")
    await until(lambda: on.shadows.waiting == 1)
    await on.ask("slow")
    started = time.monotonic()
    await on.shadows.close()
    assert time.monotonic() - started < 1
    assert on.shadows.in_flight == 0
    assert counted(next(iter(on.counts.stored.values()))) == (1, 0, 0, 1)


async def test_counts_are_stored_in_the_background_and_kept_while_the_database_is_gone(scene: MakeScene) -> None:
    """Twice a second; what cannot be stored is added to what comes next."""
    time_ = Time()
    on = scene(today, today, clock=time_.clock)
    on.counts.gone = True
    ctx = context(deadline=time_.now + 30)
    await on.ask(ctx=ctx)
    await on.found()
    assert on.counts.stored == {}
    on.counts.gone = False
    await on.ask(ctx=ctx)
    await until(lambda: [each.agreed for each in on.counts.stored.values()] == [2])
    assert FLUSH_S in time_.slept


async def test_after_promotion_the_candidate_answers_and_the_former_tool_is_its_shadow(scene: MakeScene) -> None:
    """The outcome says who has answered; a difference counts as before; a failure is the call's own."""

    async def tomorrow(order: str) -> dict[str, str]:
        if order == "none":
            raise ToolFailure("NOT_FOUND", "there is none")
        return {"order": order, **({"more": "yes"} if order == "A2" else {})}

    on = scene(today, tomorrow)
    on.promote()
    outcome = await on.ask("A2")
    assert isinstance(outcome, Success)
    assert (outcome.value, outcome.answered_by) == ({"order": "A2", "more": "yes"}, "next")
    assert code_of(await on.ask("none")) == "NOT_FOUND"
    await on.ask("A1")
    found = await on.found()
    assert counted(found) == (1, 2, 0, 1)
    assert found.differences[0].places == ("result.more: new",)
    on.settings.changes["present"] = {}
    back = await on.ask("A2")
    assert isinstance(back, Success)
    assert (back.value, back.answered_by) == ({"order": "A2"}, None)


async def test_a_promoted_candidate_that_is_switched_off_leaves_the_calls_to_the_tool_itself(scene: MakeScene) -> None:
    """Switching the candidate off is a way back; switching the tool off stops both."""
    on = scene(today, today)
    on.promote()
    on.settings.changes["next"] = {"enabled": False}
    outcome = await on.ask()
    assert isinstance(outcome, Success)
    assert outcome.answered_by is None
    on.settings.changes["present"] = {"answered_by": "next", "enabled": False}
    assert code_of(await on.ask()) == "TOOL_DISABLED"


async def test_a_promotion_of_another_tool_means_nothing(scene: MakeScene) -> None:
    """Only the declared candidate can answer, whatever is stored."""
    on = scene(today, today)
    on.settings.changes["present"] = {"answered_by": "someone"}
    outcome = await on.ask()
    assert isinstance(outcome, Success)
    assert outcome.answered_by is None


async def test_what_was_kept_of_one_is_not_given_as_the_others_answer(scene: MakeScene) -> None:
    """A promotion and its end are seen at once, whatever is in the cache."""

    async def tomorrow(order: str) -> dict[str, str]:
        return {"order": order, "by": "next"}

    on = scene(today, tomorrow, now={"cache_ttl_s": 60})
    plain, other = {"order": "A1"}, {"order": "A1", "by": "next"}
    values = []
    for changes in ({}, {"answered_by": "next"}, {}):
        on.settings.changes["present"] = changes
        for _ in range(2):
            outcome = await on.ask()
            assert isinstance(outcome, Success)
            values.append(outcome.value)
    assert values == [plain, plain, other, other, plain, plain]


async def test_the_rules_and_roles_of_both_hold_after_a_promotion(scene: MakeScene) -> None:
    """A candidate cannot be a way around a guard of the tool whose place it takes, nor around its own."""
    rule = [{"condition": "order != 'X'", "message": "not X"}]
    on = scene(today, today, now={"rules": rule})
    on.promote()
    assert code_of(await on.ask("X")) == "RULE_VIOLATED"
    on = scene(today, today, roles=["clerk"])
    on.promote()
    assert code_of(await on.ask("A1")) == "NOT_PERMITTED"
    assert code_of(await on.ask("A1", role="clerk")) == "OK"
