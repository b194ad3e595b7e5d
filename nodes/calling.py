"""The one place that holds tools and journal together: write ahead, call, write the outcome."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoints.connections import GuardedTransaction
from checkpoints.rows import Row
from nodes.admit import Run, changes_the_world, effect_name
from nodes.events import Event
from nodes.recording import announce, criterion_failure, outcome_body, record_failure, record_success
from plans.errors import StaleOwner
from plans.failure import Failure, ToolFailure
from plans.plan import Step
from plans.values import JSON
from tools.call import Success, call
from tools.context import ToolContext
from tools.files import FileScope
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session

KEY_VERSION = 1
"""How idempotency keys are derived; stored with each intent, so that a stored key is never recomputed."""
STEP_SECONDS = 25.0
"""A whole step's time, transport retries included, unless its tool or the plan gives it more."""


async def call_tool(session: Session, unit: str, step: Step, admitted: Run) -> None:
    """Run an admitted tool step: an effect's intent is accepted before the call, a read waits for nothing."""
    run = session.fold.run(unit)
    tool = session.engine.registry[run.tool or step.tool or ""]
    attempt = run.attempt + 1
    if changes_the_world(tool.effect):
        await _ancestors_accepted(session, step)
        intent = {
            "tool": tool.name,
            "args": admitted.args,
            "key": admitted.key,
            "key_version": KEY_VERSION,
            "effect_key": effect_name(tool, admitted.args),
        }
        await session.record("intent", unit, attempt, body=intent, wait=True)
    await _call(session, unit, step, tool, admitted.args, admitted.key, attempt)


async def resend(session: Session, unit: str, step: Step) -> None:
    """Settle a step run whose intent is known and whose outcome is not: by what its tool's effect allows."""
    run = session.fold.run(unit)
    intent = run.in_doubt or {}
    tool = session.engine.registry.get(intent["tool"])
    if tool is None:
        await _unknown(session, unit, run.attempt, intent["tool"], "its tool is no longer registered")
    elif run.resend or tool.effect in ("idempotent", "transactional"):
        attempt = run.attempt + 1
        await session.record("intent", unit, attempt, body=intent, wait=True)
        await _call(session, unit, step, tool, intent["args"], intent["key"], attempt)
    elif tool.probe is not None:
        await _probe(session, unit, step, tool, intent)
    else:
        await _unknown(session, unit, run.attempt, tool.name, "the work stopped between its start and its result")


async def _probe(session: Session, unit: str, step: Step, tool: Tool, intent: dict[str, Any]) -> None:
    """Ask the tool whether the effect with this key has happened; its result, or None if it has not."""
    run = session.fold.run(unit)
    ctx, _ = _context(session, unit, step, tool, intent["key"], run.attempt)
    found = await tool.ask_probe(intent["key"], ctx)
    if isinstance(found, Failure):
        await _unknown(session, unit, run.attempt, tool.name, "and whether it has happened could not be found out")
    elif found is None:
        why = "the tool says that it has not happened"
        await session.record("settlement", unit, run.attempt, body={"how": "run", "by": "probe", "why": why})
        await resend(session, unit, step)
    else:
        body, carried = await outcome_body(session, unit, found, started=time.monotonic())
        settled = {**body, "how": "happened", "by": "probe", "why": "the tool says that it has happened"}
        await session.record("settlement", unit, run.attempt, body=settled, artifact=carried)
        announce(session, unit, step)


async def _unknown(session: Session, unit: str, attempt: int, tool: str, why: str) -> None:
    message = f"whether {tool} has happened is not known: {why}"
    failure = Failure(code="UNKNOWN_OUTCOME", message=message, step_id=unit, tool=tool, attempt=attempt)
    await record_failure(session, unit, failure)


