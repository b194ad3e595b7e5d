"""Who sees to a run now: a drive that stalls between two nodes is ended here, whoever began it (rule 14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plans.counting import counted

if TYPE_CHECKING:
    from nodes.engine import Engine
    from tools.ports import Clock

STALL_S = 10.0
"""How long a run may be in no node before its session is closed: between two nodes only a checkpoint is written."""
_LOOKS_PER_STALL = 5


class Attendance:
    """Which runs somebody sees to: a node that works on one, or our own gateway for the whole of a drive."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inside: Counter[str] = Counter()
        self._left_at: dict[str, float] = {}

    @contextmanager
    def of(self, run_id: str) -> Iterator[None]:
        """Somebody sees to this run while the block lasts."""
        try:
            with counted(self._inside, run_id):
                yield
        finally:
            if run_id not in self._inside:
                self._left_at[run_id] = self._clock.monotonic()

    def attended(self, run_id: str) -> bool:
        """Whether somebody sees to this run now."""
        return run_id in self._inside

    def stalled(self, open_runs: Iterable[str], stall_s: float) -> list[str]:
        """Those of the open runs that nobody has seen to for so long."""
        now = self._clock.monotonic()
        self._left_at = {run_id: self._left_at.get(run_id, now) for run_id in open_runs}
        return [run_id for run_id, left in self._left_at.items() if not self.attended(run_id) and now - left >= stall_s]


async def watch(engine: Engine, stall_s: float = STALL_S) -> None:
    """Close the sessions of drives that have stalled, for ever. A node that comes back later opens its own."""
    while True:
        await engine.clock.sleep(stall_s / _LOOKS_PER_STALL)
        for run_id in engine.attendance.stalled(list(engine.sessions), stall_s):
            engine.begin_closing(run_id)
