"""What `surestep doctor` says of those who wait: runs with which nobody goes on, and people who could not be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from checkpoints.outbox import Outbox, OutboxStanding
from checkpoints.resumptions import LeftRun, Resumptions
from graph.commands import shared
from plans.errors import ConfigurationError
from plans.wording import counted

if TYPE_CHECKING:
    from checkpoints.database import Database
    from graph.settings import Settings

Told = tuple[str, Literal["well", "note", "ill"], str]
"""Check, mark and message of a finding."""
_LEFT = {
    "decided": "was decided and not resumed",
    "expired": "was not answered in time and not resumed",
    "told": "was told something and not resumed",
    "cancelled": "was asked to end and has not",
    "lost": "has lost its worker",
    "stopped": "was stopped on its way",
}
"""Why nobody goes on with a run by himself."""


async def told_of_waiting(database: Database, settings: Settings) -> list[Told]:
    """Both findings."""
    left = [run for run in await Resumptions(database).left() if run.tenant == settings.tenant]
    return [_runs(left), _messages(await Outbox(database).standing(), settings)]


def _runs(runs: list[LeftRun]) -> Told:
    """Decided and not resumed, not answered in time, or without the worker that drove them."""
    told = [f"{run.thread_id} {_LEFT[run.why]}: {shared.surestep('resume', run.thread_id)}" for run in runs]
    told += [
        f"{run.thread_id} was taken up {counted(run.attempts or 0, 'time')} in vain: {run.last_error}"
        for run in runs
        if run.is_stuck
    ]
    if any(run.why != "stopped" for run in runs):
        told.append(f"`{shared.surestep('sweep')}` goes on with all of them that were not stopped by somebody")
    return "runs", "note" if told else "well", "; ".join(told) or "none is left behind"


def _messages(outbox: OutboxStanding, settings: Settings) -> Told:
    """Whether people are told of what waits for them, and whether that arrives."""
    from graph.webhooks import webhook_from

    try:
        webhook = webhook_from(settings)
    except ConfigurationError as error:
        return "messages", "ill", str(error)
    if webhook is None:
        said = "nobody is told what waits, or that a run has failed: set SURESTEP_NOTIFY_URL to a webhook"
        return "messages", "note", said
    told = [
        f"{counted(outbox.failing, 'message')} could not be delivered so far" if outbox.failing else "",
        f"{counted(outbox.given_up, 'message')} could not be delivered for a day" if outbox.given_up else "",
        f"the last time: {outbox.last_error}" if outbox.last_error else "",
    ]
    waits = f"{webhook.target.authority}; {counted(outbox.waiting, 'message')} on the way"
    return "messages", "note" if any(told) else "well", "; ".join(filter(None, (waits, *told)))
