"""The form that a planner's answer is held to: one kind of step per tool, in the strict dialect; and the way back.

Strict mode has no open objects and no optional fields. An open object is written as a list of names and values, what
may be left out is null, and a step's `output_schema` is a list of fields. `restored` makes the plan's own form of it
and leaves everything else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nodes.catalog import Offered, compact
from nodes.strict_arguments import PAIRS, StrictArguments, any_value, nullable, pairs_in, strict_object
from nodes.strict_schema import is_strict
from plans.plan import PlanDraft
from plans.values import JSON

PLAN_SCHEMA: Mapping[str, JSON] = compact(PlanDraft.model_json_schema())
"""The plan's own form, as prompts show it."""

StepOf = Callable[[Mapping[str, JSON], Mapping[str, JSON]], dict[str, JSON]]
"""Makes a kind of step of what it does and how its result is judged."""

FIELDS = "output_fields"
_TEXT: dict[str, JSON] = {"type": "string"}
_KINDS: dict[str, JSON] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
}


class PlanForm:
    """What one planning call may be answered with. `schema` is strict where the tools can be described so; else it is
    the plan's own. Only with `subgoals` may a step be one that is planned later."""

    def __init__(self, catalog: Iterable[Offered], *, subgoals: bool = False) -> None:
        self._subgoals = subgoals
        self._arguments = {tool.name: StrictArguments(tool.name, tool.input_schema) for tool in catalog}
        schema = self._schema()
        self.is_strict = is_strict(schema)
        self.schema: Mapping[str, JSON] = schema if self.is_strict else PLAN_SCHEMA

    def _schema(self) -> dict[str, JSON]:
        later = [_plan_step()] if self._subgoals else []
        return _plan(self._arguments, [*_tool_steps(self._arguments, _step_of), _llm_step(_step_of), *later])

    def restored(self, value: JSON) -> JSON:
        """A plan in this form as a plan in its own; anything else as it is. Nothing is guessed: what does not fit stays
        where it is, to be found."""
        if not self.is_strict or not isinstance(value, Mapping) or not isinstance(value.get("steps"), list | tuple):
            return value
        return {**value, "steps": [self._step(step) for step in value["steps"]]}

    def _step(self, step: JSON) -> JSON:
        if not isinstance(step, Mapping):
            return step
        step = dict(step)
        arguments = self._arguments.get(step["tool"]) if isinstance(step.get("tool"), str) else None
        if arguments is not None and "args" in step:
            step["args"] = arguments.restored(step["args"])
        if FIELDS in step and "output_schema" not in step and (found := _output_schema(step[FIELDS])) is not ...:
            del step[FIELDS]
            step["output_schema"] = found
        return step


class RepairForm(PlanForm):
    """What a repair may be answered with: a plan of the one step, without what the failed step decides for it. A tool
    that is only `named` takes no arguments here: who wants it asks for its outline so."""

    def __init__(self, step_id: str, shown: Iterable[Offered], named: Iterable[str] = ()) -> None:
        self._step_id, self._named = step_id, sorted(named)
        super().__init__(shown)

    def _schema(self) -> dict[str, JSON]:
        kinds = [*_tool_steps(self._arguments, self._step_of), _llm_step(self._step_of)]
        if self._named:
            kinds.append(self._step_of(_calls(self._named, strict_object({})), {}))
        return _plan(self._arguments, kinds)

    def _step_of(self, does: Mapping[str, JSON], judged: Mapping[str, JSON]) -> dict[str, JSON]:
        step_id: dict[str, JSON] = {"type": "string", "enum": [self._step_id]}
        return strict_object({"id": step_id, "reason": _TEXT, **does, **judged})


def _plan(arguments: Mapping[str, StrictArguments], kinds: list[dict[str, JSON]]) -> dict[str, JSON]:
    definitions = {name: found for each in arguments.values() for name, found in each.definitions.items()}
    if any(each.uses_any for each in arguments.values()):
        definitions |= any_value()
    plan = strict_object({"goal": _TEXT, "steps": {"type": "array", "items": {"anyOf": [*kinds]}},
                          "answer": nullable(_TEXT)})  # fmt: skip
    return {**plan, "$defs": definitions} if definitions else plan


def _tool_steps(arguments: Mapping[str, StrictArguments], step_of: StepOf) -> list[dict[str, JSON]]:
    judged: dict[str, JSON] = {"success_when": nullable(_TEXT)}
    return [step_of(_calls([name], each.schema), judged) for name, each in sorted(arguments.items())]


def _calls(names: list[str], args: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "action": {"type": "string", "enum": ["tool"]},
        "tool": {"type": "string", "enum": [*names]},
        "args": args,
    }


def _llm_step(step_of: StepOf) -> dict[str, JSON]:
    field = strict_object({"name": _TEXT, "type": {"type": "string", "enum": list(_KINDS)}})
    fields: dict[str, JSON] = {"type": "array", "items": field, "description": "null for a text"}
    return step_of({"action": {"type": "string", "enum": ["llm"]}, "instruction": _TEXT, FIELDS: nullable(fields)}, {})


def _plan_step() -> dict[str, JSON]:
    return _step_of({"action": {"type": "string", "enum": ["plan"]}, "instruction": _TEXT}, {}, repeats=False)


def _step_of(does: Mapping[str, JSON], judged: Mapping[str, JSON], *, repeats: bool = True) -> dict[str, JSON]:
    """In the order in which a model should think: why before what."""
    names: dict[str, JSON] = {"type": "array", "items": _TEXT}
    each = {"for_each": nullable(_TEXT)} if repeats else {}
    edges = {"depends_on": names, **each, "when": nullable(_TEXT)}
    return strict_object({"id": _TEXT, "title": _TEXT, "reason": _TEXT, **does, **edges, **judged})


def _output_schema(fields: JSON) -> Any:
    """The schema of an object with these fields; `...` where they are none, or one stands twice."""
    if fields is None:
        return None
    pairs = pairs_in({PAIRS: fields}, "type")
    if pairs is None or not all(isinstance(kind, str) and kind in _KINDS for kind in pairs.values()):
        return ...
    properties = {name: _KINDS[str(kind)] for name, kind in pairs.items()}
    return strict_object(properties)
