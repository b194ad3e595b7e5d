"""Tells people what waits for them: each event of the outbox as a message, again until the receiver has it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoints.background import stop
from checkpoints.outbox import Outbox, OutboxEvent
from graph.webhooks import NotDelivered, Webhook, webhook_from
from nodes.ids import trace_id_of
from plans.decisions import ApprovalRequest
from plans.errors import DatabaseUnavailable
from tools.redaction import redacted

if TYPE_CHECKING:
    from graph.settings import Settings
    from nodes.engine import Engine
    from tools.ports import Clock

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 3_600.0
AT_ONCE = 8
"""Messages that are under way at the same time."""
LOOK_EVERY_S = 2.0
LAST_WORDS_S = 5.0
"""How long a program that ends may still take to tell what it has to tell; the rest is told by the next one, or by a
sweeper."""
LONGEST_TEXT = 1_000
_LOG = logging.getLogger("surestep")


def message_of(event: OutboxEvent) -> dict[str, Any]:
    """An event as its receiver reads it. Arguments of tools stay here: they are what a person has to log in for."""
    request = event.request
    asked = request is not None and event.kind != "approval_expired"
    return {
        "id": event.event_id,
        "type": event.kind.replace("_", ".", 1),
        "at": event.at.isoformat(),
        "run_id": event.run_id,
        "thread_id": event.thread_id,
        "tenant": event.tenant,
        "trace_id": trace_id_of(event.run_id),
        "code": event.code,
        "message": _text(event.message),
        "approval": None if request is None else _approval(request),
        "look_with": f"surestep {'approvals' if asked else 'show'} {event.thread_id}",
    }


def _approval(request: ApprovalRequest) -> dict[str, Any]:
    told = {
        "approval_id", "step_id", "tool", "kind", "risk", "args_sha256", "needed", "approvers", "rule", "created_at",
        "expires_at", "escalates_at", "escalates_to", "not_by",
    }  # fmt: skip
    return {**request.model_dump(mode="json", include=told), "reason": _text(request.reason)}


def _text(said: str | None) -> str | None:
    return None if said is None else redacted(said)[:LONGEST_TEXT]


def pause_s(attempts: int, uniform: float, asked_for_s: float | None = None) -> float:
    """How long an event rests after so many attempts: 5 s, doubled each time up to an hour, less up to a quarter of it
    by chance (`uniform`, 0 to 1), so that not all come back at once; at least what the receiver asks for."""
    longest = min(FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20), LONGEST_PAUSE_S)
    return max(longest * (1 - uniform / 4), min(asked_for_s or 0.0, LONGEST_PAUSE_S))


@dataclass(frozen=True)
class Told:
    """What became of events that were due."""

    delivered: int = 0
    not_delivered: tuple[str, ...] = ()


class Notifier:
    """Delivers events by a webhook, at least once each: a receiver knows by its id one that comes twice."""

    def __init__(self, outbox: Outbox, webhook: Webhook, clock: Clock) -> None:
        self._outbox = outbox
        self._webhook = webhook
        self._clock = clock

    async def deliver(self, run_id: str | None = None) -> Told:
        """Deliver everything that is due, of one run or of all. Why something could not be delivered is told once per
        reason."""
        delivered, failed = 0, dict[str, None]()
        while events := await self._outbox.claim(AT_ONCE, run_id=run_id):
            for why in await asyncio.gather(*(self._deliver(event) for event in events)):
                delivered += why is None
                failed |= {} if why is None else {why: None}
        return Told(delivered, tuple(failed))

    async def _deliver(self, event: OutboxEvent) -> str | None:
        """Why an event was not delivered; None where it was."""
        body = json.dumps(message_of(event), ensure_ascii=False, separators=(",", ":")).encode()
        try:
            await self._webhook.send(event.event_id, body, now=self._clock.wall())
        except NotDelivered as failure:
            again_in_s = pause_s(event.attempts, self._clock.uniform(0, 1), failure.after_s)
            await self._outbox.not_delivered(event, str(failure), again_in_s)
            return str(failure)
        await self._outbox.delivered(event)
        return None


def notifier_from(settings: Settings, engine: Engine) -> Notifier | None:
    """Who tells people, if the settings say where. Raises ConfigurationError."""
    webhook = webhook_from(settings)
    return Notifier(Outbox(engine.database), webhook, engine.clock) if webhook is not None else None


@asynccontextmanager
async def telling(notifier: Notifier | None) -> AsyncIterator[None]:
    """Events are delivered while the block lasts, and once more at its end."""
    if notifier is None:
        yield
        return
    closing = asyncio.Event()
    task = asyncio.create_task(_keep_telling(notifier, closing), name="notifier")
    try:
        yield
    finally:
        closing.set()
        await asyncio.wait({task}, timeout=LAST_WORDS_S)
        await stop(task)


async def _keep_telling(notifier: Notifier, closing: asyncio.Event) -> None:
    last = False
    while not last:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await closing.wait()
        last = closing.is_set()
        with suppress(DatabaseUnavailable):
            _complain(await notifier.deliver())


def _complain(told: Told) -> None:
    for why in told.not_delivered:
        _LOG.warning("somebody could not be told, and will be tried again: %s", why)
