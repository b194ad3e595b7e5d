"""Stores for one process: what a call needs where no database shares it between workers."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from plans.sharing import FailedCalls
from plans.values import JSON
from tools.ports import Ports
from tools.spec import MOST_REPEATS


class LocalBreakers:
    """BreakerStore in memory."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, JSON]] = {}

    async def load(self, tool: str) -> dict[str, JSON] | None:
        """The tool's state."""
        return self._states.get(tool)

    async def load_all(self) -> dict[str, dict[str, JSON]]:
        """Every state by tool."""
        return dict(self._states)

    async def swap(self, tool: str, old: dict[str, JSON] | None, new: dict[str, JSON]) -> bool:
        """Compare and set."""
        if self._states.get(tool) != old:
            return False
        self._states[tool] = new
        return True


class LocalSettings:
    """SettingsStore in memory."""

    def __init__(self, changes: Mapping[str, Mapping[str, JSON]] | None = None) -> None:
        self.changes: dict[str, Mapping[str, JSON]] = dict(changes or {})

    async def get(self, tool: str) -> Mapping[str, JSON]:
        """What was changed about a tool."""
        return self.changes.get(tool, {})


class LocalCache:
    """CacheStore in memory: the `size` entries used last. Values are kept as text, so nobody can change them."""

    def __init__(self, size: int = 1_024, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._now = now
        self._entries: OrderedDict[str, tuple[str, float, float]] = OrderedDict()

    async def get(self, key: str) -> tuple[JSON, float] | None:
        """The value and its age in seconds, if it has not expired."""
        if (entry := self._entries.get(key)) is None:
            return None
        text, stored_at, expires_at = entry
        if self._now() >= expires_at:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return json.loads(text), self._now() - stored_at

    async def put(self, key: str, tool: str, value: JSON, keep_s: float, run_id: str = "") -> None:  # noqa: ARG002 (the port's signature)
        """Keep a value for `keep_s` seconds."""
        self._entries[key] = (json.dumps(value), self._now(), self._now() + keep_s)
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


class LocalFailures:
    """FailureStore in memory: the `size` calls that failed last."""

    def __init__(self, size: int = 1_024, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._now = now
        self._calls: OrderedDict[str, FailedCalls] = OrderedDict()

    async def known(self) -> Mapping[str, FailedCalls]:
        """Every failure by fingerprint."""
        return self._calls

    async def note(self, key: str, tool: str, code: str, within_s: float) -> None:  # noqa: ARG002 (the port's signature)
        """An attempt has failed."""
        before = self._calls.pop(key, FailedCalls((), code))
        self._calls[key] = FailedCalls((*before.at[1 - MOST_REPEATS :], self._now()), code)
        while len(self._calls) > self._size:
            self._calls.popitem(last=False)

    async def clear(self, key: str) -> None:
        """The call has succeeded."""
        self._calls.pop(key, None)


def local_ports() -> Ports:
    """Fresh stores that live as long as the process."""
    return Ports(LocalBreakers(), LocalSettings(), LocalCache(), failures=LocalFailures())
