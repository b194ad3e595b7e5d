"""How a person reads why a run was gone on with, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from plans.wording import listed

if TYPE_CHECKING:
    from graph.result import Resumed

WHY = {
    "crash": "after its worker was lost", "stop": "after a stop", "limit": "after a limit",
    "decision": "after a decision", "expiry": "after a question expired", "instruction": "with an instruction",
    "cancel": "to be cancelled", "asked_for": "because somebody asked for it",
}  # fmt: skip
WHAT = {
    "goes_on": "went on", "settles": "first settled what was in doubt:", "ends": "ended",
    "plans_anew": "planned the rest anew, for an input had changed:",
}  # fmt: skip


def resumptions(resumes: Sequence[Resumed]) -> Iterator[str]:
    """A line for each time, in their order."""
    for each in resumes:
        when = f" {datetime.fromtimestamp(each.at, UTC).astimezone():%Y-%m-%d %H:%M:%S}" if each.at is not None else ""
        what = WHAT.get(each.result, each.result)
        about = f" {listed(each.about)}" if each.about else ""
        ended = f", until it was {each.ended}" if each.ended else ""
        yield f"resumed{when} {WHY.get(each.trigger, each.trigger)}: it {what}{about}{ended}"
