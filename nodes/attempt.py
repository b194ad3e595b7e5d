"""One step run, from asking to start until its outcome is in the journal. Failures are values; only bugs raise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nodes.admit import Admission, Ask, Facts, Refuse, Run, Skip, admit
from nodes.asking import ask_person
from nodes.calling import call_tool, resend
from nodes.events import Event
from nodes.fold import base_id
from nodes.judging import call_model
from nodes.recording import record_failure, record_success
from nodes.tracing import traced
from plans.failure import Failure
from plans.plan import Step
from plans.references import UnresolvedReference, resolve
from plans.values import JSON, sha256_of

if TYPE_CHECKING:
    from nodes.session import Session


async def run_unit(session: Session, unit: str) -> None:
    """Let one step run ask to start, and do what the answer says."""
    step = session.step(base_id(unit))
    if session.fold.run(unit).in_doubt is not None:
        await traced(session, unit, step, lambda: resend(session, unit, step))
        return
    named, missing = await named_values(session, step, unit)
    if step.for_each is not None and unit == step.id and not missing:
        await _expand(session, step, named)
        return
    match await _admission(session, step, unit, named, missing):
        case Run() as admitted:
            await traced(session, unit, step, lambda: _run(session, unit, step, admitted, named, missing))
        case Ask() as asked:
            await ask_person(session, unit, asked)
        case Refuse(failure):
            await session.record("refusal", unit, failure.attempt, body={"failure": failure.model_dump()})
            _say(session, unit, step, "failed", failure.message)
        case Skip(reason):
            await session.record("skip", unit, body={"reason": reason})
            _say(session, unit, step, "skipped", reason)


async def _run(
    session: Session, unit: str, step: Step, admitted: Run, named: dict[str, JSON], missing: tuple[str, ...]
) -> None:
    _say(session, unit, step, "running")
    if step.action == "llm":
        await call_model(session, unit, step, named, missing)
    else:
        await call_tool(session, unit, step, admitted)


async def _admission(
    session: Session, step: Step, unit: str, named: dict[str, JSON], missing: tuple[str, ...]
) -> Admission:
    name = session.fold.run(unit).tool or step.tool
    tool = session.engine.registry.get(name) if name else None
    enabled = tool is None or bool((await session.engine.ports.settings.get(tool.name)).get("enabled", tool.enabled))
    facts = Facts(unit, named, missing, tool, enabled, session.head.role, session.elapsed_s())
    return admit(step, session.fold, facts)


async def named_values(session: Session, step: Step, unit: str) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """What a step may read: its dependencies' results, `inputs` and, for a child, `item`; and which gave nothing."""
    named: dict[str, JSON] = {"inputs": session.head.input_values()}
    missing = []
    for name in step.depends_on:
        try:
            named[name] = await session.value(name)
        except KeyError:
            named[name] = None
            missing.append(name)
    if unit != step.id:
        named["item"] = _elements(step, named)[int(unit.partition("[")[2][:-1])]
    return named, tuple(missing)


def _elements(step: Step, named: dict[str, JSON]) -> list[JSON]:
    found = resolve(step.for_each, named.__getitem__)
    if not isinstance(found, list):
        raise UnresolvedReference(f"for_each {step.for_each} is {type(found).__name__}, not a list")
    return found


async def _expand(session: Session, step: Step, named: dict[str, JSON]) -> None:
    """Turn a `for_each` step into its children; the row is accepted before the first of them starts."""
    try:
        elements = _elements(step, named)
    except UnresolvedReference as error:
        await record_failure(session, step.id, _failure(step, "UNRESOLVED_REFERENCE", str(error)))
        return
    cap = session.head.limits.max_for_each
    if len(elements) > cap:
        message = f"{step.id} would run {len(elements)} times; the limit is {cap} (--limit max_for_each=N)"
        await record_failure(session, step.id, _failure(step, "LIMIT_STEPS", message))
        return
    hashes = [sha256_of(item) for item in elements]
    await session.record("expansion", step.id, body={"elements": hashes}, wait=True)
    _say(session, step.id, step, "running", f"{len(elements)} elements")


async def gather(session: Session, step_id: str) -> None:
    """Every child has ended: the parent's result is the list of theirs, or its failure is the first of theirs."""
    step = session.step(step_id)
    units = [f"{step_id}[{index}]" for index in range(len(session.fold.expansions[step_id]))]
    for unit in units:
        run = session.fold.run(unit)
        if run.status == "failed" and run.failure is not None:
            failure = run.failure.model_copy(
                update={"step_id": step_id, "attempt": session.fold.run(step_id).attempt + 1, "delay_s": None}
            )
            await record_failure(session, step_id, failure)
            return
    values = [None if session.fold.run(unit).output is None else await session.value(unit) for unit in units]
    started = time.monotonic()
    await record_success(session, step_id, step, values, started=started)


def _failure(step: Step, code: str, message: str) -> Failure:
    return Failure(code=code, message=message, step_id=step.id, tool=step.tool, attempt=1)


def _say(session: Session, unit: str, step: Step, status: str, message: str | None = None) -> None:
    run = session.fold.run(unit)
    said: dict[str, Any] = {"title": step.title, "tool": run.tool or step.tool or step.action, "status": status}
    session.emit(Event(kind="step", step_id=unit, attempt=run.attempt + (status == "running"), message=message, **said))
