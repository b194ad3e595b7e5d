"""Asking whether a plan still holds: conditions of its own first, then a model; once per result, and no barrier.

A check after a step starts as the step's second task (`nodes/frontier.py`): what depends on the step waits for it, the
rest goes on. One before an effect is made by the step that asks to start.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from checkpoints.crash_points import reached
from nodes.events import Event
from nodes.journaled_model import JournaledModel, LimitReached
from nodes.means import has_simpler_plan, may_plan_anew
from nodes.model_errors import ModelFailed
from nodes.origins import sentence
from nodes.recording import announce, record_verdict
from nodes.state import Verdict
from nodes.step_run import Check
from nodes.stopping import stopped_by
from nodes.tools_now import tell_once
from nodes.verifier import Checked, still_holds
from nodes.verify_when import by_condition, checked_after, is_unchecked, unjudged
from plans.caps import replan_hit
from plans.expressions import names_in
from plans.failure import Failure
from plans.moves import SETTLED
from plans.plan import MODEL_SOURCES, Plan, Step
from plans.values import JSON, sha256_of
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session

NO_MODEL = "there is no model to ask; set SURESTEP_VERIFIER_MODEL or SURESTEP_MODEL"


@dataclass
class Checks:
    """Those of one session. `running` says of results that are checked now when that is over."""

    running: dict[str, asyncio.Event] = field(default_factory=dict)
    _due: tuple[Plan | None, frozenset[str]] = (None, frozenset())

    def awaits(self, session: Session, step_id: str) -> bool:
        """Whether the plan is to be asked after this finished step, and was not yet."""
        if self._due[0] is not session.plan:
            self._due = (session.plan, checked_after(session.plan, session.engine.registry))
        return step_id in self._due[1] and is_unchecked(session.fold, step_id)


async def check_after(session: Session, step: Step) -> None:
    """Look at a finished step's result, and write down what came out. A premise that is gone is a verdict in the same
    row: the rest is planned anew, or the run ends. Where a limit is in the way it ends, and the check is still due.
    """
    attempt = session.fold.run(step.id).attempt
    try:
        check = by_condition(step, session.plan, await _known(session, step))
        if check is None:
            check = await _by_model(session, step, Check("after", "nobody", NO_MODEL, (step.id,)))
        if check.holds is False:
            await _may_be_changed(session, step, check)
    except LimitReached as limit:
        stopped = Verdict(verdict="finish", step_id="", attempt=attempt, code=limit.code, reason=str(limit))
        await record_verdict(session, stopped)
        return
    body: dict[str, Any] = asdict(check)
    if check.holds is False:
        body["verdict"] = _verdict(session, step, check).model_dump()
    await _recorded(session, step, check, body)
    announce(session, step.id, step)


async def check_before(session: Session, step: Step, tool: Tool | None) -> tuple[bool, Failure | None]:
    """Before a step's effect, look at what it rests on and nobody has judged yet. Whether that took time, in which much
    may have changed; and why the step may not begin."""
    waited = False
    try:
        while of := _to_check(session, step, tool):
            waited = True
            if others := [session.checks.running[name] for name in of if name in session.checks.running]:
                await others[0].wait()
            else:
                await _check(session, step, of)
    except LimitReached as limit:
        return waited, _failure(session, step, limit.code, str(limit))
    check = session.fold.run(step.id).check
    if check is None or check.when != "before" or check.holds is not False:
        return waited, None
    return waited, _failure(session, step, "PREMISE_BROKEN", _broken(f"before step {step.id}", check))


async def _check(session: Session, step: Step, of: tuple[str, ...]) -> None:
    over = asyncio.Event()
    session.checks.running |= dict.fromkeys(of, over)
    try:
        check = await _by_model(session, step, Check("before", "nobody", NO_MODEL, of))
        await _recorded(session, step, check, asdict(check))
    finally:
        over.set()
        for name in of:
            del session.checks.running[name]


async def _recorded(session: Session, step: Step, check: Check, body: dict[str, Any]) -> None:
    await session.record("check", step.id, session.fold.run(step.id).attempt, body=body)
    reached("check.queued")
    _tell(session, step.id, check)


def _failure(session: Session, step: Step, code: str, message: str) -> Failure:
    run = session.fold.run(step.id)
    tool = run.tool or step.tool
    return Failure(code=code, message=message, step_id=step.id, tool=tool, attempt=run.attempt + 1)


def _to_check(session: Session, step: Step, tool: Tool | None) -> tuple[str, ...]:
    """Results to look at before an effect: where a model has planned it, or where a verifier is named by itself."""
    engine = session.engine
    if tool is None or tool.effect == "read" or not engine.options.checks:
        return ()
    if engine.verifier is None and session.fold.authors.get(step.id) not in MODEL_SOURCES:
        return ()
    of = unjudged(step, session.fold, session.plan, engine.registry)
    if of and engine.checking is None:
        tell_once(session, f"whether the plan still holds is not checked before effects: {NO_MODEL}")
        return ()
    return of


async def _by_model(session: Session, step: Step, check: Check) -> Check:
    """The check with what a model says; as it is where there is none to ask."""
    model = session.engine.checking
    if model is None:
        return check
    session.emit(Event(kind="progress", step_id=step.id, tool=step.tool or step.action, message="checking the plan"))
    run, since = session.fold.run(step.id), session.fold.since.get(step.id, 0)
    key = f"verify:{check.when}:{step.id}:{run.attempt}:{since}:{sha256_of(list(check.of))[:12]}"
    goal = session.full_goal
    beginning = step if check.when == "before" else None
    remaining = [each for each in session.plan.steps if session.fold.status(each.id) not in SETTLED]
    try:
        checked = [await _checked(session, name) for name in check.of]
        asked = JournaledModel(session, model, key)
        holds, reason = await still_holds(asked, goal, checked, remaining, beginning=beginning)
    except LimitReached:
        raise
    except ModelFailed as failed:
        return replace(check, by="model", reason=str(failed))
    return replace(check, by="model", reason=reason, holds=holds)


async def _checked(session: Session, name: str) -> Checked:
    step = session.step(name)
    tool = session.engine.registry.get(session.fold.run(name).tool or step.tool or "")
    schema: JSON = step.output_schema if tool is None else tool.output_schema
    return Checked(step, await session.value(name), schema, sentence(session.fold, name))


async def _known(session: Session, step: Step) -> dict[str, JSON]:
    """The values that the preconditions after a step read, as far as they are there."""
    known: dict[str, JSON] = {"inputs": session.head.input_values()}
    for each in session.plan.steps:
        for name in names_in(each.requires) if step.id in each.depends_on else ():
            if name not in known and session.fold.run(name).output is not None:
                known[name] = await session.value(name)
    return known


async def _may_be_changed(session: Session, step: Step, check: Check) -> None:
    """Raise LimitReached where a limit of the run, and nothing else, forbids to plan anew: under a higher one the check
    is still due, and its answer is known."""
    fold, limits = session.fold, session.head.limits
    hit = replan_hit(limits, fold.usage)
    left = fold.global_replans < limits.max_global_replans and session.engine.planner is not None
    if hit is not None and left and not has_simpler_plan(session):
        await stopped_by(session, hit)
        said = f"{hit.message}; before that: {_broken(f'after step {step.id}', check)}"
        raise LimitReached(hit.model_copy(update={"message": said}))


def _verdict(session: Session, step: Step, check: Check) -> Verdict:
    """About the run as a whole: the step itself has finished, and stays. Where nothing can be planned anew the
    template's simpler plan takes over, if it has one."""
    anew = may_plan_anew(session)
    simpler = not anew and has_simpler_plan(session)
    return Verdict(
        verdict="global_replan" if anew or simpler else "finish",
        step_id="",
        attempt=session.fold.premises_broken + 1,
        code="PREMISE_BROKEN",
        reason=_broken(f"after step {step.id}", check),
        degraded=simpler,
    )


def _broken(where: str, check: Check) -> str:
    return f"the plan's premise is gone {where}: {check.reason}"


def _tell(session: Session, step_id: str, check: Check) -> None:
    """A question that stayed open does not stay unsaid."""
    if check.by == "nobody":
        tell_once(session, f"whether the plan still holds is not checked where a step is marked for it: {check.reason}")
    elif check.holds is None and check.by == "model":
        said = f"whether the plan still holds could not be found out {check.when} step {step_id}: {check.reason}"
        session.emit(Event(kind="notice", step_id=step_id, message=said))
