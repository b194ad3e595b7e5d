"""How far long work is, and how much time it has left: told at every batch, and stopped at the deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plans.failure import ToolFailure
from tools.context import ToolContext


@dataclass(frozen=True)
class Pace:
    """Reports progress and keeps a deadline. `span` is the share of the whole that this part of the work takes."""

    report: Callable[[float | None, str], None]
    seconds_left: Callable[[], float]
    span: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, ctx: ToolContext) -> Pace:
        """The pace of one tool call."""
        return cls(ctx.progress, lambda: ctx.seconds_left)

    def part(self, start: float, end: float) -> Pace:
        """The pace of a part of this work, from one fraction of it to another."""
        low, high = self.span
        return Pace(self.report, self.seconds_left, (low + start * (high - low), low + end * (high - low)))

    def tick(self, fraction: float, message: str) -> None:
        """Called between batches. ToolFailure TIMEOUT when the deadline has passed: nobody waits for the rest."""
        if self.seconds_left() <= 0:
            raise ToolFailure("TIMEOUT", f"{message}: not finished in time; allow the step more time (timeout_s)")
        low, high = self.span
        self.report(low + min(max(fraction, 0.0), 1.0) * (high - low), message)
