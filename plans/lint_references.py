"""Checks of the references in steps and in the answer: by name and, where it is declared, by schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from plans.expressions import InvalidExpression, compiled, names_read
from plans.faults import Fault
from plans.lint_results import looped, missing_fault, schema_of, shape_of
from plans.lint_scope import READING, Placed, Scope, Text, fault, texts_in
from plans.plan import RESERVED_NAMES
from plans.references import Located, Reference, located, parse
from plans.result_schemas import Missing
from plans.values import Path, printable
from plans.wording import listed, nearest

_ALMOST = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_-]*)")
_FOREIGN = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)([^{}]*)\}\}")


def reference_faults(scope: Scope) -> Iterator[Fault]:
    """References that lead nowhere, in steps and in the answer; text that was meant to be one."""
    for at in scope.placed:
        for field in READING:
            if texts := scope.texts(at, field):
                yield from _in_texts(scope, at, field, texts, scope.reads(at, field))
        if at[1].for_each is not None:
            yield from _list_faults(scope, at, at[1].for_each)
    if scope.draft.answer is not None:
        answer = scope.draft.answer
        yield from _in_texts(scope, None, "answer", texts_in(answer), tuple(located(answer)))


def _in_texts(
    scope: Scope, at: Placed | None, field: str, texts: Sequence[Text], references: Sequence[Located]
) -> Iterator[Fault]:
    loops = at is not None and field != "for_each" and scope.loops(at)
    for path, _, reference in references:
        if problem := _problem(scope, at, reference, loops=loops):
            message, fix = problem
            yield fault("UNKNOWN_REFERENCE", f"{printable(str(reference))}: {message}", at, (field, *path), fix=fix)
    whole = {path for path, is_whole, _ in references if is_whole}
    for path, text in texts:
        if path not in whole:
            yield from _almost(scope, at, (field, *path), text)


def _problem(scope: Scope, at: Placed | None, reference: Reference, *, loops: bool) -> tuple[str, str | None] | None:
    """What is wrong with a reference, and how to mend it; None if nothing is."""
    name = reference.name
    place = (*shape_of(scope, name, at), reference.path)
    if place in scope.found:
        return None
    try:
        tree = compiled(reference.expression).tree
        first = names_read(reference.expression)
    except InvalidExpression as error:
        inner = reference.path.removeprefix("(").removesuffix(")")
        called = f"write ${{{inner} | {reference.name}(@)}}" if reference.path == f"({inner})" and inner else None
        return f"what follows the name is not a path: {error}", called
    if name != "item" and name not in scope.steps:
        return _nameless_problem(scope, name, first)
    if name == "item" and not loops:
        return "item exists only in the arguments of a step with for_each", "add for_each, or name a step"
    try:
        if (schema := schema_of(scope, name, at)) is not None:
            schema.at(tree)
        scope.found.add(place)
    except Missing as missing:
        return missing_fault(missing, f"the result of {name}" if name != "item" else "an element")
    return None


def _nameless_problem(scope: Scope, name: str, first: frozenset[str]) -> tuple[str, str | None] | None:
    """The same of a reference that names no step. Which secrets there are only a run can tell."""
    if name == "inputs":
        return _input_problem(scope, first)
    if name == "secrets" or scope.nameless:
        return None
    return f"there is no step {printable(name)!r}", scope.step_meant(name)


def _input_problem(scope: Scope, first: frozenset[str]) -> tuple[str, str | None] | None:
    unknown = sorted(first.difference(scope.inputs)) if scope.inputs is not None else []
    if not unknown:
        return None
    meant = nearest(unknown[0], scope.inputs or ())
    fix = f"did you mean ${{inputs.{meant}}}?" if meant else f"the inputs are {listed(sorted(scope.inputs or ()))}"
    return f"there is no input {printable(unknown[0])!r}", fix


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
    return text in scope.steps or text in RESERVED_NAMES


def _list_faults(scope: Scope, at: Placed, text: str) -> Iterator[Fault]:
    parts = parse(text)
    if len(parts) != 1 or not isinstance(parts[0], Reference):
        message = f"for_each is {text[:80]!r}; expected a single reference to a list"
        yield fault("SCHEMA_INVALID", message, at, ("for_each",), fix="write it like ${s1.items}")
        return
    try:
        found = looped(scope, at)
    except Missing:
        return
    try:
        if found is not None:
            found.element()
    except Missing:
        yield fault("SCHEMA_INVALID", f"for_each needs a list, and {parts[0]} is none", at, ("for_each",))
