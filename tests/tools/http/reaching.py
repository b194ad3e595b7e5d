"""The tool `http` on a test's own server, called through the whole chain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.tools.calls import context, ports
from tests.tools.http.flaky import ADDRESS, HOST, FlakyServer
from tools.call import Outcome, Success, call
from tools.http import http_toolkit
from tools.ports import Clock
from tools.registry import Registry
from tools.tool import Tool


def http_tool(server: FlakyServer, *more_hosts: str, **options: Any) -> Tool:
    """The tool, allowed to reach the server by its name and its address."""
    allowed = [f"{HOST}:{server.port}", *more_hosts]
    return Registry.of(http_toolkit(allowed, [f"{HOST}={ADDRESS}"], **options))["http"]


@dataclass
class Waits:
    """A clock on which waiting takes no time; how long was asked for is kept."""

    waited: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(sleep=self.sleep, uniform=lambda low, _high: low)


async def calling(
    tool: Tool, args: dict[str, Any], *, seconds: float = 20.0, waits: Waits | None = None, key: str = "key-1"
) -> Outcome:
    """One call through all layers, with fresh stores."""
    from dataclasses import replace

    ctx = replace(context(deadline=time.monotonic() + seconds), idempotency_key=key)
    return await call(tool, args, ctx, ports((waits or Waits()).clock))


def value_of(outcome: Outcome) -> Any:
    """The result of a call that must have gone well."""
    assert isinstance(outcome, Success), outcome
    return outcome.value


def message_of(outcome: Outcome) -> str:
    """The sentence of a call that must have failed."""
    assert not isinstance(outcome, Success), outcome
    return outcome.failure.message


def said(outcomes: Sequence[Outcome]) -> list[str]:
    """The codes of several outcomes."""
    return ["OK" if isinstance(outcome, Success) else outcome.failure.code for outcome in outcomes]
