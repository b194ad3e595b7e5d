"""What can still be checked of a plan with faults of form: each step with the fields that can be read, and the places
of which nothing is known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from plans.faults import MOST
from plans.foreign_fields import field_meant
from plans.json_text import Note
from plans.plan import PlanDraft, StepDraft, lacking
from plans.values import JSON, Path


@dataclass(frozen=True, slots=True)
class Legible:
    """The steps of a broken plan, as far as they can be read: what cannot has its default. `positions` says where each
    stands in what was written; `doubtful` are places within a step (by its position) about which nothing can be said;
    `nameless`, that some step's id is not known."""

    draft: PlanDraft
    positions: tuple[int, ...]
    doubtful: Mapping[int, frozenset[Path]]
    nameless: bool


def legible(plan: Mapping[str, JSON], notes: Sequence[Note]) -> Legible | None:
    """The readable part of a plan; None if it has no list of steps."""
    written = plan.get("steps")
    if not isinstance(written, list | tuple):
        return None
    noted = _noted(notes)
    steps: list[StepDraft] = []
    doubtful: dict[int, frozenset[Path]] = {}
    positions = [position for position, step in enumerate(written) if isinstance(step, Mapping)]
    for position in positions:
        step, doubts = _readable(written[position], noted.get(position, frozenset()))
        steps.append(step)
        if doubts:
            doubtful[position] = doubts
    goal, answer = plan.get("goal"), plan.get("answer")
    draft = PlanDraft.model_construct(
        goal=goal if isinstance(goal, str) else "unread",
        steps=tuple(steps),
        answer=answer if isinstance(answer, str) else None,
    )
    nameless = len(positions) < len(written) or any(not step.id for step in steps)
    return Legible(draft, tuple(positions), doubtful, nameless)


def action_faults(plan: Mapping[str, JSON]) -> Iterator[tuple[int, str]]:
    """(position, what is missing) for each step that lacks what its action needs and has other faults of form, for
    which pydantic has not looked."""
    written = plan.get("steps")
    for position, step in enumerate(written if isinstance(written, list | tuple) else ()):
        if isinstance(step, Mapping) and (found := _own_problems(step)) and () not in found:
            values = [step.get("action", "tool"), step.get("tool"), step.get("instruction")]
            judged = {"action", "tool", "instruction"}.isdisjoint(place[0] for place in found)
            if judged and (problem := lacking(*values)):
                yield position, problem


def _noted(notes: Sequence[Note]) -> dict[int, frozenset[Path]]:
    """The places that a note is about, by the step that they lie in."""
    found: dict[int, set[Path]] = {}
    for note in notes:
        if len(note.path) > 1 and note.path[0] == "steps" and isinstance(note.path[1], int):
            found.setdefault(note.path[1], set()).add(note.path[2:])
    return {position: frozenset(places) for position, places in found.items()}


def _readable(step: Mapping[str, JSON], noted: Collection[Path]) -> tuple[StepDraft, frozenset[Path]]:
    problems = _own_problems(step)
    if not problems and not noted:
        return StepDraft.model_validate(step), frozenset()
    doubts: set[Path] = {(_meant(place[0], step),) for place in problems[:MOST] if place}
    doubts |= {place if place[0] == "args" else place[:1] for place in noted if place}
    lost = {place[0] for place in doubts if len(place) == 1}
    known: dict[str, Any] = {
        name: value for name, value in step.items() if name in StepDraft.model_fields and name not in lost
    }
    known["id"] = _name(step, noted)
    known["depends_on"] = () if ("depends_on",) in noted else _names(step.get("depends_on"))
    if "action" in lost or lacking(known.get("action", "tool"), known.get("tool"), known.get("instruction")):
        # Which action is meant is not known; a tool that is named can be judged all the same.
        doubts |= {("action",)} if known.get("tool") else {("action",), ("tool",)}
        known["action"] = "tool" if known.get("tool") else "llm"
    return StepDraft.model_construct(**known), frozenset(doubts)


def _meant(name: str | int, step: Mapping[str, JSON]) -> str:
    """The field that a broken one is: for an unknown name the one that it was probably to be, if that is not there."""
    known = [field for field in StepDraft.model_fields if field not in step]
    return str(name) if name in StepDraft.model_fields else field_meant(str(name), known) or str(name)


def _name(step: Mapping[str, JSON], noted: Collection[Path]) -> str:
    """The step's id as others may name it, also where it is no good one; "" if that is not known."""
    name = step.get("id")
    return name if isinstance(name, str) and ("id",) not in noted else ""


def _names(written: JSON) -> tuple[str, ...]:
    return tuple(name for name in written if isinstance(name, str)) if isinstance(written, list | tuple) else ()


def _own_problems(step: Mapping[str, JSON]) -> list[Path]:
    """Where pydantic finds something wrong with one step; () for the step as a whole."""
    try:
        StepDraft.model_validate(step)
    except ValidationError as error:
        return [tuple(problem["loc"]) for problem in error.errors(include_url=False, include_input=False)]
    return []
