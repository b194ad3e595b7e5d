"""Warnings about a plan's order and size: what is done twice, what stays behind when a later step fails, and loops
without a bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plans.expressions import InvalidExpression, Tree, compiled
from plans.faults import Fault
from plans.lint_results import looped
from plans.lint_scope import Placed, Scope, fault
from plans.plan import StepDraft
from plans.references import Reference, parse
from plans.result_schemas import Missing
from plans.schedule import in_order
from plans.values import canonical

_BOUNDED = frozenset({"multi_select_list", "slice"})


def order_warnings(scope: Scope) -> Iterator[Fault]:
    """REDUNDANT_STEP, NO_UNDO and UNBOUNDED_FOR_EACH; none for a plan that cannot be read whole, or goes in circles."""
    if scope.doubtful or scope.nameless or len(scope.steps) != len(scope.draft.steps):
        return
    try:
        order = in_order(scope.edges)
    except ValueError:
        return
    yield from _redundant(scope, order)
    yield from _stranded(scope, order)
    for at in scope.placed:
        if at[1].for_each is not None and _unbounded(scope, at):
            most = scope.limits.max_for_each
            message = f"nothing says how long the list is; the step runs for each element, up to {most} times"
            fix = "take the first ones, as in ${s1.items[:20]}, or declare maxItems"
            yield fault("UNBOUNDED_FOR_EACH", message, at, ("for_each",), fix=fix, severity="warning")


def _changes(scope: Scope, step: StepDraft) -> bool:
    tool = scope.tool(step)
    return tool is not None and tool.effect != "read"


def _redundant(scope: Scope, order: list[str]) -> Iterator[Fault]:
    """Reads of the same thing. What is read again after something was changed may well be another."""
    first: dict[object, list[Placed]] = {}
    for at in scope.placed:
        tool = scope.tool(at[1])
        if tool is not None and tool.effect == "read":
            first.setdefault(_likeness(at[1]), []).append(at)
    alike = [places for places in first.values() if len(places) > 1]
    after_change = _after_change(scope, order) if alike else {}
    for places in alike:
        known: dict[str, str] = {}
        for at in places:
            if after_change[at[1].id]:
                continue
            earlier = known.setdefault(_call(at[1]), at[1].id)
            if earlier != at[1].id:
                message = f"step {earlier} reads the same, with the same arguments"
                fix = f"leave this step out and write ${{{earlier}}} for ${{{at[1].id}}}"
                yield fault("REDUNDANT_STEP", message, at, fix=fix, severity="warning")


def _likeness(step: StepDraft) -> object:
    """What two equal calls surely share; quicker than comparing everything with everything."""
    value = next(iter(step.args.values()), None)
    return step.tool, len(step.args), step.for_each, step.when, value if isinstance(value, str | int) else None


def _call(step: StepDraft) -> str:
    return canonical([step.tool, step.args, step.for_each, step.when, step.requires])


def _after_change(scope: Scope, order: list[str]) -> Mapping[str, bool]:
    """For each step whether something is changed before it."""
    found: dict[str, bool] = {}
    for name in order:
        before = [needed for needed in scope.edges[name] if needed in found]
        found[name] = any(found[needed] or _changes(scope, scope.steps[needed]) for needed in before)
    return found


def _stranded(scope: Scope, order: list[str]) -> Iterator[Fault]:
    """Effects that stay, because nothing takes them back, when a step that waits for them fails."""
    later: dict[str, str] = {}
    for name in reversed(order):
        step = scope.steps[name]
        doubtful = name if _may_well_fail(scope, step) else later.get(name)
        for needed in scope.edges[name] if doubtful else ():
            later[needed] = str(doubtful)
    for at in scope.placed:
        tool = scope.tool(at[1])
        stays = tool is not None and tool.effect in ("irreversible", "transactional") and not tool.can_undo
        if stays and (after := later.get(at[1].id)):
            message = f"what this step does stays when {after}, which waits for it and may fail, does not succeed"
            fix = f"do what {after} needs first, or give the tool an undo"
            yield fault("NO_UNDO", message, at, fix=fix, severity="warning")


def _may_well_fail(scope: Scope, step: StepDraft) -> bool:
    """Whether a step says itself that it may fail, or is an effect: a mere look afterwards harms nobody."""
    return step.success_when is not None or step.requires is not None or _changes(scope, step)


def _unbounded(scope: Scope, at: Placed) -> bool:
    """Whether a loop goes through whatever a step gives. What a person hands in as an input is theirs to bound."""
    parts = parse(at[1].for_each or "")
    if len(parts) != 1 or not isinstance(reference := parts[0], Reference) or reference.name == "inputs":
        return False
    source = scope.steps.get(reference.name)
    if source is None or source.for_each is not None:
        return False  # a loop over a loop is as long as that, which has been told
    try:
        if _BOUNDED & set(_kinds(compiled(reference.expression).tree)):
            return False
        schema = looped(scope, at)
        return schema is None or schema.longest() is None
    except (InvalidExpression, Missing):
        return False


def _kinds(tree: Tree) -> Iterator[str]:
    yield tree["type"]
    for child in tree.get("children", []):
        if isinstance(child, dict):
            yield from _kinds(child)
