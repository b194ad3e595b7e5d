"""A step with `action: plan`: a sub-goal that is planned when it is reached, and how its plan joins the one around it.

Once planned, the step stays where it is and gives what its plan comes to: its `args` hold that as `result`, and it
depends on every step of its plan, its members, whose ids begin with its own (`s3__s1`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from plans.faults import Fault
from plans.plan import PlanDraft, StepDraft, referenced_steps
from plans.references import Reference, parse, references_in
from plans.renaming import renamed, renamed_step
from plans.schedule import edges_of
from plans.values import JSON

RESULT = "result"
"""The argument of a planned sub-goal that says what it gives."""
LONGEST_ID = 64


@dataclass(frozen=True, slots=True)
class Joined:
    """A plan with a sub-goal's steps in it, and their ids."""

    draft: PlanDraft
    steps: tuple[str, ...]


def is_planned(step: StepDraft) -> bool:
    """Whether a step is a sub-goal whose plan stands in the plan already."""
    return step.action == "plan" and RESULT in step.args


def members(step: StepDraft) -> tuple[str, ...]:
    """The steps of a planned sub-goal's own plan; none where it is no sub-goal, or not planned yet."""
    if not is_planned(step):
        return ()
    own = re.compile(rf"{re.escape(step.id)}(_\d+)?__")
    return tuple(name for name in step.depends_on if own.match(name))


def parents_in(steps: Iterable[StepDraft]) -> dict[str, StepDraft]:
    """For each step that belongs to a sub-goal's plan, that sub-goal."""
    return {member: step for step in steps for member in members(step)}


def around(step_id: str, parents: Mapping[str, StepDraft]) -> Iterator[StepDraft]:
    """The sub-goals that a step stands in, the innermost first."""
    seen = {step_id}
    while (parent := parents.get(step_id)) is not None and parent.id not in seen:
        yield parent
        seen.add(step_id := parent.id)


def prefix_of(step_id: str, steps: Iterable[StepDraft]) -> str:
    """What the ids of a sub-goal's steps begin with: its own id, or that and a number where steps of an earlier plan
    of it are still there."""
    ids = [step.id for step in steps]
    prefixes = (f"{step_id}__" if number == 1 else f"{step_id}_{number}__" for number in count(1))
    return next(prefix for prefix in prefixes if not any(each.startswith(prefix) for each in ids))


def readers_of(draft: PlanDraft, step_id: str) -> dict[str, list[str]]:
    """Who reads a step's result by a reference, and by which; the plan's answer counts as a reader."""
    texts: dict[str, JSON] = {step.id: [step.args, step.instruction, step.for_each] for step in draft.steps}
    texts |= {"answer": [draft.answer]}
    found = {
        reader: [str(reference) for reference in references_in(values) if reference.name == step_id]
        for reader, values in texts.items()
    }
    return {reader: references for reader, references in found.items() if references}


def joined(whole: PlanDraft, step_id: str, part: PlanDraft, *, strict: bool) -> tuple[Joined | None, list[Fault]]:
    """The plan with the plan of one of its sub-goals in it, or what keeps them apart.

    The part's own names come first, as in any scope. Who is `strict` takes a name that exists outside too, and is read
    inside, for a mistake: it could mean either.
    """
    prefix = prefix_of(step_id, whole.steps)
    names = {step.id: step.id if step.id.startswith(prefix) else prefix + step.id for step in part.steps}
    faults = [*_too_long(names, prefix), *(_ambiguous(whole, part, names, prefix) if strict else ())]
    result = renamed(part.answer, names) if part.answer is not None else _ends(part, names)
    faults += _unreadable(whole, step_id, result)
    if faults:
        return None, faults
    steps: list[StepDraft] = []
    new = tuple(dict.fromkeys(names.values()))
    for step in whole.steps:
        if step.id == step_id:
            steps += [renamed_step(each, names) for each in part.steps]
            needed = tuple(dict.fromkeys((*step.depends_on, *new)))
            step = step.model_copy(update={"args": {RESULT: result}, "depends_on": needed})  # noqa: PLW2901
        steps.append(step)
    return Joined(whole.model_copy(update={"steps": tuple(steps)}), new), []


def _ends(part: PlanDraft, names: Mapping[str, str]) -> JSON:
    """What a plan without an answer comes to: the result of its last step, or of each of its last steps by its id."""
    read = {name for needed in edges_of(part.steps).values() for name in needed}
    last = {step.id: "${" + names[step.id] + "}" for step in part.steps if step.id not in read}
    return next(iter(last.values())) if len(last) == 1 else dict(last)


def _too_long(names: Mapping[str, str], prefix: str) -> Iterator[Fault]:
    for name, new in names.items():
        if len(new) > LONGEST_ID:
            message = f"with its sub-goal's id in front the id {new!r} is longer than {LONGEST_ID} characters"
            fix = f"an id of at most {max(0, LONGEST_ID - len(prefix))} characters"
            yield Fault(code="SCHEMA_INVALID", step=name, message=message, fix=fix)


def _ambiguous(whole: PlanDraft, part: PlanDraft, names: Mapping[str, str], prefix: str) -> Iterator[Fault]:
    outside = {step.id for step in whole.steps}
    read = {name for step in part.steps for name in (*step.depends_on, *referenced_steps(step))}
    read |= {reference.name for reference in references_in(part.answer)}
    for name in names:
        if name in outside and name in read:
            message = f"the id {name!r} is that of another step of the plan too, and what reads it could mean either"
            fix = f"call the new step {prefix}{name}"
            yield Fault(code="DUPLICATE_STEP_ID", step=name, message=message, fix=fix)


def _unreadable(whole: PlanDraft, step_id: str, result: JSON) -> Iterator[Fault]:
    """A text has no fields: whoever reads one would find nothing."""
    if not isinstance(result, str) or _is_reference(result):
        return
    for reader, references in readers_of(whole, step_id).items():
        fields = [reference for reference in references if reference != "${" + step_id + "}"]
        if fields:
            who = "the answer" if reader == "answer" else f"step {reader}"
            message = f"{who} reads {fields[0]}, and the answer of this plan is a text"
            fix = "make the answer one reference to a result that has it, and nothing else"
            yield Fault(code="UNKNOWN_REFERENCE", step=step_id, message=message, fix=fix)


def _is_reference(text: str) -> bool:
    parts: Sequence[object] = parse(text)
    return len(parts) == 1 and isinstance(parts[0], Reference)
