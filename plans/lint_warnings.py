"""What does not keep a plan from running and is worth saying: results nobody judges, results nobody reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plans.faults import Fault
from plans.lint_scope import Scope, fault
from plans.plan import StepDraft
from plans.references import references_in
from plans.schedule import dependents_of
from plans.values import printable

_NAME = re.compile(r"(?<![\w-])[A-Za-z_][\w-]*")
_ALONE = re.compile(r"[$<\[(#%]*([A-Za-z_][A-Za-z0-9_-]*)((?:[.\[][\w\].\[]*)?)[>\])%]*")
LONGEST_NAME = 100
"""Longest argument that is looked at for being a name, in characters."""


def warnings(scope: Scope) -> Iterator[Fault]:
    """NO_CRITERION, UNREAD_OUTPUT, MISSING_DEPENDENCY, and names of steps as plain text."""
    for at in scope.placed:
        unclear = scope.doubts(at, "action", "tool", "success_when", "output_schema")
        if not unclear and not _can_fail(scope, at[1]):
            what = "whatever the tool returns" if at[1].action == "tool" else "whatever the model writes"
            fix = "add success_when" if at[1].action == "tool" else "add output_schema"
            message = f"{what} counts as success"
            yield fault("NO_CRITERION", message, at, fix=fix, severity="warning")
    yield from _unread(scope)
    yield from _mentioned(scope)
    yield from _plain_names(scope)


def _mentioned(scope: Scope) -> Iterator[Fault]:
    """Steps that a model is told about in words only: it is given nothing of them. (For a reference the edge is added.)
    Only names with a digit are looked for; `report` is a word like any other."""
    numbered = {name for name in scope.steps if any(letter.isdigit() for letter in name)}
    for at in scope.placed:
        words = set(_NAME.findall(at[1].instruction)) & numbered if at[1].instruction else set()
        for name in sorted(words.difference(scope.edges.get(at[1].id, ()), (at[1].id,))):
            message = f"the instruction speaks of {name}, and this step neither waits for it nor reads it"
            yield fault(
                "MISSING_DEPENDENCY", message, at, ("instruction",), fix=f"write ${{{name}}}", severity="warning"
            )


def _plain_names(scope: Scope) -> Iterator[Fault]:
    """Arguments that are nothing but the name of a step, as small models write them: they go out as they stand."""
    for at in scope.placed:
        for argument, value in at[1].args.items():
            named = _ALONE.fullmatch(value) if isinstance(value, str) and len(value) <= LONGEST_NAME else None
            if named and named[1] != at[1].id and named[1] in scope.steps and any(map(str.isdigit, named[1])):
                message = f"{printable(value)!r} is plain text here, not a reference"
                fix = f"write ${{{named[1]}{named[2]}}}"
                yield fault("UNKNOWN_REFERENCE", message, at, ("args", argument), fix=fix, severity="warning")


def _can_fail(scope: Scope, step: StepDraft) -> bool:
    if step.success_when is not None or step.action == "plan":
        return True
    if step.output_schema:
        return True
    tool = scope.tool(step)
    return step.action == "tool" and (tool is None or bool(tool.output_schema))


def _unread(scope: Scope) -> Iterator[Fault]:
    if scope.draft.answer is None or scope.doubtful or scope.nameless:
        return
    dependents = dependents_of(scope.edges)
    in_answer = {reference.name for reference in references_in(scope.draft.answer)}
    for at in scope.placed:
        step = at[1]
        tool = scope.tool(step)
        only_reads = step.action == "llm" or (tool is not None and tool.effect == "read")
        if only_reads and not dependents.get(step.id) and step.id not in in_answer:
            message = "no step and no answer reads the result"
            yield fault("UNREAD_OUTPUT", message, at, fix="use it, or leave the step out", severity="warning")
