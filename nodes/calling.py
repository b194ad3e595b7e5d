"""The one place that holds tools and journal together: write ahead, call, write the outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from checkpoints.connections import GuardedTransaction
from checkpoints.crash_points import reached
from checkpoints.rows import Row
from nodes.acting import ports_of
from nodes.admit import Run
from nodes.doubt import bounded
from nodes.handing import context, seconds_for
from nodes.inheritance import is_inherited
from nodes.missing import note
from nodes.recording import announce, criterion_failure, outcome_body, record_failure, record_success
from nodes.sealing import share_secrets
from nodes.tools_now import current_tool
from plans.errors import StaleOwner
from plans.failure import Failure, ToolFailure
from plans.plan import Step
from plans.sameness import same_call
from plans.values import JSON
from tools.call import CallFailure, Success, call
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session

KEY_VERSION = 1
"""How idempotency keys are derived; stored with each intent, so that a stored key is never recomputed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a step run's call. `doubted` says that an earlier try may have had the effect already; `end_by` is the
    instant of this process's monotonic clock at which its intent lets it go on no longer."""

    unit: str
    step: Step
    tool: Tool
    args: dict[str, JSON]
    key: str
    number: int
    degraded: str | None = None
    doubted: bool = False
    end_by: float = math.inf


async def call_tool(session: Session, unit: str, step: Step, admitted: Run) -> None:
    """Run an admitted tool step: an effect's intent is accepted before the call, a read waits for nothing."""
    run = session.fold.run(unit)
    name = run.tool or step.tool or ""
    tool = await current_tool(session, name) or session.engine.registry[name]
    attempt = Attempt(unit, step, tool, admitted.args, admitted.key, run.attempt + 1, note(admitted.missing))
    if admitted.effect is not None:
        if session.cancelled:  # asked for while this step was about to start
            return
        _check_foundation(session, step)
        intent = {
            "tool": tool.name,
            "args": admitted.args,
            "call": admitted.call,
            "key": admitted.key,
            "key_version": KEY_VERSION,
            "effect_key": admitted.effect,
            "degraded": attempt.degraded,
        }
        attempt = await _intend(session, attempt, intent)
    await _call(session, attempt)


async def resend(session: Session, unit: str, step: Step) -> None:
    """Settle a step run whose intent is known and whose outcome is not: by what its tool's effect allows."""
    run = session.fold.run(unit)
    intent = run.in_doubt or {}
    tool = await current_tool(session, intent["tool"])
    if tool is None:
        await _unknown(session, unit, run.attempt, intent["tool"], "its tool is no longer registered")
    elif run.resend or (tool.effect in ("idempotent", "transactional") and not is_inherited(run)):
        doubted = tool.effect == "idempotent"
        number, degraded = run.attempt + 1, intent.get("degraded")
        attempt = Attempt(unit, step, tool, intent["args"], intent["key"], number, degraded, doubted)
        await _call(session, await _intend(session, attempt, intent))
    elif tool.probe is not None:
        await _probe(session, unit, step, tool, intent)
    elif is_inherited(run):
        await _unknown(session, unit, run.attempt, tool.name, "the run that this one was forked from has begun it")
    else:
        await _unknown(session, unit, run.attempt, tool.name, "the work stopped between its start and its result")


async def _intend(session: Session, attempt: Attempt, intent: Mapping[str, Any]) -> Attempt:
    """Nothing of an effect happens before its intent is accepted, nor after the time that the intent gives it: who was
    stopped in between writes a new one, and begins nothing where the lease is over. From here on the attempt is
    awaited, however the drive ends."""
    while True:
        body, bounds = bounded(session, intent, seconds_for(session, attempt.step, attempt.tool))
        session.acting[attempt.unit] = bounds.end_by
        await session.record("intent", attempt.unit, attempt.number, body=body, wait=True)
        reached("effect.intended")
        now = session.clock.monotonic()
        if now < bounds.start_by:
            return replace(attempt, end_by=bounds.end_by)
        if not session.lease.alive(now):
            raise StaleOwner(
                f"the lease of run {session.head_run_id} could not be renewed in time, so that another worker may have "
                f"taken it over; step {attempt.unit} was not started. `surestep resume` goes on with the run"
            )


