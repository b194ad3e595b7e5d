"""Where values come from: what a result or an argument was made of that a stranger may have written. Pure.

Text of a tool whose output is not trusted, and all that is made from it, is tainted: through references, judgements,
sub-goals, lists and templates. What the person has said (the goal's inputs, the plan, an edit) is not. A plan that a
model has written after the run has met such text (`RunFold.swayed`) may say what that text wanted: what its steps
say, and what they give, is tainted too. What is stored with a result are the step runs at the root, whose tools have
brought the text in; the way through the plan is the plan's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.step_run import StepRun, base_id, child_index
from plans.plan import Step
from plans.provenance import PERSON, PLAN, REPLAN, Provenance
from plans.references import Reference, located
from plans.values import JSON, Path, dotted
from plans.wording import listed
from tools.sensitive import is_sensitive, may_be_sensitive
from tools.spec import ToolSpec

if TYPE_CHECKING:
    from nodes.fold import RunFold

ANSWER = "@answer"
"""In the place of a step's id: the plan's answer. No step can be called so."""
MOST_ROOTS = 20
"""How many origins are kept with a step run; one is enough to make it tainted."""
MOST_TOLD = 3
"""How many of them a question tells in its reason; all are listed with it."""


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


def reference_taint(fold: RunFold, reference: Reference) -> tuple[str, ...]:
    """The same of what a reference stands for."""
    return _input_taint(fold, reference) if reference.name == "inputs" else taint_of(fold, reference.name)


def is_tainted(fold: RunFold, step: Step, reference: Reference) -> bool:
    """Whether what a reference of this step stands for is tainted."""
    if reference.name == "item":
        return any(is_tainted(fold, step, each) for each in _references(step.for_each))
    return bool(reference_taint(fold, reference))


def sources_of(fold: RunFold, step: Step, unit: str) -> tuple[Provenance, ...]:
    """Where each argument of a step run has its values from, in the order of the arguments."""
    return tuple(source for _, source in _placed(fold, step, unit))


def strange_arguments(
    fold: RunFold, step: Step, unit: str, spec: ToolSpec, args: Mapping[str, JSON]
) -> tuple[Provenance, ...]:
    """What of a call's sensitive arguments is tainted, by which source."""
    if not may_be_sensitive(spec, args) or not _is_touched(fold, step):
        return ()
    return tuple(
        source
        for path, source in _placed(fold, step, unit)
        if not source.trusted and is_sensitive(spec, path, _value_at(args, path))
    )


def told(strange: Sequence[Provenance]) -> str:
    """Why a person is asked about such arguments, as the end of a sentence about a call."""
    made_up = [each for each in strange if each.source == REPLAN]
    others = [each for each in strange if each.source != REPLAN]
    said = [f"its {_named(made_up)} is what a model has written after it may have heard from strangers"] * bool(made_up)
    origins = list(dict.fromkeys(map(_origin, others)))
    if len(origins) > 1:  # which value is from where stands beside each; here the steps are enough
        origins = list(dict.fromkeys(_origin(each, whole=True) for each in others))
    if origins:
        comes = "comes" if len({each.argument for each in others}) == 1 else "come"
        said.append(
            f"its {_named(others)} {comes} from {listed(origins, MOST_TOLD)}, which a stranger may have written"
        )
    return "; ".join(said)


def _named(strange: Sequence[Provenance]) -> str:
    return listed(list(dict.fromkeys(each.argument for each in strange)))


def _origin(source: Provenance, *, whole: bool = False) -> str:
    """What a value comes from; `whole`: the step or input, without the place in it."""
    name = re.split(r"[.\[]", source.source)[0] if whole and source.tool else source.source
    return f"{name} of {source.tool}" if source.tool else name


def _is_touched(fold: RunFold, step: Step) -> bool:
    return step.id in fold.swayed or any(is_tainted(fold, step, each) for each in _references(dict(step.args)))


def _placed(fold: RunFold, step: Step, unit: str) -> Iterator[tuple[Path, Provenance]]:
    """Each source with the place in the arguments that it is the source of."""
    run = fold.steps.get(unit, StepRun())
    found = list(_sources(fold, step, unit))
    if run.args is None:
        yield from found
        return
    for name in run.args:  # another tool stands in: each of its arguments may be made of any of the step's own
        for _, source in found:
            yield (name,), source.model_copy(update={"argument": name})


def _sources(fold: RunFold, step: Step, unit: str) -> Iterator[tuple[Path, Provenance]]:
    for name, value in step.args.items():
        read = list(located(value, (name,)))
        for path, _, reference in read:
            yield path, _source(fold, step, unit, path, reference)
        if step.id in fold.swayed or not read:
            yield (name,), written(fold, step, name)


def _value_at(args: JSON, path: Path) -> JSON:
    """What stands at a place of resolved arguments; None where nothing does."""
    for part in path:
        if isinstance(args, Mapping) and part in args:
            args = args[str(part)]
        elif isinstance(args, list) and isinstance(part, int) and part < len(args):
            args = args[part]
        else:
            return None
    return args


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
