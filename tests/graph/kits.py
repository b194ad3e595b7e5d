"""Toolkits that fail, succeed and count on command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from plans.failure import ToolFailure
from tools.registry import ToolContext, Toolkit

ONCE = {"max_attempts": 1}


class Shop:
    """A small world: how often each tool was called, what each call was given, and which calls are to fail. `heard` is
    called with each tool's name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.given: list[tuple[str, Any]] = []
        self.failing: dict[str, list[ToolFailure]] = {}
        self.heard: Callable[[str], object] = lambda _: None
        self.kit = Toolkit("shop")
        self.kit.tool(effect="read", retry=ONCE, fallbacks=[{"tool": "cached_price"}])(self._price())
        self.kit.tool(effect="read", retry=ONCE)(self._cached_price())
        self.kit.tool(effect="read", retry=ONCE)(self._double())
        self.kit.tool(effect="irreversible")(self._send())

    def fails(self, tool: str, *failures: ToolFailure) -> None:
        """The tool's next calls fail in these ways."""
        self.failing[tool] = list(failures)

    def take(self, tool: str, given: Any) -> None:
        """Note a call, and fail if it is to."""
        self.calls[tool] += 1
        self.given.append((tool, given))
        self.heard(tool)
        if self.failing.get(tool):
            raise self.failing[tool].pop(0)

    def _price(self) -> Any:
        async def price(item: str) -> dict[str, int]:
            """Price of an item."""
            self.take("price", item)
            return {"price": len(item)}

        return price

    def _cached_price(self) -> Any:
        async def cached_price(item: str) -> dict[str, int]:
            """Price of an item as it was this morning."""
            self.take("cached_price", item)
            return {"price": 7}

        return cached_price

    def _double(self) -> Any:
        def double(number: int) -> dict[str, int]:
            """Twice a number."""
            self.take("double", number)
            return {"number": number * 2}

        return double

    def _send(self) -> Any:
        async def send(to: str, text: str, ctx: ToolContext) -> dict[str, str]:
            """Send a message."""
            self.take("send", (to, text, ctx.idempotency_key))
            return {"sent": to}

        return send


def step(step_id: str, tool: str, /, *after: str, **more: Any) -> dict[str, Any]:
    """A step as a plan file has it."""
    args = more.pop("args", {})
    return {"id": step_id, "tool": tool, "args": args, "depends_on": list(after), "reason": "test", **more}


def plan(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan of these steps."""
    return {"goal": "a test", "steps": list(steps), **more}
