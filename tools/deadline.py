"""Seventh layer: a call ends at its deadline, whatever the tool does.

Async work is cancelled, and a process is killed; work in a thread cannot be, so it is left alone. None of them is
waited for; whoever has asked is told what comes back late.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tools.normalise import lost
from tools.outcome import Call, Late, Outcome, Proceed, refused

GRACE_S = 0.02
"""How long cancelled work gets to let go of its connections."""

_late: set[asyncio.Future[Outcome]] = set()


async def hold_deadline(call: Call, proceed: Proceed) -> Outcome:
    """The outcome of the work, or at the deadline TIMEOUT: UNKNOWN_OUTCOME where an effect may have happened. The tool
    is handed the instant at which its time is over: the run's, or `timeout_s` from now if that comes first."""
    now = call.ports.clock.monotonic()
    until = min(call.ctx.deadline, now + call.spec.timeout_s)
    if until <= now:
        call.ended()
        return refused(call, "TIMEOUT", f"no time was left to call {call.tool.name}")
    work = asyncio.ensure_future(proceed(replace(call, ctx=replace(call.ctx, deadline=until))))
    work.add_done_callback(lambda _: call.ended())
    try:
        await asyncio.wait({work}, timeout=until - now)
    except asyncio.CancelledError:
        await _leave(call, work)
        raise
    if not work.done():
        await _leave(call, work)
        work.add_done_callback(lambda done: _tell(call, done, until))
        return lost(call, "TIMEOUT", f"{call.tool.name} did not answer within {until - now:.1f} s")
    if work.cancelled():
        return lost(call, "TOOL_ERROR", f"{call.tool.name} cancelled itself")
    return work.result()


async def _leave(call: Call, work: asyncio.Future[Outcome]) -> None:
    """Stop waiting for work that may go on; it is held until it ends, and its end is nobody's error."""
    _late.add(work)
    work.add_done_callback(_forget)
    if _can_be_told(call):
        work.cancel()
    if call.spec.isolation == "async":  # a child that is being killed needs nobody to wait
        await asyncio.wait({work}, timeout=GRACE_S)


def _can_be_told(call: Call) -> bool:
    """Whether work can be told to stop; a thread cannot."""
    return call.spec.isolation != "thread"


def _tell(call: Call, work: asyncio.Future[Outcome], until: float) -> None:
    """What came back after its deadline, where something did."""
    if not work.cancelled() and work.exception() is None:
        late_s = call.ports.clock.monotonic() - until
        call.late(Late(work.result(), late_s, disturbed=_can_be_told(call)))


def _forget(work: asyncio.Future[Outcome]) -> None:
    _late.discard(work)
    if not work.cancelled():
        work.exception()
