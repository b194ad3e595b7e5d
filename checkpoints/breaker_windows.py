"""Breakers as one worker keeps them: the windows of closed ones are its own, a change of status is everybody's.

A window changes with almost every call of a tool that fails now and then. Shared by compare-and-set, each call of eight
at once would commit, collide and try again, and steps would wait for the counting of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plans.values import JSON

if TYPE_CHECKING:
    from checkpoints.tool_stores import PostgresBreakers

State = dict[str, JSON]

PUBLISH_S = 0.5
"""How often a worker stores its window at most: so much of what it has counted is lost when it dies."""


class BreakerWindows:
    """Fits the tools' port. Opening, probing and closing rest on what really stands in the database, by its `turn`."""

    def __init__(self, shared: PostgresBreakers, *, monotonic: Callable[[], float]) -> None:
        self._shared = shared
        self._monotonic = monotonic
        self._ours: dict[str, State] = {}
        self._published: dict[str, float] = {}

    async def load(self, tool: str) -> State | None:
        """This worker's window while the status is the one it was counted in, else what is stored."""
        stored = await self._shared.load(tool)
        if tool in self._ours and _turn(self._ours[tool]) != _turn(stored):
            del self._ours[tool]
        return self._ours.get(tool, stored)

    async def load_all(self) -> dict[str, State]:
        """Every stored state by tool."""
        return await self._shared.load_all()

    async def swap(self, tool: str, old: State | None, new: State) -> bool:
        """Take `new` if the state is still `old`; False, and nothing changed, if not."""
        stored = await self._shared.load(tool)
        if _turn(stored) != _turn(old):
            return False
        if _is_closed(old) and _is_closed(new) and _turn(old) == _turn(new):
            if self._ours.get(tool, stored) != old:
                return False
            self._ours[tool] = new
            await self._publish(tool, stored, new)
            return True
        swapped = await self._shared.swap(tool, stored, new)
        if swapped:
            self._ours.pop(tool, None)
        return swapped

    async def _publish(self, tool: str, stored: State | None, new: State) -> None:
        """Store the window now and then, for workers that start later. Another's that comes first stays: both count."""
        now = self._monotonic()
        if now - self._published.get(tool, -PUBLISH_S) >= PUBLISH_S:
            self._published[tool] = now
            await self._shared.swap(tool, stored, new)


def _turn(state: State | None) -> JSON:
    return (state or {}).get("turn", 0)


def _is_closed(state: State | None) -> bool:
    return state is None or bool(state.get("status", "closed") == "closed")
