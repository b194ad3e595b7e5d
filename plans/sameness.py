"""Whether two steps, two drafts or two calls ask for the same: by what they do, not by how they are written down.

Ids, titles, reasons, risks, the order of steps and of keys, spaces and `1.0` for `1` make no difference. A step that
builds on others is the same only where these are, so that a step whose dependencies were changed is another one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from plans.plan import PlanDraft, StepDraft
from plans.references import parse
from plans.schedule import edges_of, in_order
from plans.values import JSON, sha256_of

_SAID = ("action", "tool", "args", "instruction", "for_each", "success_when", "output_schema", "timeout_s")
_DOES = ("action", "tool", "args", "instruction", "for_each", "output_schema")
_CONDITIONS = ("when", "requires")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
LENGTH = 24
"""Characters of a name: enough for all the steps a run can have."""


def step_names(steps: Iterable[StepDraft]) -> dict[str, str]:
    """For each step, by its id, a name that all steps have that do the same on the same."""
    known: dict[str, StepDraft] = {}
    for step in steps:
        known.setdefault(step.id, step)
    edges = edges_of(known.values())
    names: dict[str, str] = {}
    for step_id in _in_order(edges):
        names[step_id] = _name(known[step_id], edges[step_id], names)
    return names


def call_names(steps: Iterable[StepDraft]) -> dict[str, str]:
    """For each step, by its id, a name of what it does on what: the same for steps that wait for others, check their
    results by others words or have other times, but not for one with another condition. What a judgement sees is all
    that it waits for."""
    known: dict[str, StepDraft] = {}
    for step in steps:
        known.setdefault(step.id, step)
    names: dict[str, str] = {}
    for step_id in _in_order(edges_of(known.values())):
        step = known[step_id]
        needed = step.depends_on if step.action == "llm" else ()
        names[step_id] = _name(step, needed, names, _DOES)
    return names


def draft_name(draft: PlanDraft) -> str:
    """A name that all drafts have which would do the same."""
    return sha256_of([*sorted(step_names(draft.steps).values()), len(draft.steps)])[:LENGTH]


def same_call(tool: str, args: Mapping[str, JSON]) -> str:
    """A name that all calls of a tool have whose arguments mean the same."""
    return f"{tool}|{sha256_of(normal(dict(args)))[:LENGTH]}"


def normal(value: JSON, names: Mapping[str, str] | None = None) -> JSON:
    """A value without what makes no difference. `names` replace the ids that its references begin with."""
    match value:
        case str():
            return _text(value, names or {})
        case dict():
            return {key: normal(each, names) for key, each in value.items() if each is not None}
        case list():
            return [normal(each, names) for each in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _name(step: StepDraft, needed: tuple[str, ...], names: Mapping[str, str], fields: tuple[str, ...] = _SAID) -> str:
    said = {field: normal(getattr(step, field), names) for field in fields if getattr(step, field) is not None}
    for field in _CONDITIONS:
        if (condition := getattr(step, field)) is not None:
            said[field] = _WORD.sub(lambda word: names.get(word[0], word[0]), " ".join(condition.split()))
    return sha256_of([said, sorted({names.get(each, each) for each in needed})])[:LENGTH]


def _text(text: str, names: Mapping[str, str]) -> str:
    shown = [
        part if isinstance(part, str) else f"${{{names.get(part.name, part.name)}{part.path}}}" for part in parse(text)
    ]
    return unicodedata.normalize("NFC", " ".join("".join(shown).split()))


def _in_order(edges: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Dependencies first, as far as there is such an order: a draft that was refused may have cycles."""
    try:
        return in_order(edges)
    except ValueError:
        return list(edges)
