"""`surestep sweep`: nobody is left waiting: once, as from cron, or for as long as it runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from graph.commands.failing import Stopped
from graph.commands.printing import harmless, print_json, say, show
from graph.commands.shared import opened, waited
from plans.errors import UsageError
from plans.wording import counted

if TYPE_CHECKING:
    from graph.sweeping import SweepReport


def sweep_all(every_s: float | None, toolkits: Sequence[str], *, as_json: bool) -> NoReturn:
    """Sweep once, and exit 1 where something could not be done; or every so many seconds until stopped, and exit 0."""
    if every_s is not None:
        if as_json:
            raise UsageError("--every does not end, so there is no one object to print; leave --json out")
        _forever(every_s, toolkits)
    opening = opened(toolkits)

    async def work() -> SweepReport:
        async with opening as agent:
            return await agent.sweeper.once()

    report = waited(work)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _show(report)
    raise SystemExit(1 if report.not_delivered or report.left else 0)


def _forever(every_s: float, toolkits: Sequence[str]) -> NoReturn:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.WARNING)
    opening = opened(toolkits)

    async def work() -> None:
        async with opening as agent:
            say(f"sweeping every {every_s:g} s; stop it with Ctrl-C")
            await agent.sweeper.forever(every_s, tell=say)

    try:
        waited(work)
    except Stopped:
        raise SystemExit(0) from None
    raise AssertionError("what goes on for ever has come to an end")


def _show(report: SweepReport) -> None:
    for run in report.gone_on:
        show(harmless(f"{run.thread_id}: gone on with ({run.why}), now {run.status}"))
    done = [
        f"{counted(report.expired, 'question')} expired" if report.expired else "",
        f"{counted(report.escalated, 'question')} escalated" if report.escalated else "",
        f"{counted(report.delivered, 'message')} delivered" if report.delivered else "",
    ]
    if any(done) or not (report.gone_on or report.left or report.not_delivered):
        show("; ".join(filter(None, done)) or "nothing was left waiting")
    for left in report.left:
        say(f"left: {left.thread_id} {left.reason}")
    for why in report.not_delivered:
        say(f"somebody could not be told, and will be tried again: {why}")
