"""How a tool's breaker stands now, for people who look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plans.values import JSON
from tools.breaker import PROBE_GRACE_S, state_of
from tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class BreakerNow:
    """`until` is the wall time, in seconds since the epoch, until which calls are refused (None: they are not); once it
    is over one call probes. `calls` are the last ones that count, the oldest first, True for a success; none are kept
    while it is not closed."""

    status: Literal["closed", "open", "half_open"]
    until: float | None = None
    calls: tuple[bool, ...] = ()


def breaker_now(stored: dict[str, JSON] | None, spec: ToolSpec, now: float) -> BreakerNow:
    """What is stored about a breaker, read at this wall time, by the policy that counts now."""
    state = state_of(stored)
    if state.status == "closed":
        return BreakerNow("closed", calls=state.window)
    wait_s = spec.breaker.cooldown_s if state.status == "open" else spec.timeout_s + PROBE_GRACE_S
    until = state.since + wait_s
    return BreakerNow(state.status, until if until > now else None)
