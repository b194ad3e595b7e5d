"""One step run, from asking to start until its outcome is in the journal. Failures are values; only bugs raise."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checkpoints.crash_points import reached
from nodes.admit import Admission, Ask, Facts, Refuse, Run, Skip, admit, may_expand
from nodes.asking import ask_person
from nodes.calling import call_tool, resend
from nodes.clarify import ask_user
from nodes.early import answered_early
from nodes.events import Event
from nodes.judging import call_model
from nodes.missing import note, without
from nodes.recording import record_failure, record_refusal, record_success
from nodes.standing_in import stand_in
from nodes.step_run import base_id, child_index
from nodes.stopping import stopped_by
from nodes.subgoals import lacking, lost_around, pursue
from nodes.tools_now import current_tool
from nodes.tracing import traced
from nodes.verify import check_after, check_before
from nodes.verify_when import doubt
from plans.caps import elements_hit
from plans.failure import Failure
from plans.plan import Step
from plans.references import UnresolvedReference, resolve
from plans.subgoals import is_planned
from plans.values import JSON, sha256_of
from plans.wording import kind_of
from tools.person import asks_user

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.tool import Tool


async def run_unit(session: Session, unit: str) -> None:
    """Let one step run ask to start, and do what the answer says."""
    step = session.step(base_id(unit))
    try:
        if session.fold.status(unit) == "done":
            await check_after(session, step)
        elif session.fold.run(unit).in_doubt is not None:
            await traced(session, unit, step, lambda: resend(session, unit, step))
        elif (lost := lost_around(session.plan, session.fold, step)) is not None:
            await _not_started(session, unit, step, Skip(lost))
        else:
            await _ask_to_start(session, unit, step)
    finally:
        session.ended(unit)


async def _ask_to_start(session: Session, unit: str, step: Step) -> None:
    named, missing = await named_values(session, step, unit)
    tool = await current_tool(session, session.fold.run(unit).tool or step.tool or "")
    if tool is not None:
        session.scheduling().pacing.follow(session.fold.run(unit).tool or step.tool or "", tool.spec)
    facts = Facts(
        unit=unit,
        named=named,
        missing=missing,
        tool=tool,
        absent=_why_absent(session, unit, step) if tool is None else None,
        role=session.head.role,
        starting=session.starting,
    )
    if step.for_each is not None and unit == step.id:
        await _expand(session, step, _now(session, step, facts))
        return
    match await _admitted(session, step, facts):
        case None:
            return
        case Run() as admitted:
            await _begin(session, unit, step, admitted, tool, named)
        case Ask() as asked:
            await ask_person(session, unit, asked)
        case Refuse() | Skip() as why:
            await _not_started(session, unit, step, why)


async def _begin(
    session: Session, unit: str, step: Step, admitted: Run, tool: Tool | None, named: dict[str, JSON]
) -> None:
    if asks_user(tool):
        await ask_user(session, unit, admitted)
        return
    session.purse.calling.add(unit)
    if admitted.effect is not None:  # before anything else can ask: two at once would both be let through
        session.starting[admitted.effect] = unit
    await traced(session, unit, step, lambda: _run(session, unit, step, admitted, named))


async def _admitted(session: Session, step: Step, facts: Facts) -> Admission | None:
    """Whether it may start. A step with an effect asks first whether the plan still holds; None if meanwhile a decision
    is needed that may change the plan: it asks again after that. What a `for_each` step rests on is looked at once."""
    admitted = admit(step, session.fold, _now(session, step, facts))
    if not isinstance(admitted, Run | Ask) or facts.unit != step.id:
        return admitted
    if isinstance(admitted, Ask) and step.id in session.fold.swayed:
        return admitted  # a person first: whether it still fits is no question before it may be done at all
    waited, refusal = await check_before(session, step, facts.tool)
    if waited and session.decision_needed:
        return None
    if refusal is not None:
        return Refuse(refusal)
    return admit(step, session.fold, _now(session, step, facts)) if waited else admitted


def _now(session: Session, step: Step, facts: Facts) -> Facts:
    """The facts, with what changes while a step asks to start."""
    return replace(
        facts,
        elapsed_s=session.elapsed_s(),
        under_way=len(session.purse.calling - {facts.unit}),
        doubt=doubt(step, facts.tool, session.fold, session.plan),
    )


async def _not_started(session: Session, unit: str, step: Step, why: Refuse | Skip) -> None:
    if isinstance(why, Refuse):
        if why.hit is not None:
            await stopped_by(session, why.hit)
        await record_refusal(session, unit, why.failure)
        _say(session, unit, step, "failed", why.failure.message)
    else:
        await session.record("skip", unit, body={"reason": why.reason, "unneeded": why.unneeded})
        _say(session, unit, step, "skipped", why.reason)


async def _run(session: Session, unit: str, step: Step, admitted: Run, named: dict[str, JSON]) -> None:
    if not is_planned(step):  # it has said so when it was reached
        _say(session, unit, step, "running", "to be planned" if step.action == "plan" else None)
    if (by := session.fold.run(unit).stand_in) is not None:
        await stand_in(session, unit, step, admitted, by)
    elif step.action == "llm":
        await call_model(session, unit, step, named, admitted.missing)
    elif step.action == "plan":
        await pursue(session, step, named, admitted.missing)
    elif not await answered_early(session, unit, step, admitted):
        await call_tool(session, unit, step, admitted)


def _why_absent(session: Session, unit: str, step: Step) -> str | None:
    name = session.fold.run(unit).tool or step.tool
    return session.engine.registry.why_absent(name) if name else None


async def named_values(session: Session, step: Step, unit: str) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """What a step may read: its dependencies' results, `inputs` and, for a child, `item`; and which gave nothing. Of a
    `for_each` step of which some elements failed there are the others."""
    named: dict[str, JSON] = {"inputs": session.head.input_values(), "secrets": session.engine.secret_names}
    missing: list[str] = []
    for name in step.depends_on:
        try:
            named[name] = await session.value(name)
        except KeyError:
            named[name], without_result = await _what_there_is(session, name)
            missing += without_result
    if (index := child_index(unit)) is not None:
        named["item"] = session.elements(step, lambda: elements(step, named, missing))[index]
    if is_planned(step):
        return named, lacking(session.plan, session.fold, step, missing)
    return named, tuple(missing)


async def _what_there_is(session: Session, name: str) -> tuple[JSON, list[str]]:
    """What a step without a result has given all the same, the elements of its list that are there; and what not."""
    units = session.fold.children(name)
    lost = [unit for unit in units if session.fold.run(unit).failure is not None]
    if not lost or len(lost) == len(units):
        return None, [name]
    values = [None if session.fold.run(unit).output is None else await session.value(unit) for unit in units]
    return values, lost


def elements(step: Step, named: dict[str, JSON], missing: Collection[str]) -> list[JSON]:
    """The list that a `for_each` step goes over, without elements that are missing in it; empty where the step that
    should give it gave nothing. Raises UnresolvedReference."""
    found = resolve(without(step.for_each, missing), named.__getitem__)
    if found is None and missing:
        return []
    if not isinstance(found, list):
        raise UnresolvedReference(f"for_each {step.for_each} is {kind_of(found)}; expected a list")
    whole = (step.for_each or "").removeprefix("${").removesuffix("}")
    return [value for index, value in enumerate(found) if f"{whole}[{index}]" not in missing]


async def _expand(session: Session, step: Step, facts: Facts) -> None:
    """Turn a `for_each` step into its children; the row is accepted before the first of them starts."""
    if (kept_from := may_expand(step, session.fold, facts)) is not None:
        await _not_started(session, step.id, step, kept_from)
        return
    try:
        found = elements(step, dict(facts.named), facts.missing)
    except UnresolvedReference as error:
        failure = _failure(session, step, "UNRESOLVED_REFERENCE", str(error))
        await record_failure(session, step.id, failure, called=False)
        return
    if (hit := elements_hit(session.head.limits, step.id, len(found))) is not None:
        await stopped_by(session, hit)
        await record_refusal(session, step.id, _failure(session, step, hit.code, hit.message))
        return
    waited, refusal = await check_before(session, step, facts.tool)
    if waited and session.decision_needed:
        return
    if refusal is not None:
        await _not_started(session, step.id, step, Refuse(refusal))
        return
    body: dict[str, Any] = {"elements": [sha256_of(item) for item in found]}
    if facts.missing:
        body["degraded"] = note(facts.missing)
    await session.record("expansion", step.id, body=body, wait=True)
    reached("expansion.accepted")
    _say(session, step.id, step, "running", f"{len(found)} elements")


async def gather(session: Session, step_id: str) -> None:
    """Every child has ended: the parent's result is the list of theirs, or its failure is the first of theirs."""
    step = session.step(step_id)
    units = session.fold.children(step_id)
    for unit in units:
        run = session.fold.run(unit)
        if run.status == "failed" and run.failure is not None:
            failure = run.failure.model_copy(
                update={"step_id": step_id, "attempt": session.fold.run(step_id).attempt + 1, "delay_s": None}
            )
            await record_failure(session, step_id, failure, called=False)
            return
    values = [None if session.fold.run(unit).output is None else await session.value(unit) for unit in units]
    started = session.clock.monotonic()
    await record_success(session, step_id, step, values, started=started, told={"called": False})


def _failure(session: Session, step: Step, code: str, message: str) -> Failure:
    attempt = session.fold.run(step.id).attempt + 1
    return Failure(code=code, message=message, step_id=step.id, tool=step.tool, attempt=attempt)


def _say(session: Session, unit: str, step: Step, status: str, message: str | None = None) -> None:
    run = session.fold.run(unit)
    said: dict[str, Any] = {"title": step.title, "tool": run.tool or step.tool or step.action, "status": status}
    session.emit(Event(kind="step", step_id=unit, attempt=run.attempt + (status == "running"), message=message, **said))
