"""A clean run becomes a template: what of its plan came from the goal or the inputs is a parameter, the rest stays.

What comes out is a text for a person to review; nothing uses it before somebody puts it into the folder of templates.
It is proved by what proves every template: its own goal must give its own plan, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from nodes.clean_runs import objections
from nodes.learned_holes import Hole, holes, stands_in
from nodes.template_files import NAME, faults_of, read_template
from nodes.template_plans import Template, match
from nodes.template_text import MAX_GOAL, comparable, language_of
from nodes.template_words import ALONE, plain_words
from nodes.templates import example_faults, example_input
from plans.errors import InvalidInput
from plans.plan import Plan, PlanDraft
from plans.references import as_text
from plans.values import JSON
from tools.redaction import redacted

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from nodes.state import RunHead
    from tools.registry import Registry

_EXPRESSIONS = ("when", "requires", "success_when", "for_each")
_WORDS = ("title", "reason")
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Learned:
    """A template that was learned: its name, its file's text, and what a person should look at."""

    name: str
    text: str
    notes: tuple[str, ...]


def learned(fold: RunFold, registry: Registry, templates: Sequence[Template], name: str | None = None) -> Learned:
    """The template that a run gives. Raises InvalidInput with every reason why it gives none."""
    _refuse(fold, objections(fold))
    head, plan = fold.head, fold.plan
    if head is None or plan is None:
        raise AssertionError("a clean run has a head and a plan")
    _refuse(fold, _in_the_way(head, plan, templates))
    made = _Making(head, plan, registry, name or _name_for(head.goal, templates))
    _refuse(fold, _wrong_name(made.name, templates) + made.faults())
    text = made.text()
    _refuse(fold, _proof(made, text, templates))
    return Learned(made.name, text, made.notes())


