"""What one revision of a plan has changed about the one before, step by step and field by field. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plans.plan import Plan, Step, StepDraft

How = Literal["added", "removed", "changed"]
MARKS: Mapping[How, str] = {"added": "+", "removed": "-", "changed": "~"}
LONGEST = 80
"""Characters of a value that are told in one line; all of it stands in the change itself."""
BEFORE = 20
"""Characters of what is the same in two long values that are told before where they begin to differ."""
_OF_NO_STEP = "the answer"
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one step; of the plan's answer where `step` is None. `what` says what the step does (its tool, or
    its action), `title` what it is called; `fields` are, by name, how each was and is, as JSON values."""

    step: str | None
    how: How
    what: str
    title: str = ""
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The change in one line, for people."""
        name = self.step or _OF_NO_STEP
        if self.how == "changed":
            told = "; ".join(f"{place}: {was} → {now}" for place, was, now in _told(self.fields))
            return f"{MARKS[self.how]} {name}  {told}"
        about = " · ".join(filter(None, (self.what, self.title)))
        return f"{MARKS[self.how]} {name}  {about}{_arguments(self)}"


def changes(before: Plan, after: Plan) -> tuple[Change, ...]:
    """What is another way in `after`: first what is gone, then what is new or changed, each in its plan's order."""
    was, now = {step.id: step for step in before.steps}, {step.id: step for step in after.steps}
    found = [_whole("removed", step) for step in before.steps if step.id not in now]
    for step in after.steps:
        if step.id not in was:
            found.append(_whole("added", step))
        elif fields := dict(_differing(was[step.id], step)):
            found.append(Change(step.id, "changed", _does(step), step.title or "", fields))
    if before.answer != after.answer:
        found.append(Change(None, "changed", "answer", fields={"text": (before.answer, after.answer)}))
    return tuple(found)


def _whole(how: How, step: Step) -> Change:
    said = {name: value for name, value in (("args", step.args), ("instruction", step.instruction)) if value}
    fields = {name: (value, None) if how == "removed" else (None, value) for name, value in said.items()}
    return Change(step.id, how, _does(step), step.title or "", fields)


def _differing(was: Step, now: Step) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in StepDraft.model_fields:
        one, other = getattr(was, name), getattr(now, name)
        if one != other:
            yield name, (list(one), list(other)) if isinstance(one, tuple) else (one, other)


def _does(step: Step) -> str:
    return step.tool or step.action


def _arguments(change: Change) -> str:
    was, now = change.fields.get("args") or change.fields.get("instruction") or (None, None)
    return "" if was is None and now is None else f"  {_short(was if now is None else now)}"


def _told(fields: Mapping[str, tuple[Any, Any]]) -> Iterator[tuple[str, str, str]]:
    """Each place where two values differ, through objects, with what stood there and what stands there now."""
    for name, (was, now) in fields.items():
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            names = [each for each in {**was, **now} if each not in was or each not in now or was[each] != now[each]]
            inner = {f"{name}.{each}": (was.get(each, _NOTHING), now.get(each, _NOTHING)) for each in names}
            yield from _told(inner)
        else:
            one, other = _text(was), _text(now)
            yield name, *_around(one, other)


def _around(one: str, other: str) -> tuple[str, str]:
    """Two texts cut to where they begin to differ."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((place for place, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))
    start = max(0, same - BEFORE) if max(len(one), len(other)) > LONGEST else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    shown = f"{'…' if start else ''}{text[start:]}"
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _short(value: Any) -> str:
    return _cut(_text(value), 0)


def _text(value: Any) -> str:
    if value is _NOTHING:
        return "(nothing)"
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
