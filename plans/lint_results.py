"""What is known of the results that steps read: the schema that each declares, and which parts of it exist."""

from __future__ import annotations

from plans.expressions import InvalidExpression, compiled
from plans.lint_scope import Placed, Scope
from plans.plan import StepDraft
from plans.references import Reference, parse
from plans.result_schemas import Missing, ResultSchema
from plans.values import JSON
from plans.wording import listed, nearest


def declared(scope: Scope, step: StepDraft) -> dict[str, JSON] | None:
    """The schema of what a step's call returns: its own before its tool's; None where nothing is declared, or where it
    cannot be known which."""
    if step.id in scope.unclear:
        return None
    if step.output_schema is not None:
        return step.output_schema
    tool = scope.tool(step)
    return tool.output_schema if tool else None


def schema_of(scope: Scope, name: str, at: Placed | None) -> ResultSchema | None:
    """The schema of what a name stands for in the step `at`: a step's result, which is a list where it loops, or the
    element of its own loop. None where that is not known."""
    if name == "item":
        return _element(scope, at)
    step = scope.steps.get(name)
    found = declared(scope, step) if step is not None else None
    if step is None or found is None:
        return None
    return ResultSchema(found, {"type": "array", "items": found} if step.for_each is not None else found)


def looped(scope: Scope, at: Placed) -> ResultSchema | None:
    """The schema of the list that a step goes through; None where that is not known. Raises Missing."""
    parts = parse(at[1].for_each or "")
    if len(parts) != 1 or not isinstance(reference := parts[0], Reference) or reference.name == "item":
        return None
    schema = schema_of(scope, reference.name, at)
    try:
        return schema.at(compiled(reference.expression).tree) if schema else None
    except InvalidExpression:
        return None


def _element(scope: Scope, at: Placed | None) -> ResultSchema | None:
    if at is None or at[1].for_each is None:
        return None
    try:
        schema = looped(scope, at)
        return schema.element() if schema else None
    except Missing:
        return None


def shape_of(scope: Scope, name: str, at: Placed | None) -> tuple[str, bool]:
    """Names what a result looks like: steps of one tool that declare nothing of their own are alike."""
    step = scope.steps.get(name)
    if step is None:
        return f"{name} of {at[0]}" if at else name, False
    return f"step {name}" if step.output_schema is not None else f"tool {step.tool}", step.for_each is not None


def missing_fault(missing: Missing, of: str) -> tuple[str, str | None]:
    """The sentence for a part that cannot exist, and what was meant."""
    meant = nearest(missing.name, missing.known)
    known = f"it has {listed(missing.known)}" if missing.known else None
    return f"{of} has no {missing.name}", f"did you mean {meant!r}?" if meant else known