class _Making:
    """A template on its way out of a run."""

    def __init__(self, head: RunHead, plan: Plan, registry: Registry, name: str) -> None:
        self.head, self.plan, self.registry, self.name = head, plan, registry, name
        self.language = language_of(head.goal)
        self.files = {key: PurePath(file.path).name for key, file in head.files.items()}
        draft = plan.draft.model_dump(mode="json", exclude_defaults=True)
        self.steps: list[dict[str, Any]] = [_without_secrets(step) for step in draft["steps"]]
        self.holes = holes(self.steps, head.goal, head.inputs, self.files, self._schema)

    def _schema(self, tool: str, argument: str) -> Mapping[str, Any]:
        known = self.registry.get(tool)
        found: Mapping[str, Any] = known.input_schema.get("properties", {}).get(argument, {}) if known else {}
        several = [each for each in found.get("anyOf", ()) if each.get("type") != "null"]
        return several[0] if len(several) == 1 else found

    def faults(self) -> list[str]:
        """What keeps the plan from having holes at all."""
        found = [
            f"{field} of step {step['id']} holds {hole.text!r}, which is the goal's: pass it as an argument"
            for step in self.steps
            for field in _EXPRESSIONS
            for hole in self.holes
            if hole.source == "goal" and stands_in(str(step.get(field) or ""), hole.text)
        ]
        if "${inputs." in as_text([self._holed(step) for step in self.steps]):
            found.append("it reads a part of an input, which a parameter cannot be")
        said = {"args": [step.get("args") for step in self.steps], "answer": self.plan.answer, "goal": self.head.goal}
        said["instructions"] = [step.get("instruction") for step in self.steps]
        return found + [
            f"its {what} hold what looks like a secret" for what, value in said.items() if _is_secret(value)
        ]

    def text(self) -> str:
        """The template file."""
        import yaml

        body = {
            "name": self.name,
            "title": self.head.goal[:80],
            "toolkit": next(
                (tool.toolkit for step in self.steps if (tool := self.registry.get(step.get("tool") or ""))), "own"
            ),
            "match": {self.language: [self._pattern()]},
            "parameters": {hole.name: self._parameter(hole) for hole in self.holes},
            "plan": {"steps": [self._holed(step) for step in self.steps]},
            "examples": [self._example()],
            "others": [],
        }
        if self.head.tenant:  # what it says is out of a run of theirs
            body["tenants"] = [self.head.tenant]
        if self.plan.answer is not None:
            body["plan"]["answer"] = self._holed(self.plan.answer)  # type: ignore[index]
        comments = "".join(f"# {note}\n" for note in (f"Learned from the run {self.head.run_id}.", *self.notes()))
        return comments + yaml.safe_dump(body, allow_unicode=True, sort_keys=False, width=_WIDTH)

    def notes(self) -> tuple[str, ...]:
        """What a person should look at: arguments of effects that stay as they are, and what cannot be known here."""
        kept = [
            f"Always the same: {step['id']} ({step['tool']}) {name} = {as_text(value)}"
            for step in self.steps
            if (tool := self.registry.get(step.get("tool") or "")) and tool.effect != "read"
            for name, value in (step.get("args") or {}).items()
            if self._holed(value) == value and "${" not in as_text(value)
        ]
        return (
            *kept,
            "Review: what may vary, other ways to say the goal, and under `others` what it must leave alone.",
        )

    def _pattern(self) -> str:
        """The goal with a group where a value stood, and what must be the same where it stood again."""
        text = re.escape(comparable(self.head.goal, self.language)).replace(r"\ ", " ")
        said = {re.escape(hole.text): hole for hole in self.holes if hole.source != "input"}
        seen: set[str] = set()

        def group(found: re.Match[str]) -> str:
            hole = said[found[0]]
            again = hole.name in seen
            seen.add(hole.name)
            return f"(?P={hole.name})" if again else f"(?P<{hole.name}>{hole.pattern})"

        return _each(said).sub(group, text) if said else text

    def _parameter(self, hole: Hole) -> dict[str, Any]:
        about = {"about": f"as in {hole.text!r}"}
        if hole.source == "file":
            suffix = PurePath(hole.text).suffix.lower()
            return {"from": "file", **about, **({"suffixes": [suffix]} if suffix else {})}
        source = {"from": "input"} if hole.source == "input" else {}
        return {**source, **about, "schema": dict(hole.schema)}

    def _example(self) -> dict[str, Any]:
        inputs = {**self.head.inputs, **{name: {"file": file} for name, file in self.files.items()}}
        keys = {hole.name: key for key, file in self.files.items() for hole in self.holes if hole.text == file}
        values = {hole.name: keys.get(hole.name, hole.value) for hole in self.holes}
        return {"goal": self.head.goal, **({"inputs": inputs} if inputs else {}), "parameters": values}

    def _holed(self, value: JSON) -> JSON:
        """A value of the plan with holes where parameters stood."""
        if isinstance(value, Mapping):
            return {
                key: item if key in ("id", "tool", *_EXPRESSIONS) else self._holed(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._holed(item) for item in value]
        if value == self.head.goal:
            return "<<goal>>"
        for hole in self.holes:
            if hole.source != "file" and type(value) is type(hole.value) and value == hole.value:
                return f"<<{hole.name}>>"
        return self._holed_text(value) if isinstance(value, str) else value

    def _holed_text(self, text: str) -> str:
        said = {hole.text: f"<<{hole.name}>>" for hole in self.holes if hole.source == "goal"}
        return self._given(_each(said).sub(lambda found: said[found[0]], text) if said else text)

    def _given(self, text: str) -> str:
        """The text with holes for references to inputs."""
        given = {**{key: as_text(value) for key, value in self.head.inputs.items()}, **self.files}
        for key, value in given.items():
            for hole in self.holes:
                if hole.source != "goal" and hole.text == value:
                    text = text.replace(f"${{inputs.{key}}}", f"<<{hole.name}>>")
        return text


def _each(texts: Iterable[str]) -> re.Pattern[str]:
    """Each of these texts where it stands as a word of its own, longer ones first, in one pass: what is put in is not
    looked at again."""
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile(ALONE.format(f"(?:{'|'.join(map(re.escape, longest_first))})"))


def _without_secrets(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: redacted(value) if name in _WORDS and isinstance(value, str) else value for name, value in step.items()
    }


def _is_secret(value: JSON) -> bool:
    text = as_text(value)
    return redacted(text) != text


def _in_the_way(head: RunHead, plan: Plan, templates: Sequence[Template]) -> list[str]:
    found = [f"the template {each.name!r} matches its goal already" for each in templates if each.matched(head.goal)]
    if len(head.goal) > MAX_GOAL:
        found.append(f"its goal has {len(head.goal)} characters, and a template's at most {MAX_GOAL}")
    if any(step.action == "plan" for step in plan.steps):
        found.append("a step of it is planned only when it is reached")
    return found


def _wrong_name(name: str, templates: Sequence[Template]) -> list[str]:
    if not re.match(NAME, name):
        return [f"{name!r} is no name for a template: a small letter, then small letters, digits and underscores"]
    return [f"there is a template {name!r} already; give another name"] if name in {t.name for t in templates} else []


def _name_for(goal: str, templates: Sequence[Template]) -> str:
    """A name made of the goal's words."""
    words = [word for word in re.findall(r"[a-z]+", goal.lower()) if plain_words(word)][:4]
    name, taken = "_".join(words)[:50].strip("_") or "learned", {template.name for template in templates}
    return next(each for each in (name, *(f"{name}_{number}" for number in range(2, 1000))) if each not in taken)


def _proof(made: _Making, text: str, templates: Sequence[Template]) -> list[str]:
    """What shows that the template is not what it was learned from, or takes goals that are another's."""
    written, wrong = read_template(text)
    if written is None or (wrong := [*wrong, *faults_of(written)]):
        return wrong
    template = Template(written)
    if wrong := list(example_faults(template)):
        return wrong
    inputs = {name: example_input(value) for name, value in made.head.inputs.items()}
    inputs |= {name: PurePath(file) for name, file in made.files.items()}
    found = match(made.head.goal, inputs, [template])
    if found is None or _comparable(found.draft, {}) != _comparable(made.plan.draft, made.head.inputs):
        return ["its own goal does not give its own plan again"]
    taken = [
        (each.name, example.goal)
        for each in templates
        for example in each.written.examples
        if template.matched(example.goal)
    ]
    return [f"it would also match {goal!r}, which is a goal of {name!r}" for name, goal in taken]


def _comparable(draft: PlanDraft, inputs: Mapping[str, JSON]) -> JSON:
    """What of a plan must be the same: all but words that were redacted; an input is its value."""
    given = {f"${{inputs.{name}}}": value for name, value in inputs.items()}
    steps = [_without_secrets(step.model_dump(mode="json")) for step in draft.steps]
    return _put_in({"steps": steps, "answer": draft.answer}, given)


def _put_in(value: JSON, given: Mapping[str, JSON]) -> JSON:
    if isinstance(value, Mapping):
        return {key: _put_in(item, given) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_in(item, given) for item in value]
    if not isinstance(value, str) or value in given:
        return given[value] if isinstance(value, str) else value
    for reference, each in given.items():
        value = value.replace(reference, as_text(each))
    return value


def _refuse(fold: RunFold, reasons: Sequence[str]) -> None:
    if reasons:
        run_id = fold.head.run_id if fold.head else "of this id"
        raise InvalidInput(f"the run {run_id} gives no template: {'; '.join(dict.fromkeys(reasons))}")
