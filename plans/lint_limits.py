"""Checks of a plan against the limits of its run: what cannot fit for certain, and what may take too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plans.faults import Fault
from plans.lint_results import looped
from plans.lint_scope import Scope, fault
from plans.result_schemas import Missing
from plans.schedule import remaining_path

CHARACTERS_A_TOKEN = 8
"""No tokenizer in use gets more characters of plain text into a token, on average; 3 to 5 are usual."""
MODEL_CALL_S = 60.0
"""What a call of a model may take in all, by default."""


def limit_faults(scope: Scope) -> Iterator[Fault]:
    """LIMIT_INFEASIBLE: whatever happens, this plan cannot end within a limit."""
    yield from _rates(scope)
    yield from _tokens(scope)
    for at in scope.placed:
        most = scope.limits.max_for_each
        try:
            schema = looped(scope, at) if at[1].for_each is not None else None
        except Missing:
            continue
        if schema is not None and (least := schema.shortest()) > most:
            message = f"the list has at least {least} elements; the limit max_for_each is {most}"
            fix = "take fewer of them, or raise the limit max_for_each"
            yield fault("LIMIT_INFEASIBLE", message, at, ("for_each",), fix=fix)


def _rates(scope: Scope) -> Iterator[Fault]:
    if (wall := scope.limits.max_wall_s) is None:
        return
    for name, calls in Counter(step.tool for step in scope.draft.steps if step.tool and step.when is None).items():
        tool = scope.tools.get(name)
        if tool is not None and (least := tool.least_s(calls)) > wall:
            message = f"{calls} calls of {name} take at least {least:g} s by its rate limit; max_wall_s is {wall:g}"
            yield fault("LIMIT_INFEASIBLE", message, path=("steps",), fix="call it less often, or raise max_wall_s")


def _tokens(scope: Scope) -> Iterator[Fault]:
    if (most := scope.limits.max_tokens) is None:
        return
    least = sum(len(step.instruction or "") for step in scope.draft.steps) // CHARACTERS_A_TOKEN
    if least > most:
        message = f"the instructions alone are at least {least:,} tokens; the limit max_tokens is {most:,}"
        yield fault("LIMIT_INFEASIBLE", message, path=("steps",), fix="shorten them, or raise max_tokens")


def deadline_warnings(scope: Scope) -> Iterator[Fault]:
    """OVER_DEADLINE: the longest path may take more time than the run has, if each call takes all of its own."""
    if (wall := scope.limits.max_wall_s) is None or scope.nameless:
        return
    try:
        remaining = remaining_path(scope.edges, lambda name: _at_most_s(scope, name))
    except ValueError:
        return
    longest = max(remaining.values(), default=0.0)
    if longest > wall:
        first = max(remaining, key=lambda name: remaining[name])
        message = f"its longest path, from {first}, may take {longest:g} s in calls; the run has {wall:g} s"
        fix = "let steps depend on less, give them a shorter timeout_s, or raise max_wall_s"
        yield fault("OVER_DEADLINE", message, path=("steps",), fix=fix, severity="warning")


def _at_most_s(scope: Scope, name: str) -> float:
    """The time that one call of a step may take, in seconds."""
    step = scope.steps[name]
    tool = scope.tool(step)
    return step.timeout_s or (tool.timeout_s if tool is not None else MODEL_CALL_S)
