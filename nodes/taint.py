"""Where values come from: what a result or an argument was made of that a stranger may have written. Pure.

Text of a tool whose output is not trusted, and all that is made from it, is tainted: through references, judgements,
sub-goals, lists and templates. What the person has said (the goal's inputs, the plan, an edit) is not. A plan that a
model has written after the run has met such text (`RunFold.swayed`) may say what that text wanted: what its steps
say, and what they give, is tainted too. What is stored with a result are the step runs at the root, whose tools have
brought the text in; the way through the plan is the plan's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nodes.step_run import StepRun, base_id, child_index
from plans.plan import Step
from plans.provenance import PERSON, PLAN, REPLAN, Provenance
from plans.references import Reference, located
from plans.values import JSON, Path, dotted

if TYPE_CHECKING:
    from nodes.fold import RunFold

MOST_ROOTS = 20
"""How many origins are kept with a step run; one is enough to make it tainted."""


def taint_of(fold: RunFold, unit: str) -> tuple[str, ...]:
    """The origins of a step run's result that nobody vouches for: step runs, inputs, or the plan itself. Of a result
    that says nothing about it, because it was stored before that was asked, nobody knows: it is its own origin."""
    run = fold.steps.get(unit)
    if run is None or run.output is None:
        return ()
    return (unit,) if run.tainted_by is None else run.tainted_by


def result_taint(fold: RunFold, step: Step, unit: str, read: Iterable[str], *, trusted: bool) -> tuple[str, ...]:
    """The same of a result that is about to be stored. `read` are the step runs that it is made from; `trusted` says
    that who has made it adds nothing of a stranger's."""
    found: dict[str, None] = {} if trusted else {unit: None}
    if step.id in fold.swayed:
        found[REPLAN] = None
    for name in read:
        found |= dict.fromkeys(taint_of(fold, name))
    for reference in _input_references(fold, step):
        found |= dict.fromkeys(_input_taint(fold, reference))
    if unit in fold.expansions:  # the elements are gathered: what one of them has brought in, their list has
        found = dict.fromkeys(base_id(root) if base_id(root) == unit else root for root in found)
    return tuple(found)[:MOST_ROOTS]


def is_tainted(fold: RunFold, step: Step, reference: Reference) -> bool:
    """Whether what a reference of this step stands for is tainted."""
    if reference.name == "item":
        return any(is_tainted(fold, step, each) for each in _references(step.for_each))
    return bool(_input_taint(fold, reference) if reference.name == "inputs" else taint_of(fold, reference.name))


def sources_of(fold: RunFold, step: Step, unit: str) -> tuple[Provenance, ...]:
    """Where each argument of a step run has its values from, in the order of the arguments."""
    run = fold.steps.get(unit, StepRun())
    found = tuple(_sources(fold, step, unit, step.args))
    if run.args is None:
        return found
    # Another tool stands in, with arguments that may be made of any of the step's own.
    return tuple(each.model_copy(update={"argument": name}) for name in run.args for each in found)


def _sources(fold: RunFold, step: Step, unit: str, args: dict[str, JSON]) -> Iterator[Provenance]:
    for name, value in args.items():
        read = list(located(value, (name,)))
        for path, _, reference in read:
            yield _source(fold, step, unit, path, reference)
        if step.id in fold.swayed or not read:
            yield written(fold, step, name)


def written(fold: RunFold, step: Step, argument: str) -> Provenance:
    """The source of what stands in the plan itself."""
    if step.id in fold.swayed:
        return Provenance(argument=argument, source=REPLAN, trusted=False)
    is_edit = fold.authors.get(step.id) == "human" and fold.since.get(step.id, 1) > 1
    return Provenance(argument=argument, source=PERSON if is_edit else PLAN)


def _source(fold: RunFold, step: Step, unit: str, path: Path, reference: Reference) -> Provenance:
    source = f"{reference.name}{reference.path}"
    origin = reference.name
    if reference.name == "item":
        over = _references(step.for_each)
        origin = over[0].name if over else ""
        index = child_index(unit)
        inside = "" if index is None else f"[{index}]"
        source = f"{over[0].name}{over[0].path}{inside}{reference.path}" if over else source
    return Provenance(
        argument=dotted(path), source=source, tool=_tool(fold, origin), trusted=not is_tainted(fold, step, reference)
    )


def _tool(fold: RunFold, step_id: str) -> str | None:
    """Who has given a step's result: its tool, or another that stood in for it."""
    run = fold.steps.get(step_id)
    if run is not None and run.tool is not None:
        return run.tool
    steps = fold.plan.steps if fold.plan else ()
    return next((step.tool or step.action for step in steps if step.id == step_id), None)


def _input_references(fold: RunFold, step: Step) -> list[Reference]:
    """The references to inputs in a step, where there is an input that is not trusted."""
    if fold.head is None or not fold.head.untrusted:
        return []
    values: list[JSON] = [dict(step.args), step.instruction, step.for_each]
    return [reference for value in values for reference in _references(value) if reference.name == "inputs"]


def _input_taint(fold: RunFold, reference: Reference) -> tuple[str, ...]:
    """The inputs that are not trusted and that a reference to the inputs may see."""
    names = fold.head.untrusted if fold.head else ()
    if not names:
        return ()
    first = reference.path.removeprefix(".").partition(".")[0].partition("[")[0].partition("|")[0].strip()
    known = fold.head is not None and first in fold.head.input_values()
    return tuple(f"inputs.{name}" for name in names if not known or name == first)


def _references(value: JSON) -> list[Reference]:
    return [] if value is None else [reference for _, _, reference in located(value)]
