"""Layer after the cache: a candidate is called beside the tool that it shadows, and compared; or it answers instead.

What a shadow gives is counted and dropped. It runs in the background with a deadline of its own: nobody waits for it,
and it fails nothing but itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plans.errors import DatabaseUnavailable
from plans.expressions import InvalidExpression
from plans.failure import ToolFailure
from plans.shadowing import AGREED, Agreement, Pair, differed, failed
from plans.values import JSON, sha256_of
from tools.comparison import places, same, says
from tools.files import FileScope
from tools.outcome import Call, CallFailure, Layer, Outcome, Proceed, Success, nobody
from tools.settings import tool_now

if TYPE_CHECKING:
    from pathlib import Path

    from tools.ports import Clock, ShadowStore
    from tools.tool import Tool

MOST = 16
"""Shadows in flight at once in a process, and work of theirs that has not ended. Above it calls go without."""
FLUSH_S = 0.5
"""How often what was counted is stored; so much of it is lost when the process dies."""
NOT_CALLED = frozenset({"TOOL_DISABLED", "BREAKER_OPEN", "POOL_FULL", "RATE_LIMITED"})
"""Codes that say, where no call was made, that there was nothing to compare."""

_LOG = logging.getLogger(__name__)


class Unwritable(FileScope):
    """The files of a run for who may only read them."""

    def writable(self, name: str) -> Path:
        """Nowhere: NOT_PERMITTED."""
        raise ToolFailure("NOT_PERMITTED", f"{name!r} may not be written by a shadow, which has no effect")


def pair_of(tool: Tool, candidate: Tool) -> Pair:
    """The names under which two tools are compared, as both are declared."""
    edition = [tool.spec.version, candidate.spec.version, candidate.spec.shadow_compare]
    return Pair(tool.name, candidate.name, json.dumps(edition, ensure_ascii=False))


@dataclass(frozen=True)
class Beside:
    """A shadow under way: whoever knows what the tool itself has said tells it by `answer`."""

    task: asyncio.Task[None]
    answer: asyncio.Future[Outcome]


class Shadows:
    """The candidates of a process, each by the name of the tool that it shadows, and their calls in flight."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        candidates: Mapping[str, Tool],
        store: ShadowStore,
        clock: Clock,
        most: int = MOST,
    ) -> None:
        self.candidates = candidates
        self.working = 0
        self._pairs = {name: pair_of(tools[name], candidate) for name, candidate in candidates.items()}
        self._store = store
        self._clock = clock
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()
        self._counted: dict[Pair, Agreement] = {}
        self._flushing: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """How many shadows run now, or wait for what they are compared with."""
        return len(self._tasks)

    @property
    def waiting(self) -> int:
        """How many calls were counted and are not stored yet."""
        return sum(found.calls for found in self._counted.values())

    async def answered(self, call: Call, proceed: Proceed, instead: Proceed, beside: Proceed) -> Outcome:
        """The outcome of a call: its own, or the candidate's where that was promoted (by the layers `instead`), while
        the other of the two runs beside it (by the layers `beside`)."""
        candidate = (await tool_now(self.candidates[call.tool.name], call.ports.settings)).tool
        theirs = replace(call, tool=candidate, spec=candidate.spec, late=nobody)
        if call.answered_by == candidate.name and _callable(candidate):
            outcome = await self._with_shadow(theirs, instead, self._begun(call, beside, candidate))
            return replace(outcome, answered_by=candidate.name) if isinstance(outcome, Success) else outcome
        return await self._with_shadow(call, proceed, self._begun(theirs, beside, candidate))

    async def _with_shadow(self, call: Call, proceed: Proceed, shadow: Beside | None) -> Outcome:
        if shadow is None:
            return await proceed(call)
        try:
            outcome = await proceed(call)
        except BaseException:
            shadow.task.cancel()
            raise
        if not shadow.answer.done():  # it was cancelled with the shadow that waited for it
            shadow.answer.set_result(outcome)
        return outcome

    def _begun(self, shadow: Call, around: Proceed, candidate: Tool) -> Beside | None:
        """Begin the shadow, unless it is switched off, this call is none of its share, or too many run already."""
        share = candidate.spec.shadow_share
        if not _callable(candidate) or (share < 1 and self._clock.uniform(0.0, 1.0) >= share):
            return None
        if len(self._tasks) >= self._most or self.working >= self._most:
            return None
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._compared(shadow, around, candidate, answer), name=f"shadow {candidate.name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return Beside(task, answer)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.warning("a shadow call was not compared: %s", error, exc_info=error)

    async def _compared(self, shadow: Call, around: Proceed, candidate: Tool, answer: asyncio.Future[Outcome]) -> None:
        theirs = await around(self._apart(shadow))
        ours = await answer
        if shadow.tool.name != candidate.name:  # the candidate answers, and the former tool runs beside it
            ours, theirs = theirs, ours
        found = await asyncio.to_thread(judged, ours, theirs, candidate.spec.shadow_compare, shadow.args)
        if found is not None:
            self._count(self._pairs[candidate.spec.shadow_of or ""], found)

    def _apart(self, shadow: Call) -> Call:
        """The same call for a shadow: its own time and arguments, no word to who watches, and nothing to write to."""
        ctx, files = shadow.ctx, shadow.ctx.files
        own = replace(
            ctx,
            deadline=self._clock.monotonic() + shadow.spec.timeout_s,
            files=Unwritable(files.inputs, files.output_dir, files.earlier),
            progress=lambda _fraction, _message: None,
        )
        return replace(shadow, ctx=own, args=json.loads(json.dumps(dict(shadow.args))))

    def begins(self, ended: Callable[[], None]) -> Callable[[], None]:
        """Work of a shadow begins; what is given back is to be called when it has really ended."""
        self.working += 1

        def end() -> None:
            self.working -= 1
            ended()

        return end

    def _count(self, pair: Pair, found: Agreement) -> None:
        self._counted[pair] = self._counted.get(pair, Agreement()).then(found)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_always(), name="shadow counts")

    async def _flush_always(self) -> None:
        while True:
            await self._clock.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Store what was counted. What cannot be stored now is kept for the next time."""
        counted, self._counted = self._counted, {}
        if not counted:
            return
        try:
            await self._store.add(counted)
        except DatabaseUnavailable as error:
            _LOG.warning("what shadows have said is not stored yet: %s", error)
            for pair, found in counted.items():
                self._counted[pair] = found.then(self._counted.get(pair, Agreement()))

    async def close(self) -> None:
        """End every shadow, and store what was counted."""
        ending = [*self._tasks, *([self._flushing] if self._flushing is not None else [])]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        await self.flush()


def _callable(candidate: Tool) -> bool:
    """Whether a candidate is switched on and set up: one that is not neither answers nor runs beside."""
    return candidate.enabled and candidate.to_configure is None


def judged(ours: Outcome, theirs: Outcome, compare: str | None, given: Mapping[str, JSON]) -> Agreement | None:
    """What the outcomes of a tool and its candidate say about the candidate; None where they say nothing."""
    args = sha256_of(dict(given))
    if isinstance(theirs, CallFailure) and not theirs.called and theirs.failure.code in NOT_CALLED:
        return None
    try:
        if (expected := says(ours, compare)) is None:
            return None
        found = says(theirs, compare)
    except InvalidExpression:
        return failed(args, "the comparison cannot be evaluated")
    if found is None:
        return failed(args, theirs.failure.code if isinstance(theirs, CallFailure) else "nothing to compare")
    return AGREED if same(expected, found) else differed(args, places(expected, found))


def answer_beside(instead: Proceed, beside: Proceed) -> Layer:
    """The layer: `instead` are the layers around a candidate that answers, `beside` those around a shadow."""

    async def layer(call: Call, proceed: Proceed) -> Outcome:
        shadows = call.ports.shadows
        if shadows is None or call.tool.name not in shadows.candidates:
            return await proceed(call)
        return await shadows.answered(call, proceed, instead, beside)

    return layer


async def count_work(call: Call, proceed: Proceed) -> Outcome:
    """Inside of a shadow's limiter: its work counts until it has really ended, however long after its deadline."""
    shadows = call.ports.shadows
    return await proceed(call if shadows is None else replace(call, ended=shadows.begins(call.ended)))
