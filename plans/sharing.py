"""What tools and the stores that workers share tell each other about failed calls and slots."""

from __future__ import annotations

from typing import NamedTuple


class FailedCalls(NamedTuple):
    """When a call failed, as instants of the ports' monotonic clock, the last one last, and with which code then."""

    at: tuple[float, ...]
    code: str


class SlotLimits(NamedTuple):
    """At most `most` calls at once, and at most `calls` starts in any `per_s` seconds; None: no such limit."""

    most: int | None
    calls: int | None
    per_s: float


class Asked(NamedTuple):
    """What a store of slots says: whether the call may start, and if not, for how long it certainly may not because of
    the rate (0: it waits for a slot), and after how many seconds it should be asked again."""

    granted: bool
    rate_wait_s: float = 0.0
    ask_again_s: float = 0.0
