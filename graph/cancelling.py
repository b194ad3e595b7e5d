"""Ends a run on demand: whoever drives it is told and waited for; one that nobody drives is ended here."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from checkpoints.runs import OPEN
from nodes.beginning import LOOK_EVERY_S
from nodes.events import Event
from plans.errors import RunBusy

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from graph.driving import Driver, OnEvent
    from graph.result import RunResult


async def cancelled(driver: Driver, record: RunRecord, wait_s: float, on_event: OnEvent | None) -> RunResult:
    """The end of a run that was asked to end. Raises RunBusy when whoever drives it has not ended it in `wait_s`.

    The wish is stored before anything else: if this process dies now, whoever drives the run next ends it.
    """
    if record.status not in OPEN:
        return await driver.go_on(record, None)
    driven_by = await driver.engine.leases.request_cancel(record.run_id)
    if driven_by is not None and on_event is not None:
        on_event(Event(kind="notice", message=f"{driven_by} drives this run and was asked to end it; effects that have "
                                              "begun are waited for"))  # fmt: skip
    until = time.monotonic() + wait_s
    while True:
        try:  # ended: its result. Driven by nobody, or not any more: it is ended here
            return await driver.go_on(await driver.as_it_is(record), None)
        except RunBusy as busy:
            if time.monotonic() >= until:
                raise RunBusy(
                    f"the run on thread {record.thread_id} was asked to end and has not within {wait_s:g} s; it ends "
                    f"as soon as its driver sees that, so look with `surestep show {record.thread_id}`: {busy}"
                ) from None
        await asyncio.sleep(LOOK_EVERY_S)
