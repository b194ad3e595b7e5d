"""A step with `action: plan` as it runs: it is reached, it waits for the steps of its plan, it gives what they made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from nodes.answer_lines import value_of
from nodes.missing import note, without
from nodes.recording import record_failure, record_refusal, record_success
from nodes.schemas import problems
from nodes.step_run import base_id
from plans.failure import Failure
from plans.plan import Plan, Step
from plans.references import UnresolvedReference, as_text, parse, references_in, resolve
from plans.subgoals import RESULT, around, is_planned, members, parents_in
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from nodes.session import Session

MOST_WORDS = 2_000
"""Longest sub-goal, in characters, once its references are what they stand for."""


async def pursue(session: Session, step: Step, named: Mapping[str, JSON], missing: Collection[str]) -> None:
    """Note that a sub-goal is reached, which has it planned; or, once its plan has run, what that came to."""
    if is_planned(step):
        await _give(session, step, named, missing)
        return
    try:
        goal = as_text(resolve(without(step.instruction, missing), named.__getitem__))
    except UnresolvedReference as error:
        failure = _failure(session, step, "UNRESOLVED_REFERENCE", str(error))
        await record_refusal(session, step.id, failure)
    else:
        await session.record("reached", step.id, body={"goal": goal[:MOST_WORDS]})


async def _give(session: Session, step: Step, named: Mapping[str, JSON], missing: Collection[str]) -> None:
    present = {name: value for name, value in named.items() if name not in missing}
    present = {name: value for name, value in present.items() if not _gave_nothing(session.fold, name)}
    started = session.clock.monotonic()
    try:
        value = value_of(step.args[RESULT], present)
    except UnresolvedReference as error:
        if not missing:  # else it was to run with what there is, and that is nothing
            await record_failure(
                session, step.id, _failure(session, step, "UNRESOLVED_REFERENCE", str(error)), called=False
            )
            return
        value = None
    if step.output_schema is not None and value is not None and (wrong := problems(value, step.output_schema)):
        message = f"what the plan of {step.id} came to is not what was asked for: {'; '.join(wrong)}"
        await record_failure(session, step.id, _failure(session, step, "OUTPUT_INVALID", message), called=False)
        return
    told = {"called": False}
    await record_success(session, step.id, step, value, started=started, degraded=note(missing), told=told)


def lacking(plan: Plan, fold: RunFold, step: Step, missing: Collection[str]) -> tuple[str, ...]:
    """Of what a planned sub-goal waits for and gave nothing, what it cannot do without: steps of its plan that have
    failed and that none of the others went on without, and those that its result is made from."""
    own = members(step)
    template = step.args[RESULT]
    whole = isinstance(template, str) and len(parse(template)) == 1
    read = {reference.name for reference in references_in(template)} if whole else set()
    lost = set(lost_steps(plan, fold, step))
    if isinstance(template, dict) and all(name in missing for name in _names(template)):
        read |= _names(template)
    return tuple(name for name in missing if base_id(name) not in own or base_id(name) in (read | lost))


def lost_steps(plan: Plan, fold: RunFold, step: Step) -> list[str]:
    """The steps of a sub-goal's plan that have failed for good, with no other step of it that runs without them."""
    own = set(members(step))
    inside = [each for each in plan.steps if each.id in own]
    return [
        each.id
        for each in inside
        if fold.status(each.id) == "failed"
        and fold.is_over(each.id)
        and not any(each.id in other.depends_on and other.on_dependency_failure != "abort" for other in inside)
    ]


def lost_around(plan: Plan, fold: RunFold, step: Step) -> str | None:
    """Why a step of a sub-goal's plan need not run any more: another has failed, and the sub-goal is not reached
    without it; None where there is no such."""
    if "__" not in step.id:
        return None
    for parent in around(step.id, parents_in(plan.steps)):
        whole = plan.step(parent.id)
        if whole.on_dependency_failure != "degrade" and (lost := lost_steps(plan, fold, whole)):
            return f"step {lost[0]} has failed, and without it the sub-goal of {parent.id} is not reached"
    return None


def _names(template: Mapping[str, JSON]) -> set[str]:
    return {reference.name for reference in references_in(dict(template))}


def _gave_nothing(fold: RunFold, name: str) -> bool:
    """Whether a step has no result; what is no step (the inputs) has."""
    run = fold.steps.get(name)
    return run is not None and run.output is None


def _failure(session: Session, step: Step, code: str, message: str) -> Failure:
    attempt = session.fold.run(step.id).attempt + 1
    return Failure(code=code, message=message, step_id=step.id, tool="plan", attempt=attempt)
