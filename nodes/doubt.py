"""Behind a worker that may still live: until when a call may begin, and when its step may be settled (rule 6).

A worker that was stopped (a paused machine, a debugger) does not know it. So its intent says, in the database's time,
by when the call begins and when it is over at the latest; the worker holds itself to the first on its own clock, and
whoever takes the run over leaves the step alone until the second. One point remains: a worker stopped after its last
look at the clock (`tools/deadline.py`) and before the socket's write. Only a receiver that checks the key can close it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoints.workers import known_dead
from nodes.events import Event

if TYPE_CHECKING:
    from nodes.session import Session
    from nodes.step_run import StepRun

MARGIN_S = 2.0
"""What a call may take beyond its time: cancelled work lets go, and two machines' clocks do not run quite alike."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Until when a call may begin and go on, on this process's monotonic clock."""

    start_by: float
    end_by: float


def bounded(session: Session, intent: Mapping[str, Any], seconds: float) -> tuple[dict[str, Any], Bounds]:
    """The intent of a call that takes at most `seconds`, with its bounds in the database's time and its worker's name;
    and the bounds on our clock, which are earlier: our lease ends before the database lets anybody take the run over.
    """
    lease = session.lease
    said = {
        "start_by": round(lease.expires_at, 3),
        "settled_after": round(lease.expires_at + seconds + MARGIN_S, 3),
        "by": session.engine.worker,
    }
    return {**intent, **said}, Bounds(lease.valid_until, lease.valid_until + seconds)


async def leave_alone(session: Session) -> None:
    """Let steps in doubt wait until the worker that began them has certainly ended; a person is told why."""
    now = session.clock.wall()
    for unit, run in session.fold.steps.items():
        left_s = await _unsettled_s(session, run)
        if left_s <= 0.0:
            continue
        run.not_before = max(run.not_before or 0.0, now + left_s)
        tool = (run.in_doubt or {})["tool"]
        message = (
            f"the worker that began {tool} of step {unit} cannot be reached and may still be at it; whether it has "
            f"happened is looked at in {math.ceil(left_s)} s"
        )
        session.notices.append(Event(kind="notice", step_id=unit, tool=tool, message=message))


async def _unsettled_s(session: Session, run: StepRun) -> float:
    """Seconds, from when the lease was taken, for which the call may still be under way; 0 where it is not.

    An attempt whose end is recorded is over, and so is one that somebody has settled. A transaction needs no wait: the
    fence refuses its commit. Intents of older versions say nothing, and are taken as before: their lease was over.
    """
    intent = run.in_doubt
    if intent is None or "settled_after" not in intent or run.failure is not None or run.resend:
        return 0.0
    left_s: float = intent["settled_after"] - session.lease.taken_at
    tool = session.engine.registry.get(intent["tool"])
    if left_s <= 0.0 or (tool is not None and tool.effect == "transactional"):
        return 0.0
    # This engine's own sessions are awaited when they are closed.
    if intent["by"] == session.engine.worker or await asyncio.to_thread(known_dead, intent["by"]):
        return 0.0
    return left_s
