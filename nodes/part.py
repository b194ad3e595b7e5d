"""A sub-goal on its way to a plan: what its planner is told, and how what that gives becomes a draft of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nodes.catalog import summary
from nodes.ladder import CODE_OF
from nodes.planner import Part
from nodes.recording import record_refusal
from nodes.state import Drafted, Planning
from nodes.taint import reference_taint
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import MODEL_SOURCES, Step
from plans.references import Reference, UnresolvedReference, follow, references_in
from plans.subgoals import around, joined, parents_in, prefix_of, readers_of
from plans.values import JSON
from tools.person import asks_user

if TYPE_CHECKING:
    from nodes.session import Session

SHORT = 200
"""Longest text of an input that a sub-goal's planner sees as it is, in characters."""
FAILURES = {**CODE_OF, "PLAN_REFUSED": "MODEL_REFUSED"}
"""What a fault that no redraft can mend is as a failure of the step; all others make it PLAN_INVALID."""


def depth_left(session: Session, planning: Planning) -> int:
    """How many levels of sub-goals a plan may have below it."""
    most = session.head.limits.max_subgoal_depth
    if planning.purpose != "subgoal":
        return most
    outer = list(around(planning.step_id or "", parents_in(session.plan.steps)))
    return most - len(outer) - 1


def question(session: Session, planning: Planning) -> str:
    """Names the question for a sub-goal's plan by step, attempt and since when the step is what it is: another
    revision of the rest does not ask it again."""
    step_id = planning.step_id or ""
    attempt = session.fold.run(step_id).attempt + 1
    return f"plan:subgoal:{step_id}:{attempt}:{session.fold.since.get(step_id, 0)}:{planning.tries}"


async def told(session: Session, step: Step) -> Part:
    """What the planner of a sub-goal sees beside its words."""
    outer = around(step.id, parents_in(session.plan.steps))
    said = (session.head.goal, *session.fold.instructions.values())
    return Part(
        of=(*said, *reversed([each.instruction or "" for each in outer])),
        values={str(each): await _shown(session, each) for each in references_in(step.instruction)},
        read_by=dict(readers_of(session.plan.draft, step.id)),
        prefix=prefix_of(step.id, session.plan.steps),
        schema=step.output_schema,
    )


async def _shown(session: Session, reference: Reference) -> JSON:
    """A value that the plan's author has put into the sub-goal: a number as it is, and a short text of the run's own
    inputs or of the user's answers; of all else the shape, as everywhere in planning prompts. What a tool returns
    cannot speak to a planner."""
    try:
        known: JSON = session.head.input_values() if reference.name == "inputs" else await session.value(reference.name)
        value = follow(reference, lambda _: known)
    except (KeyError, UnresolvedReference):
        return None
    is_own = _is_own(session, reference) and isinstance(value, str) and len(value) <= SHORT
    return value if is_own or isinstance(value, bool | int | float | None) else {"shape": summary(value)}


def _is_own(session: Session, reference: Reference) -> bool:
    """Whether this is what the user has said: an input that is theirs, or their answer to a question."""
    if reference.name == "inputs":
        return not reference_taint(session.fold, reference)
    return asks_user(session.engine.registry.get(session.step(reference.name).tool or ""))


def in_whole(session: Session, planning: Planning, drafted: Drafted) -> Drafted:
    """The draft of a sub-goal as one of the whole plan, or the faults that keep it out."""
    if drafted.draft is None:
        return drafted
    strict = drafted.source != "template"
    found, faults = joined(session.plan.draft, planning.step_id or "", drafted.draft, strict=strict)
    whole = found.draft if found is not None else None
    return drafted.model_copy(update={"draft": whole, "faults": (*drafted.faults, *faults)})


def is_a_person_s(session: Session, step_id: str) -> bool:
    """Whether a sub-goal's words are a person's or a template's through and through: no model has written it, nor what
    it stands in, and no result stands in its words. Of a fork's steps nobody knows who wrote which."""
    step, parents = session.step(step_id), parents_in(session.plan.steps)
    written = session.fold.authors.get(step_id) not in MODEL_SOURCES and session.head.forked is None
    return written and step_id not in parents and all(each.name == "inputs" for each in references_in(step.instruction))


def of_the_part(session: Session, planning: Planning, faults: Iterable[Fault]) -> list[Fault]:
    """Of what is wrong with the whole, what its new steps have brought: for the rest their author is not to blame."""
    if planning.purpose != "subgoal":
        return list(faults)
    known = {step.id for step in session.plan.steps} - {planning.step_id}
    return [fault for fault in faults if fault.step not in known or fault.code == "CYCLE"]


async def given_up(session: Session, planning: Planning, errors: Sequence[Fault]) -> None:
    """Nobody can plan this sub-goal: its step has failed, and what depends on it says what becomes of the run."""
    step_id = planning.step_id or ""
    code = next((FAILURES[error.code] for error in errors if error.code in FAILURES), "PLAN_INVALID")
    said = [error.message for error in errors if error.code in FAILURES] or [str(error) for error in errors]
    failure = Failure(
        code=code,
        message=f"the sub-goal of {step_id} could not be planned: {'; '.join(said)}",
        step_id=step_id,
        tool="plan",
        attempt=session.fold.run(step_id).attempt + 1,
    )
    await record_refusal(session, step_id, failure)