async def _probe(session: Session, unit: str, step: Step, tool: Tool, intent: Mapping[str, Any]) -> None:
    """Ask the tool whether the effect with this key has happened; its result, or None if it has not."""
    run = session.fold.run(unit)
    ctx = context(session, unit, step, tool, intent["key"], run.attempt)
    found = await tool.ask_probe(intent["key"], ctx, ports_of(session))
    if isinstance(found, Failure):
        await _unknown(session, unit, run.attempt, tool.name, "and whether it has happened could not be found out")
    elif found is None and is_inherited(run):
        why = "its tool says that it has not; the run that this one was forked from may still do it"
        await _unknown(session, unit, run.attempt, tool.name, why)
    elif found is None:
        why = "the tool says that it has not happened"
        await session.record("settlement", unit, run.attempt, body={"how": "run", "by": "probe", "why": why})
        await resend(session, unit, step)
    else:
        body, carried = await outcome_body(session, unit, found, started=session.clock.monotonic())
        settled = {**body, "how": "happened", "by": "probe", "why": "the tool says that it has happened"}
        await session.record("settlement", unit, run.attempt, body=settled, artifact=carried)
        announce(session, unit, step)


async def _unknown(session: Session, unit: str, attempt: int, tool: str, why: str) -> None:
    message = f"whether {tool} has happened is not known: {why}"
    failure = Failure(code="UNKNOWN_OUTCOME", message=message, step_id=unit, tool=tool, attempt=attempt)
    await record_failure(session, unit, failure)


async def read_early(session: Session, attempt: Attempt, name: str) -> Success | None:
    """The result of a read that is no step's yet. That it is made is a row, accepted before it; what it gives is handed
    back and nothing more."""
    tool, head = attempt.tool, session.head
    if tool.effect != "read":
        raise AssertionError(f"{tool.name} is not called before the plan is stored: it has an effect")
    await session.record("early", attempt.unit, attempt.number, body={"tool": tool.name, "call": name}, wait=True)
    ctx, ports = context(session, attempt.unit, attempt.step, tool, attempt.key, attempt.number), ports_of(session)
    outcome = await call(tool, attempt.args, ctx, ports, role=head.role, tries=head.limits.max_attempts)
    return outcome if isinstance(outcome, Success) else None


async def _call(session: Session, attempt: Attempt) -> None:
    started = session.clock.monotonic()
    transaction = session.engine.connections.transaction() if attempt.tool.effect == "transactional" else None
    unit, number = attempt.unit, attempt.number
    ctx = context(session, unit, attempt.step, attempt.tool, attempt.key, number, transaction, end_by=attempt.end_by)
    if unit in session.acting:
        session.acting[unit] = ctx.deadline
    try:
        head, ports = session.head, ports_of(session)
        late, tries = session.late.heard_by(session, attempt), head.limits.max_attempts
        outcome = await call(attempt.tool, attempt.args, ctx, ports, role=head.role, tries=tries, late=late)
        if attempt.tool.effect != "read":
            reached("effect.returned")
        if isinstance(outcome, CallFailure):
            if transaction is not None:
                await transaction.abort()
            await _failed(session, attempt, outcome, started)
        elif transaction is not None:
            await _commit(session, attempt, transaction, outcome.value, started)
        else:
            await succeeded(session, attempt, outcome, started)
    finally:
        if transaction is not None:
            await transaction.abort()


async def succeeded(session: Session, attempt: Attempt, outcome: Success, started: float) -> None:
    """An effect that came back has happened, even where its result is no success."""
    degraded = outcome.degraded or attempt.degraded
    told: dict[str, Any] = {"call": same_call(attempt.tool.name, attempt.args)}
    if not outcome.called:
        told["called"] = False
    if outcome.kept_s is not None:
        told["kept_s"] = round(outcome.kept_s, 3)
    if outcome.answered_by is not None:
        told["answered_by"] = outcome.answered_by
    if not outcome.called:
        await share_secrets(session, outcome.value)
    happened = attempt.tool.effect != "read"
    unit, step, value = attempt.unit, attempt.step, outcome.value
    await record_success(session, unit, step, value, started=started, degraded=degraded, happened=happened, told=told)


