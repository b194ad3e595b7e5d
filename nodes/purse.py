"""What is under way in a drive and may still cost; a question that does not fit in beside others waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from plans.caps import Bill, Hit, question_hit
from plans.limits import Limits, Usage


@dataclass
class Purse:
    """The open bills of one drive, by question; and `calling`, the step runs whose attempt is under way. A question is
    billed at what it may cost at most, and most cost less: one that would be too much only beside others is put when
    one of them has come back."""

    calling: set[str] = field(default_factory=set)
    _out: dict[str, Bill] = field(default_factory=dict)
    _back: asyncio.Event = field(default_factory=asyncio.Event)

    async def room_for(self, bill: Bill, limits: Limits, used: Callable[[], Usage]) -> Hit | None:
        """Wait until a question of this bill may be put; the limit in its way where waiting does not help. `used` is
        what the run has spent and reserved, at any time. Between the answer and its reservation nothing may be awaited.
        """
        while (hit := question_hit(limits, used(), bill)) is not None:
            if question_hit(limits, self._without_open(used()), bill) is not None:
                return hit
            await self._back.wait()
        return None

    @contextmanager
    def out(self, key: str, bill: Bill) -> Iterator[None]:
        """While the question is out its bill is open."""
        self._out[key] = bill
        try:
            yield
        finally:
            del self._out[key]
            self._back.set()
            self._back = asyncio.Event()

    def _without_open(self, used: Usage) -> Usage:
        """The least that the run will have used when all that is out has come back."""
        return used.plus(
            prompt_tokens=-sum(bill.prompt_tokens for bill in self._out.values()),
            completion_tokens=-sum(bill.completion_tokens for bill in self._out.values()),
            cost=-sum(bill.cost for bill in self._out.values()),
        )
