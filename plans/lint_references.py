"""Checks of everything a step or the answer reads: references and conditions, by name and, where known, by schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plans.expressions import InvalidExpression, compiled, names_read
from plans.faults import Fault
from plans.lint_scope import Placed, Scope, fault
from plans.plan import StepDraft
from plans.references import Reference, located, parse
from plans.result_schemas import Missing, ResultSchema
from plans.values import JSON, Path, printable
from plans.wording import listed, nearest

_FIELDS = ("args", "instruction", "for_each")
_ALMOST = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_-]*)")
_FOREIGN = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)([^{}]*)\}\}")


def reference_faults(scope: Scope) -> Iterator[Fault]:
    """References that lead nowhere, in steps and in the answer; text that was meant to be one."""
    for at in scope.placed:
        for field in _FIELDS:
            value = getattr(at[1], field)
            if value is not None:
                yield from _in_value(scope, at, field, value)
        if at[1].for_each is not None:
            yield from _list_faults(scope, at, at[1].for_each)
    if scope.draft.answer is not None:
        yield from _in_value(scope, None, "answer", scope.draft.answer)


def _in_value(scope: Scope, at: Placed | None, field: str, value: JSON) -> Iterator[Fault]:
    loops = at is not None and at[1].for_each is not None and field != "for_each"
    for path, _, reference in located(value):
        if problem := _problem(scope, reference, loops=loops):
            message, fix = problem
            yield fault("UNKNOWN_REFERENCE", f"{printable(str(reference))}: {message}", at, (field, *path), fix=fix)
    for path, text in _texts(value):
        yield from _almost(scope, at, (field, *path), text)


def _problem(scope: Scope, reference: Reference, *, loops: bool) -> tuple[str, str | None] | None:
    """What is wrong with a reference, and how to mend it; None if nothing is."""
    try:
        tree = compiled(reference.expression).tree
        first = names_read(reference.expression)
    except InvalidExpression as error:
        return f"what follows the name is not a path: {error}", None
    name = reference.name
    if name == "inputs":
        return _input_problem(scope, first)
    if name == "item" and not loops:
        return "item exists only in the arguments of a step with for_each", "add for_each, or name a step"
    if name != "item" and name not in scope.steps:
        return None if scope.unreadable(name) else (f"there is no step {printable(name)!r}", _meant(scope, name))
    try:
        schema = _schema_of(scope, name)
        place = (*_shape_of(scope, name), reference.path)
        if schema is not None and place not in scope.found:
            schema.at(tree)
            scope.found.add(place)
    except Missing as missing:
        return _missing(missing, f"the result of {name}")
    return None


def _input_problem(scope: Scope, first: frozenset[str]) -> tuple[str, str | None] | None:
    unknown = sorted(first.difference(scope.inputs)) if scope.inputs is not None else []
    if not unknown:
        return None
    meant = nearest(unknown[0], scope.inputs or ())
    fix = f"did you mean ${{inputs.{meant}}}?" if meant else f"the inputs are {listed(sorted(scope.inputs or ()))}"
    return f"there is no input {printable(unknown[0])!r}", fix


def _missing(missing: Missing, of: str) -> tuple[str, str | None]:
    meant = nearest(missing.name, missing.known)
    known = f"it has {listed(missing.known)}" if missing.known else None
    return f"{of} has no {missing.name}", f"did you mean {meant!r}?" if meant else known


def _meant(scope: Scope, name: str) -> str:
    if callers := scope.callers.get(name):
        return f"{name} is a tool; the step that calls it is {listed(['${' + caller + '}' for caller in callers])}"
    meant = nearest(name, scope.steps)
    return f"did you mean ${{{meant}}}?" if meant else f"the steps are {listed(scope.steps)}"


def _schema_of(scope: Scope, name: str) -> ResultSchema | None:
    """The schema of a step's result, if one is declared. (`item` is not looked into.)"""
    step = scope.steps.get(name)
    if step is None:
        return None
    tool = scope.tool(step)
    declared = step.output_schema if step.output_schema is not None else tool.output_schema if tool else None
    if declared is None:
        return None
    return ResultSchema(declared, {"type": "array", "items": declared} if step.for_each is not None else declared)