async def _failed(session: Session, attempt: Attempt, outcome: CallFailure, started: float) -> None:
    code, message = _code(attempt, outcome), outcome.failure.message
    if code == "UNKNOWN_OUTCOME" != outcome.failure.code:
        message = f"{message}; it may have taken effect all the same"
    failure = outcome.failure.model_copy(
        update={
            "code": code,
            "message": message,
            "step_id": attempt.unit,
            "tool": attempt.tool.name,
            "attempt": attempt.number,
        }
    )
    elapsed_s = session.clock.monotonic() - started
    await record_failure(
        session, attempt.unit, failure, raw=outcome.raw, elapsed_s=elapsed_s, called=outcome.called or attempt.doubted
    )


def _code(attempt: Attempt, outcome: CallFailure) -> str:
    """A failure that leaves open whether the effect has happened is an unknown outcome, whatever else it is: the step
    is frozen then. A call that was refused, or that met trouble which may pass, says nothing about the one before it. A
    read is never in doubt."""
    code = outcome.failure.code
    if attempt.tool.effect == "read":
        return "UNAVAILABLE" if code == "UNKNOWN_OUTCOME" else code
    still_in_doubt = attempt.doubted and (not outcome.called or outcome.failure.class_ == "soft")
    return "UNKNOWN_OUTCOME" if outcome.in_doubt or still_in_doubt else code


async def _commit(
    session: Session, attempt: Attempt, transaction: GuardedTransaction, value: JSON, started: float
) -> None:
    """The tool's own writes and its outcome row become real together, or not at all."""
    unit = attempt.unit
    if failure := criterion_failure(session, unit, attempt.step, value):
        await transaction.abort()
        await record_failure(session, unit, failure, elapsed_s=session.clock.monotonic() - started)
        return
    told = {"call": same_call(attempt.tool.name, attempt.args)}
    body, carried = await outcome_body(session, unit, value, started=started, degraded=attempt.degraded, told=told)
    row = session.row("outcome", unit, attempt.number, body, carried)
    if refusal := await _refusal_of_commit(session, transaction, row):
        message = f"what {attempt.tool.name} wrote could not be committed, and none of it was: {refusal.message}"
        failure = Failure(
            code=refusal.code, message=message, step_id=unit, tool=attempt.tool.name, attempt=attempt.number
        )
        await record_failure(session, unit, failure, elapsed_s=session.clock.monotonic() - started)
        return
    session.fold.apply("outcome", unit, attempt.number, body)
    session.known.add(unit)
    announce(session, unit, attempt.step)


async def _refusal_of_commit(session: Session, transaction: GuardedTransaction, row: Row) -> ToolFailure | None:
    """Why the transaction and its row are not stored; None if they are. After a lost connection only the journal
    knows. Raises StaleOwner."""
    import psycopg

    journal = session.engine.journal
    try:
        if not await transaction.commit_with(*journal.statement_for(row)):
            raise StaleOwner(
                f"another worker has taken run {row.run_id} over; nothing of step {row.step_id} was written"
            )
    except ToolFailure as refusal:
        if await journal.find(row.run_id, row.fence, row.n) is not None:
            return None
        return ToolFailure("UNAVAILABLE", refusal.message) if refusal.code == "UNKNOWN_OUTCOME" else refusal
    except psycopg.IntegrityError as error:  # a constraint that is checked at the commit
        return ToolFailure("RULE_VIOLATED", f"it breaks a rule of the database: {error.diag.message_primary}")
    return None


def _check_foundation(session: Session, step: Step) -> None:
    """An effect rests on results whose artifacts are durable and whose rows are stored, or stand before its intent in
    the journal's queue, each by name. Rows of a run are accepted in their order and none after a refused one, so that
    an accepted intent has all of them before it; nobody needs to wait for them apart."""
    founded, found = session.founded, set[str]()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name in founded or name in found:
            continue
        found.add(name)
        waiting.extend(session.step(name).depends_on)
        for unit in (name, *session.fold.children(name)):
            if unit not in session.known:
                raise AssertionError(f"{step.id} would rest on {unit}, of which the journal knows nothing")
    founded |= found
