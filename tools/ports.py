"""What a safeguarded call needs from outside: shared breaker state, live settings, a cache, slots, and time.

Implementations need not import this module: they fit by shape. `tools/local.py` has one of each for one process.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from plans.shadowing import Agreement, Pair
from plans.sharing import Asked, FailedCalls, SlotLimits
from plans.values import JSON

if TYPE_CHECKING:
    from tools.shadows import Shadows
    from tools.vault import Vault


class BreakerStore(Protocol):
    """The breakers' states, one JSON object per tool, shared by all who call it."""

    async def load(self, tool: str) -> dict[str, JSON] | None:
        """The tool's state; None where nothing was ever stored."""
        ...

    async def load_all(self) -> dict[str, dict[str, JSON]]:
        """Every stored state by tool."""
        ...

    async def swap(self, tool: str, old: dict[str, JSON] | None, new: dict[str, JSON]) -> bool:
        """Store `new` if the state is still `old` (None: nothing stored yet); False, and nothing stored, if not."""
        ...


class SettingsStore(Protocol):
    """What was changed about a tool while running: `enabled` and fields of its ToolSpec."""

    async def get(self, tool: str) -> Mapping[str, JSON]:
        """The changes, possibly two seconds old; empty where nothing was changed."""
        ...


class CacheStore(Protocol):
    """Results of reads by key. Expired entries are never given back."""

    async def get(self, key: str) -> tuple[JSON, float] | None:
        """The stored value and its age in seconds, or None."""
        ...

    async def put(self, key: str, tool: str, value: JSON, keep_s: float, run_id: str = "") -> None:
        """Keep a value for `keep_s` seconds, for the run that has asked for it and for all others."""
        ...


class FailureStore(Protocol):
    """Which calls have failed since they last succeeded, by fingerprint, shared by all who make them."""

    async def known(self) -> Mapping[str, FailedCalls]:
        """The failures by fingerprint, possibly half a second old; what is noted here is in it at once."""
        ...

    async def note(self, key: str, tool: str, code: str, within_s: float) -> None:
        """An attempt has failed; it may be forgotten after `within_s` seconds."""
        ...

    async def clear(self, key: str) -> None:
        """The call has succeeded: its failures are forgotten."""
        ...


class SlotStore(Protocol):
    """Slots and starts of calls over all workers. Each slot has an owner and an expiry, so that none is lost with a
    worker; who asks again and again keeps its place among those that wait."""

    async def take(self, slot: str, tool: str, limits: SlotLimits, hold_s: float) -> Asked:
        """Take a slot and a start, if both are free and nobody who waits came first. The slot is held for `hold_s`
        seconds and longer where the call goes on. Raises DatabaseUnavailable."""
        ...

    def give_back(self, slot: str) -> None:
        """Free the slot, or leave the place among those that wait. Never waits, never fails."""
        ...


class ShadowStore(Protocol):
    """How often candidates have agreed with the tools that they shadow, added up over all workers."""

    async def add(self, counted: Mapping[Pair, Agreement]) -> None:
        """Add what was counted since the last time. DatabaseUnavailable when the server is gone, and nothing added."""
        ...


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, handed in so that tests own them. `monotonic` is the time of deadlines, `wall` (seconds since
    the epoch) the one that workers share; `uniform` gives a number between two bounds."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything around a call that is not the call. `tenant` keeps one tenant's cached results from another's. Without
    `failures` no call counts as repeated; without `slots` this process is all workers there are; without `shadows` no
    candidate is called; without `vault` nothing is kept secret."""

    breakers: BreakerStore
    settings: SettingsStore
    cache: CacheStore
    clock: Clock = field(default_factory=Clock)
    tenant: str = ""
    failures: FailureStore | None = None
    slots: SlotStore | None = None
    shadows: Shadows | None = None
    vault: Vault | None = None
