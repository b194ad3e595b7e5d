"""From a value that was read to a draft: old versions raised, values in quotes unpacked, faults of form named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pydantic import ValidationError

from plans.errors import VersionTooNew
from plans.faults import MOST, Fault
from plans.json_text import Note
from plans.legible import Legible, action_faults, legible
from plans.plan import PlanDraft
from plans.quoted import Unquoted
from plans.schema_faults import incomplete, schema_faults, step_id_at, unstorable_faults
from plans.values import JSON, dotted
from plans.versions import upgraded
from plans.wording import kind_of

STORED = frozenset({"schema_version", "plan_id", "revision", "source", "template"})
"""What a stored plan has beyond a draft: Surestep decides it anew, so it is read past."""


Form = Callable[[JSON], JSON]
"""Makes a plan's own form of the one that its author was held to; total, and changes nothing else."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a text: a draft, or faults; never both. `repaired` says that the text was not the plan as it
    stands. `legible` is what can still be checked of a plan with faults."""

    draft: PlanDraft | None
    repaired: bool
    faults: tuple[Fault, ...] = ()
    legible: Legible | None = None


def refused(*faults: Fault, repaired: bool = False) -> Reading:
    """The reading of a text that holds no plan at all."""
    return Reading(None, repaired, faults)


def drafted(value: JSON, notes: Sequence[Note] = (), *, repaired: bool = False, form: Form | None = None) -> Reading:
    """The draft that a value is, or everything that is wrong with its form. It is no deeper than text may be."""
    if not isinstance(value, Mapping):
        return refused(*_noted({}, notes), _no_object(value), repaired=repaired)
    try:
        plan = upgraded(value if form is None else form(value))
    except VersionTooNew as error:
        return refused(Fault(code="VERSION_TOO_NEW", path="schema_version", message=str(error)), repaired=repaired)
    except ValueError as error:
        return refused(Fault(code="SCHEMA_INVALID", path="schema_version", message=f"schema_version {error}"))
    plan = {name: item for name, item in plan.items() if name not in STORED}
    unquoted = Unquoted(plan)
    return _read(unquoted.plan, [*notes, *unquoted.notes], repaired=repaired or unquoted.changed)


def _read(plan: dict[str, JSON], notes: Sequence[Note], *, repaired: bool) -> Reading:
    faults = _noted(plan, notes)
    draft: PlanDraft | None = None
    try:
        draft = PlanDraft.model_validate(plan)
    except ValidationError as error:
        faults.extend(islice(schema_faults(error, plan), MOST))
        missing = islice(action_faults(plan), MOST)
        faults.extend(incomplete(plan, position, problem) for position, problem in missing)
    told = {fault.path for fault in faults}
    unstorable = islice(unstorable_faults(plan), MOST)
    faults.extend(fault for fault in unstorable if fault.path not in told or fault.code == "INVALID_ARGS")
    if draft is not None and not draft.steps:
        faults.append(Fault(code="PLAN_EMPTY", path="steps", message="the plan has no steps"))
    if draft is not None and not faults:
        return Reading(draft, repaired)
    return Reading(None, repaired, tuple(faults), legible(plan, notes))


def _noted(plan: Mapping[str, JSON], notes: Sequence[Note]) -> list[Fault]:
    """What was wrong with the text itself; of several notes about one place the last."""
    noted = {(note.code, note.path): note.message for note in notes}
    return [
        Fault(code=code, step=step_id_at(plan, path), path=dotted(path), message=message)
        for (code, path), message in islice(noted.items(), MOST)
    ]


def _no_object(value: JSON) -> Fault:
    plans = sum(isinstance(item, dict) and "steps" in item for item in value) if isinstance(value, list) else 0
    if plans > 1:
        return Fault(code="PLAN_AMBIGUOUS", message="the text holds several plans in a list; expected one")
    message = f"expected an object with goal and steps, not {kind_of(value)}"
    return Fault(code="SCHEMA_INVALID", message=message, fix=_fix_of(value, plans))


def _fix_of(value: JSON, plans: int) -> str | None:
    if plans:
        return "write the plan without the list"
    steps = isinstance(value, list) and all(isinstance(item, dict) and {"id", "tool"} & item.keys() for item in value)
    return 'write {"goal": …, "steps": this list}' if steps and value else None
