"""What tests of calls share: a clock that a test moves, contexts, ports, and one tool made from a function."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plans.failure import Failure
from tools.call import CallFailure, Outcome, Success
from tools.context import ToolContext
from tools.files import FileScope
from tools.local import LocalBreakers, LocalCache, LocalSettings
from tools.outcome import Call
from tools.ports import Clock, Ports
from tools.registry import Registry, Toolkit
from tools.tool import Tool


@dataclass
class Time:
    """Time that moves only when told to, or when somebody sleeps. Sleeps are kept."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(
            monotonic=lambda: self.now, wall=lambda: self.now, sleep=self.sleep, uniform=lambda low, _high: low
        )


def tool_of(function: Any, **declared: Any) -> Tool:
    """A registered tool made from a function, which must have no faults."""
    toolkit = Toolkit("tested")
    tool = toolkit.add(function, **{"effect": "read", **declared})
    return Registry.of(toolkit)[tool.name]


def context(tmp: Path | None = None, *, deadline: float | None = None, step_id: str = "s1") -> ToolContext:
    """A context that ends in a minute, or at the given instant."""
    bare = ToolContext.bare(tmp or Path("/dev/null/nowhere"))
    ends = time.monotonic() + 60 if deadline is None else deadline
    return ToolContext(
        run_id=bare.run_id,
        step_id=step_id,
        attempt=2,
        idempotency_key=bare.idempotency_key,
        deadline=ends,
        files=FileScope({}, tmp or Path("/dev/null/nowhere")),
        connection=bare.connection,
        external=bare.external,
        progress=bare.progress,
    )


def ports(clock: Clock | None = None, *, tenant: str = "", settings: LocalSettings | None = None) -> Ports:
    """Fresh stores; with a clock, that of the test."""
    used = clock or Clock()
    cache = LocalCache(now=used.monotonic)
    return Ports(LocalBreakers(), settings or LocalSettings(), cache, clock=used, tenant=tenant)


def a_call(tool: Tool, args: dict[str, Any] | None = None, *, clock: Clock | None = None, seconds: float = 60) -> Call:
    """One call with fresh ports, whose deadline is in `seconds` on its clock."""
    used = clock or Clock()
    return Call(tool, tool.spec, args or {}, context(deadline=used.monotonic() + seconds), ports(used))


@dataclass
class Scripted:
    """Stands for the layers below: gives the scripted outcomes one after the other, the last one for ever."""

    outcomes: Sequence[Outcome]
    calls: list[Call] = field(default_factory=list)

    async def __call__(self, call: Call) -> Outcome:
        self.calls.append(call)
        call.ended()
        return self.outcomes[min(len(self.calls), len(self.outcomes)) - 1]


def failed(code: str, *, delay_s: float | None = None, called: bool = True) -> CallFailure:
    """A failure of this code."""
    return CallFailure(Failure(code=code, message="said", tool="t", step_id="s1", delay_s=delay_s), called=called)


def code_of(outcome: Outcome) -> str:
    """The code of a failure, or OK."""
    return "OK" if isinstance(outcome, Success) else outcome.failure.code
