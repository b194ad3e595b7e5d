"""Starts a run of what a caller asks for; on a thread whose run is open, the goal is an instruction to that run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from checkpoints.instructions import Instruction
from checkpoints.runs import OPEN
from graph.given import check_id, limits_from, review_from
from graph.instructing import instructed, no_instruction
from graph.preview import check_plannable
from graph.wishes import wished
from nodes.beginning import new_head, stricter
from nodes.ids import new_id
from nodes.sealing import Sealing, created

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from graph.driving import Driver, OnEvent
    from graph.result import RunResult
    from graph.wishes import Wish
    from nodes.state import ApproveMode, Review


@dataclass(frozen=True)
class StartOptions:
    """Where a run starts, and how."""

    thread_id: str | None = None
    request_id: str | None = None
    limits: Mapping[str, Any] | None = None
    approve: ApproveMode = "ask"
    review: Review = "none"


async def started(driver: Driver, wish: Wish, options: StartOptions, on_event: OnEvent | None) -> RunResult:
    """Make the run, or find the one that this request has made before, and drive it until it stops."""
    engine = driver.engine
    driver.principal.check_may_start(engine.options.start_roles)
    sealing = Sealing.of(engine)
    wanted = await wished(engine, driver.principal, sealing, wish)
    given = options.thread_id
    thread_id = check_id(given, "the thread id") if given is not None else new_id()
    request_id = options.request_id
    request_id = check_id(request_id, "the request id") if request_id is not None else f"run:{uuid4().hex}"
    other = await _open_run(driver, thread_id, request_id) if given is not None else None
    if other is not None:
        if wanted["given_plan"] is not None:
            raise no_instruction(other)
        said = Instruction(instruction_id=request_id, message=wanted["goal"], said_by=driver.principal)
        await sealing.keep(other.run_id)
        return await instructed(driver, other, said, on_event)
    asked: dict[str, Any] = {"thread_id": thread_id, "request_id": request_id, "limits": limits_from(options.limits)}
    review = review_from(stricter(engine.options.review, options.review), options.approve)
    head = new_head(**wanted, **asked, approve=options.approve, review=review)
    await check_plannable(engine, head)
    record = await created(engine, head, sealing)
    is_new = record.run_id == head.run_id
    return await driver.answer(record, on_event, is_new=is_new, on_new_thread=given is None)


async def _open_run(driver: Driver, thread_id: str, request_id: str) -> RunRecord | None:
    """The run on this thread that another request has begun, and that is not finished."""
    latest = await driver.engine.runs.latest(thread_id)
    if latest is None or latest.tenant != driver.principal.tenant:
        return None
    return latest if latest.status in OPEN and latest.request_id != request_id else None
