"""Lists and objects of a plan that were written as JSON inside a string: what they are is read, where nothing else can
stand. Everywhere else a string is a string."""

from __future__ import annotations

from plans.json_text import Note, NotJSON, strict_json
from plans.loose_json import Broken, Cut, LooseParser
from plans.values import JSON, Path, too_deep

_FIELDS = (("args", dict), ("output_schema", dict), ("depends_on", list))


class Unquoted:
    """A plan without such quotes. `changed` says whether there were any, `notes` what is wrong inside them."""

    def __init__(self, plan: dict[str, JSON]) -> None:
        self.notes: list[Note] = []
        self.changed = False
        self.plan = self._plan(plan)

    def _plan(self, plan: dict[str, JSON]) -> dict[str, JSON]:
        steps = self._value(plan.get("steps"), list, ("steps",))
        if not isinstance(steps, list | tuple):
            return plan
        read = [self._step(step, ("steps", position)) for position, step in enumerate(steps)]
        return {**plan, "steps": read} if self.changed else plan

    def _step(self, step: JSON, path: Path) -> JSON:
        step = self._value(step, dict, path)
        if isinstance(step, dict):
            for name, kind in _FIELDS:
                if isinstance(step.get(name), str):
                    step = {**step, name: self._value(step[name], kind, (*path, name))}
        return step

    def _value(self, value: JSON, kind: type, path: Path) -> JSON:
        """The object or list that a string holds; the value itself if it holds none."""
        if not isinstance(value, str) or not value.lstrip().startswith("{" if kind is dict else "["):
            return value
        found, notes = _read(value, path)
        if not isinstance(found, kind) or too_deep(found):
            return value
        self.changed = True
        self.notes += [Note(note.code, (*path, *note.path), note.message) for note in notes]
        return found


def _read(text: str, path: Path) -> tuple[JSON, list[Note]]:
    """The one value in a text and what is wrong inside it; None if it is not whole or not alone."""
    try:
        return strict_json(text), []
    except NotJSON:
        parser = LooseParser(text, len(text) - len(text.lstrip()), path)
    try:
        found = parser.read()
    except (Broken, Cut):
        return None, []
    return (None, []) if text[parser.at :].strip() else (found, parser.notes)
