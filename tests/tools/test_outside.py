"""Toolkits whose tools are declared elsewhere: found when a registry is made, told where they are not, closed again."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from plans.errors import ConfigurationError
from plans.lint import lint
from plans.plan import PlanDraft
from tools.outside import OutsideToolkit, ToolsAbsent, held
from tools.registry import Registry, Toolkit, combine


class Elsewhere(OutsideToolkit):
    """Finds one tool, after as many searches as it is told to fail; counts searches and closings."""

    def __init__(self, name: str = "far", *, failing: int = 0, seconds: float = 0.0, prefix: str = "far_") -> None:
        super().__init__(name, prefix=prefix)
        self.failing, self.seconds = failing, seconds
        self.searched, self.closed, self.cancelled = 0, 0, 0

    async def find(self) -> None:
        self.searched += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.searched <= self.failing:
            raise ToolsAbsent("its server could not be started")

        async def look() -> str:
            """Look."""
            return "seen"

        self.add(look, name=f"{self.name}_look", effect="read")
        self.left_out[f"{self.name}_odd"] = "its schema cannot be used"

    async def close(self) -> None:
        self.closed += 1


def draft(tool: str) -> PlanDraft:
    """A plan of one step."""
    return PlanDraft.model_validate({"goal": "g", "steps": [{"id": "s1", "tool": tool, "args": {}, "reason": "r"}]})


def test_tools_are_found_once_for_all_registries() -> None:
    """A registry finds them, the next one has them; what is left out of them is told."""
    kit = Elsewhere()
    assert [list(Registry.of(kit)) for _ in range(2)] == [["far_look"]] * 2
    assert kit.searched == 1
    assert Registry.of(kit).notices == ["the toolkit 'far' leaves far_odd out: its schema cannot be used"]


async def test_they_are_found_where_an_event_loop_runs() -> None:
    """A program that makes a registry within async code waits, and gets its tools all the same."""
    assert list(Registry.of(Elsewhere())) == ["far_look"]


def test_one_that_is_not_there_leaves_the_others_alone() -> None:
    """The others' tools work; the notice says why these are not there, and the next registry tries again."""
    kit, mine = Elsewhere(failing=1), Toolkit("mine")
    mine.add(lambda: 1, name="now", effect="read")
    registry, notices = combine([], [mine, kit])
    assert list(registry) == ["now"]
    assert kit.searched == 1
    assert notices == ["the toolkit 'far' has no tools now: its server could not be started"]
    assert list(Registry.of(kit)) == ["far_look"]
    assert Registry.of(kit).why_absent("far_look") is None


def test_a_plan_that_names_an_absent_tool_is_told_why() -> None:
    """By the toolkit's prefix, and by name where one tool was left out; another name is simply unknown."""
    there, gone = Registry.of(Elsewhere()), Registry.of(Elsewhere(failing=9))
    assert [(f.code, f.message) for f in lint(draft("far_odd"), there)] == [
        (
            "TOOL_UNAVAILABLE",
            "the tool 'far_odd' is not there: the toolkit 'far' leaves it out: its schema cannot be used",
        )
    ]
    (found,) = lint(draft("far_look"), gone)
    assert (found.code, "could not be started" in found.message) == ("TOOL_UNAVAILABLE", True)
    assert [f.code for f in lint(draft("near_look"), gone)] == ["UNKNOWN_TOOL"]


def test_slow_ones_are_found_at_the_same_time() -> None:
    """Five servers that take 0.3 s take 0.3 s together."""
    began = time.monotonic()
    Registry.of(*(Elsewhere(f"far{n}", seconds=0.3, prefix=f"far{n}_") for n in range(5)))
    assert time.monotonic() - began < 1.0


def test_a_bug_of_one_is_raised_where_the_registry_is_made() -> None:
    """Only what says of itself that tools are absent is a notice."""

    class Broken(Elsewhere):
        async def find(self) -> None:
            raise ConfigurationError("no such file")

    with pytest.raises(ConfigurationError, match="no such file"):
        Registry.of(Broken())


def test_a_ctrl_c_ends_the_search() -> None:
    """The search is cancelled and over before the interruption goes on."""
    kit = Elsewhere(seconds=30)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever an earlier test has left
    threading.Timer(0.3, interrupt).start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            Registry.of(kit)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (kit.cancelled, time.monotonic() - began < 10) == (1, True)
    assert not [thread for thread in threading.enumerate() if thread.name == "surestep-gather"]


def interrupt() -> None:
    """As a terminal does it."""
    os.kill(os.getpid(), signal.SIGINT)


async def test_the_last_engine_of_a_loop_closes_what_calls_have_opened() -> None:
    """Two engines on one loop share what is open; it is closed with the second, and once."""
    kit = Elsewhere()
    async with held([kit]):
        async with held([kit, Toolkit("mine")]):
            pass
        assert kit.closed == 0
    assert kit.closed == 1
