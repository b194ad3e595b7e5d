"""Says something to a run that goes on: to whoever drives it, or by driving it on from here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from checkpoints.runs import OPEN
from nodes.beginning import LOOK_EVERY_S
from nodes.events import Event
from plans.errors import RunBusy, UsageError

if TYPE_CHECKING:
    from checkpoints.instructions import Instruction
    from checkpoints.runs import RunRecord
    from graph.driving import Driver, OnEvent
    from graph.result import RunResult


async def instructed(driver: Driver, record: RunRecord, said: Instruction, on_event: OnEvent | None) -> RunResult:
    """The result of a run that was told something, when it stops. It is stored before anything else: if this process
    dies now, whoever drives the run has it, and else who goes on with it next.

    Raises UsageError where nothing can be made of it: there is no model, and no question that it answers; or the run
    has ended before it could take it.
    """
    driver.principal.acting_in(record.input.get("role"))  # its word is acted on in that role
    if driver.engine.planner is None and not await _is_asked(driver, record):
        raise no_instruction(record)
    if not await driver.engine.instructions.send(record.run_id, said):
        raise _too_late(record)
    result = await _gone_on_with(driver, record, on_event)
    left = {each.instruction_id for each in await driver.engine.instructions.waiting(record.run_id)}
    if said.instruction_id in left and result.status not in OPEN:
        raise _too_late(record)
    return result


async def _gone_on_with(driver: Driver, record: RunRecord, on_event: OnEvent | None) -> RunResult:
    """Drive the run on; where somebody else drives it, wait until it stops."""
    is_told = False
    while True:
        try:
            return await driver.go_on(await driver.as_it_is(record), on_event)
        except RunBusy as busy:
            if on_event is not None and not is_told:
                on_event(Event(kind="notice", message=f"told to whoever drives this run, which is waited for: {busy}"))
            is_told = True
        await asyncio.sleep(LOOK_EVERY_S)


async def _is_asked(driver: Driver, record: RunRecord) -> bool:
    """Whether the run asks the user something that words may answer."""
    return any(request.kind == "clarification" for request in (await driver.picture(record.run_id)).asked.values())


def no_instruction(record: RunRecord) -> UsageError:
    """What is told of a goal, or a plan, for a thread whose run is still open and can make nothing of it."""
    thread = record.thread_id
    first = f"Go on with it by `surestep resume {thread}`"
    if record.status == "running":
        first = f"`surestep show {thread}` says where it is, `surestep cancel {thread}` ends it"
        first += f", `surestep resume {thread}` goes on with it if its worker has died"
    return UsageError(
        f"thread {thread!r} has a run that is not finished ({record.status}). {first}, or use another thread. A new "
        "instruction to it needs a model."
    )


def _too_late(record: RunRecord) -> UsageError:
    return UsageError(
        f"the run on thread {record.thread_id!r} has ended before it could take this; nothing of it was done. Say it "
        "again: it is a new goal now"
    )
