"""Checks of conditions: `when` and `requires` over named outputs and inputs, `success_when` over the own result."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from plans.expression_paths import compared, paths_needed, rooted
from plans.expressions import InvalidExpression, Tree, compiled, names_read
from plans.faults import Fault
from plans.lint_results import declared, missing_fault, schema_of, shape_of
from plans.lint_scope import Placed, Scope, fault
from plans.result_schemas import Missing, ResultSchema
from plans.values import printable
from plans.wording import nearest

_WORDS = frozenset({"true", "false", "null"})
"""Without back-quotes these are names of fields, which find nothing. (That is null, but for null alone.)"""
_OPERATORS = {"and": "&&", "or": "||", "not": "!"}


def condition_faults(scope: Scope) -> Iterator[Fault]:
    """Conditions that are no JMESPath, or read what is not there."""
    for at in scope.placed:
        for field in ("when", "requires"):
            if (text := getattr(at[1], field)) is not None:
                yield from _condition(scope, at, field, text)
        if at[1].success_when is not None:
            yield from _criterion(scope, at, at[1].success_when)


def _condition(scope: Scope, at: Placed, field: str, text: str) -> Iterator[Fault]:
    try:
        names = names_read(text)
    except InvalidExpression as error:
        yield fault("SCHEMA_INVALID", f"{field}: {error}", at, (field,), fix=_spelled(text))
        return
    always = {"inputs", "item"} if scope.loops(at) else {"inputs"}
    for name in sorted(names - always - _WORDS):
        if name == "item":
            yield fault("UNKNOWN_REFERENCE", f"{field}: item exists only in a step with for_each", at, (field,))
        elif name not in scope.steps and not scope.nameless:
            message = f"{field} reads {printable(name)!r}, and there is no such step"
            yield fault("UNKNOWN_REFERENCE", message, at, (field,), fix=scope.step_meant(name))
    yield from _words(at, field, names & _WORDS - scope.steps.keys())
    for path in paths_needed(compiled(text).tree):
        if (found := rooted(path)) is not None and (schema := schema_of(scope, found[0], at)) is not None:
            yield from _unreachable(at, field, schema, found[1], f"the result of {found[0]}")


def _criterion(scope: Scope, at: Placed, text: str) -> Iterator[Fault]:
    place = (*shape_of(scope, at[1].id, at), f"success_when {text}")
    if place in scope.found:
        return
    found = list(_criterion_faults(scope, at, text))
    yield from found
    if not found and at[1].id not in scope.unclear:
        scope.found.add(place)


def _criterion_faults(scope: Scope, at: Placed, text: str) -> Iterator[Fault]:
    try:
        tree = compiled(text).tree
    except InvalidExpression as error:
        yield fault("SCHEMA_INVALID", f"success_when: {error}", at, ("success_when",), fix=_spelled(text))
        return
    fields = {child["value"] for child in (tree, *compared(tree)) if child["type"] == "field"}
    yield from _words(at, "success_when", fields & _WORDS - {"null"})
    if (schema := declared(scope, at[1])) is not None:
        for path in paths_needed(tree):
            yield from _unreachable(at, "success_when", ResultSchema(schema, schema), path, "the result")


def _unreachable(at: Placed, field: str, schema: ResultSchema, path: Tree, of: str) -> Iterator[Fault]:
    if path["type"] == "field" and path["value"] in _WORDS:
        return
    try:
        schema.at(path)
    except Missing as missing:
        message, fix = missing_fault(missing, of)
        if path["type"] == "field" and not nearest(missing.name, missing.known):
            fix = f"for a text write '{missing.name}', in single quotes"
        yield fault("UNKNOWN_REFERENCE", f"{field}: {message}", at, (field,), fix=fix)


def _words(at: Placed, field: str, words: Collection[str]) -> Iterator[Fault]:
    for word in sorted(words):
        message = f"{field}: {word} is read as a name here, and finds nothing"
        yield fault("SCHEMA_INVALID", message, at, (field,), fix=f"write `{word}`, with back-quotes")


def _spelled(text: str) -> str | None:
    """What people write who mean JMESPath and write another language."""
    if "${" in text:
        return "a condition is plain JMESPath: write s1.total > `5`, without ${…}"
    if number := re.search(r"[<>=]\s*(-?\d+(?:\.\d+)?)\b", text):
        return f"numbers stand in back-quotes: `{number[1]}`"
    if re.search(r"(?<![<>=!])=(?!=)", text):
        return "write == to compare"
    if word := re.search(r"\s(and|or|not|AND|OR|NOT)\s", f" {text} "):
        return f"write {_OPERATORS[word[1].lower()]} for {word[1]}"
    return None
