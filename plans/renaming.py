"""Steps under other names: every reference and condition that reads one is changed with it, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmespath.lexer import Lexer

from plans.expressions import InvalidExpression, names_read
from plans.plan import StepDraft
from plans.references import Reference, escape, parse
from plans.values import JSON

_MARK = "a_name_that_no_plan_has"


def renamed_step(step: StepDraft, names: Mapping[str, str]) -> StepDraft:
    """The step with its id, and all that it reads, under the new names; a name that has no new one stays."""
    return step.model_copy(
        update={
            "id": names.get(step.id, step.id),
            "args": renamed(step.args, names),
            "instruction": renamed(step.instruction, names),
            "for_each": renamed(step.for_each, names),
            "when": None if step.when is None else renamed_condition(step.when, names),
            "requires": None if step.requires is None else renamed_condition(step.requires, names),
            "depends_on": tuple(names.get(name, name) for name in step.depends_on),
        }
    )


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The value with its references under the new names; literal text stays as it is."""
    if isinstance(value, str):
        return _text(value, names)
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list | tuple) else value


def _text(text: str, names: Mapping[str, str]) -> JSON:
    parts = parse(text)
    if not any(isinstance(part, Reference) and part.name in names for part in parts):
        return text
    return "".join(escape(part) if isinstance(part, str) else _reference(part, names) for part in parts)


def _reference(reference: Reference, names: Mapping[str, str]) -> str:
    return str(Reference(names.get(reference.name, reference.name), reference.path))


def renamed_condition(condition: str, names: Mapping[str, str]) -> str:
    """The condition with the names at its root changed. One that is no JMESPath stays as it is, to be found."""
    try:
        if names_read(condition).isdisjoint(names):
            return condition
    except InvalidExpression:
        return condition
    for token in reversed([each for each in Lexer().tokenize(condition) if _is_name(each, names)]):
        before, after = condition[: token["start"]], condition[_end(token) :]
        if _is_read(f"{before}{_MARK}{after}"):
            new = names[token["value"]]
            condition = f"{before}{new if new.replace('_', 'a').isalnum() else _quoted(new)}{after}"
    return condition


def _is_name(token: Mapping[str, Any], names: Mapping[str, str]) -> bool:
    return token["type"] in ("unquoted_identifier", "quoted_identifier") and token["value"] in names


def _end(token: Mapping[str, Any]) -> int:
    """Where a name ends; of a quoted one the lexer says its length in the place of its end."""
    return int(token["end"]) + (token["start"] if token["type"] == "quoted_identifier" else 0)


def _is_read(marked: str) -> bool:
    """Whether the name that the mark stands for is one at the root, and no field of something else."""
    try:
        return _MARK in names_read(marked)
    except InvalidExpression:
        return False


def _quoted(name: str) -> str:
    return f'"{name}"'