async def _call(
    session: Session, unit: str, step: Step, tool: Tool, args: dict[str, JSON], key: str, attempt: int
) -> None:
    started = time.monotonic()
    ctx, transaction = _context(session, unit, step, tool, key, attempt)
    try:
        outcome = await call(tool, args, ctx, session.engine.ports, role=session.head.role)
        if not isinstance(outcome, Success):
            failure = outcome.failure.model_copy(update={"step_id": unit, "tool": tool.name, "attempt": attempt})
            if transaction is not None:
                await transaction.abort()
            await record_failure(session, unit, failure, raw=outcome.raw, elapsed_s=time.monotonic() - started)
        elif transaction is not None:
            await _commit(session, unit, step, transaction, outcome.value, started)
        else:
            await record_success(session, unit, step, outcome.value, started=started, degraded=outcome.degraded)
    finally:
        if transaction is not None:
            await transaction.abort()


async def _commit(
    session: Session, unit: str, step: Step, transaction: GuardedTransaction, value: JSON, started: float
) -> None:
    """The tool's own writes and its outcome row become real together, or not at all."""
    if failure := criterion_failure(session, unit, step, value):
        await transaction.abort()
        await record_failure(session, unit, failure, elapsed_s=time.monotonic() - started)
        return
    body, carried = await outcome_body(session, unit, value, started=started)
    attempt = session.fold.run(unit).attempt
    row = session.row("outcome", unit, attempt, body, carried)
    if not await _committed(session, transaction, row):
        raise StaleOwner(f"another worker has taken run {session.head_run_id} over; nothing of this step was written")
    session.fold.apply("outcome", unit, attempt, body)
    session.accepted[unit] = _accepted()
    announce(session, unit, step)


async def _committed(session: Session, transaction: GuardedTransaction, row: Row) -> bool:
    """Whether the transaction and its row are stored. After a lost connection only the journal knows."""
    journal = session.engine.journal
    try:
        return bool(await transaction.commit_with(*journal.statement_for(row)))
    except ToolFailure:
        return await journal.find(row.run_id, row.fence, row.n) is not None


def _accepted() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


async def _ancestors_accepted(session: Session, step: Step) -> None:
    """An effect rests on results that are durable: each ancestor's row, by name."""
    seen: set[str] = set()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting.extend(session.step(name).depends_on)
        for unit in (name, *(f"{name}[{i}]" for i in range(len(session.fold.expansions.get(name, ()))))):
            if (future := session.accepted.get(unit)) is not None and not future.done():
                await asyncio.shield(future)


def _context(
    session: Session, unit: str, step: Step, tool: Tool, key: str, attempt: int
) -> tuple[ToolContext, GuardedTransaction | None]:
    engine = session.engine
    transaction = engine.connections.transaction() if tool.effect == "transactional" else None
    head = session.head
    seconds = step.timeout_s or max(STEP_SECONDS, tool.spec.timeout_s)
    limit = head.limits.max_wall_s
    if limit is not None:
        seconds = min(seconds, max(0.0, limit - session.elapsed_s()))

    def progress(fraction: float | None, message: str) -> None:
        session.emit(
            Event(kind="progress", step_id=unit, tool=tool.name, fraction=fraction, message=message, attempt=attempt)
        )

    ctx = ToolContext(
        run_id=head.run_id,
        step_id=unit,
        attempt=attempt,
        idempotency_key=key,
        deadline=time.monotonic() + seconds,
        files=FileScope({name: Path(file.path) for name, file in head.files.items()}, Path(head.output_folder)),
        connection=transaction or engine.connections.read_only(),
        external=engine.connections.external,
        progress=_on_loop(progress),
    )
    return ctx, transaction


def _on_loop(progress: Any) -> Any:
    """Progress may be told from a worker thread; the stream is the event loop's."""
    loop = asyncio.get_running_loop()

    def tell(fraction: float | None, message: str) -> None:
        try:
            loop.call_soon_threadsafe(progress, fraction, message)
        except RuntimeError:  # the loop has closed: nobody is listening any more
            return

    return tell