def _shape_of(scope: Scope, name: str) -> tuple[str, bool]:
    """Names what a step's result looks like: steps of one tool that declare nothing of their own are alike."""
    step = scope.steps.get(name)
    if step is None:
        return name, False
    return f"step {name}" if step.output_schema is not None else f"tool {step.tool}", step.for_each is not None


def _texts(value: JSON, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Texts that may hold what looks like a reference."""
    if isinstance(value, str):
        if "{" in value:
            yield path, value
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(item, str) or "{" in item:
                yield from _texts(item, (*path, key))


def _almost(scope: Scope, at: Placed | None, path: Path, text: str) -> Iterator[Fault]:
    """Text that names a step as a reference would, and is none: it would go out as it stands."""
    for part in parse(text.replace("$${", "")):
        found = _ALMOST.search(part) if isinstance(part, str) else None
        if found and _is_name(scope, found[1]):
            message = f"{found[0]!r} begins like a reference and is none: a space, or no closing brace"
            yield fault("UNKNOWN_REFERENCE", message, at, path, fix=f"write ${{{found[1]}}} (or $${{ for the text)")
    for foreign in _FOREIGN.finditer(text):
        if _is_name(scope, foreign[1]):
            whole = foreign[0] == text.strip()
            message = f"{printable(foreign[0])!r} is plain text here, not a reference"
            fix = f"write ${{{foreign[1]}{foreign[2].strip()}}}"
            severity = "error" if whole else "warning"
            yield fault("UNKNOWN_REFERENCE", message, at, path, fix=fix, severity=severity)  # type: ignore[arg-type]


def _is_name(scope: Scope, text: str) -> bool:
    """Whether a reference could begin with this."""
    return text in scope.steps or text in ("inputs", "item")


def _list_faults(scope: Scope, at: Placed, text: str) -> Iterator[Fault]:
    parts = parse(text)
    if len(parts) != 1 or not isinstance(reference := parts[0], Reference):
        message = f"for_each is {text[:80]!r}; expected a single reference to a list"
        yield fault("SCHEMA_INVALID", message, at, ("for_each",), fix="write it like ${s1.items}")
        return
    try:
        schema = _schema_of(scope, reference.name)
        found = schema.at(compiled(reference.expression).tree) if schema else None
    except (Missing, InvalidExpression):
        return
    try:
        if found is not None:
            found.element()
    except Missing:
        yield fault("SCHEMA_INVALID", f"for_each needs a list, and {reference} is none", at, ("for_each",))


def condition_faults(scope: Scope) -> Iterator[Fault]:
    """`when`, `requires` and `success_when` that are no JMESPath, or read what is not there."""
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
        yield fault("SCHEMA_INVALID", f"{field}: {error}", at, (field,), fix=_without_braces(text))
        return
    always = {"inputs", "item"} if at[1].for_each is not None else {"inputs"}
    for name in sorted(names - always):
        if name == "item":
            yield fault("UNKNOWN_REFERENCE", f"{field}: item exists only in a step with for_each", at, (field,))
        elif name not in scope.steps and not scope.unreadable(name):
            message = f"{field} reads {printable(name)!r}, and there is no such step"
            yield fault("UNKNOWN_REFERENCE", message, at, (field,), fix=_meant(scope, name))


def _criterion(scope: Scope, at: Placed, text: str) -> Iterator[Fault]:
    try:
        tree = compiled(text).tree
    except InvalidExpression as error:
        yield fault("SCHEMA_INVALID", f"success_when: {error}", at, ("success_when",), fix=_without_braces(text))
        return
    schema = _own_schema(scope, at[1])
    try:
        if schema is not None:
            schema.at(tree)
    except Missing as missing:
        message, fix = _missing(missing, "the result")
        yield fault("UNKNOWN_REFERENCE", f"success_when: {message}", at, ("success_when",), fix=fix)


def _own_schema(scope: Scope, step: StepDraft) -> ResultSchema | None:
    tool = scope.tool(step)
    declared = step.output_schema if step.output_schema is not None else tool.output_schema if tool else None
    return ResultSchema(declared, declared) if declared is not None else None


def _without_braces(text: str) -> str | None:
    if "${" not in text:
        return None
    return "a condition is plain JMESPath: write s1.total > `5`, without ${…}"
