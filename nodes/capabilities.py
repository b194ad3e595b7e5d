"""What a run may do by its own plan, and what of a later plan goes beyond that: there a person stands in between. Pure.

The first validated plan, and what people have changed since, was written before anything that a tool has returned could
have a say in it. A model that plans anew may read, and may do over again what was planned: the same call on the same,
under whatever id and in whatever order, guarded as it was, after the same word of a person and the same effects
(`nodes/guards.py`). All else with an effect asks a person. So text that a run
meets on its way, be it the words of a failure, can never widen what the run does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodes.guards import guard_names, guards_in
from nodes.taint import ANSWER
from plans.lint import ToolView
from plans.plan import Plan, Step, highest_risk
from plans.references import references_in
from plans.sameness import call_names
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that was planned, and the guards that stood before it."""

    step: Step
    guards: frozenset[str]

    def or_as(self, other: Planned) -> Planned:
        """Of two that do the same, what is guarded as well as either."""
        return Planned(_as_guarded(self.step, other.step), self.guards | other.guards)


@dataclass(frozen=True, slots=True)
class Charter:
    """What a new revision is measured by. `before` is the revision that it follows, `begun` the steps of that which are
    kept, `done` those of them that have given their result, `planned` what earlier revisions had planned of their own
    accord, `words` what the person has said where it is their word that has the plan changed (None: it is not),
    `exposed` that the run has met strangers' text, `part` that it is the plan of a sub-goal."""

    before: Plan | None = None
    begun: Collection[str] = ()
    done: Collection[str] = ()
    planned: Mapping[str, Planned] = field(default_factory=dict)
    words: str | None = None
    exposed: bool = True
    part: bool = False


def charter_of(fold: RunFold, tools: Mapping[str, Tool], *, words: str | None, part: bool) -> Charter:
    """What a revision of this run is measured by."""
    begun = [step.id for step in fold.kept()]
    done = [step_id for step_id in begun if fold.status(step_id) == "done"]
    return Charter(fold.plan, begun, done, planned_calls(fold, tools), words, fold.is_exposed, part)


def planned_calls(fold: RunFold, tools: Mapping[str, Tool]) -> dict[str, Planned]:
    """The calls that revisions of this run had planned of their own accord, by what they do; of two that do the same
    the better guarded one. What a tool's declared alternative would do in its place counts as planned with it."""
    found: dict[str, Planned] = {}
    for plan, swayed in fold.drawn_up:
        guards = guards_in(plan.steps, tools, swayed)
        for steps in _with_alternatives(plan.steps, tools):
            names = call_names(steps)
            for step in steps:
                if step.id not in swayed:
                    call = Planned(step, guards[step.id])
                    found[names[step.id]] = found.get(names[step.id], call).or_as(call)
    return found


def _with_alternatives(steps: Sequence[Step], tools: Mapping[str, Tool]) -> Iterable[tuple[Step, ...]]:
    yield tuple(steps)
    for step in steps:
        tool = tools.get(step.tool or "")
        for fallback in tool.spec.fallbacks if tool is not None else ():
            if fallback.tool is not None and fallback.args is None:
                other = step.model_copy(update={"tool": fallback.tool})
                yield tuple(other if each is step else each for each in steps)


def beyond_first(plan: Plan, tools: Mapping[str, ToolView]) -> Plan:
    """A first plan that a model has written, with a person before each step that cannot be undone: those are of high
    risk, whatever model and tool say."""
    for_good = {name for name, tool in tools.items() if tool.effect == "irreversible"}
    return _with_high_risk(plan, {step.id for step in plan.steps if step.tool in for_good})


def within(plan: Plan, tools: Mapping[str, ToolView], charter: Charter) -> tuple[Plan, frozenset[str]]:
    """A revision that a model has had a say in, with a person before whatever goes beyond what was planned; and the
    steps that text of strangers may have had a say in. Steps that have begun, and those that the revision before has as
    they are, stay so."""
    if charter.before is None:
        return beyond_first(plan, tools), frozenset()
    before, names = {step.id: step for step in charter.before.steps}, call_names(plan.steps)
    bare = _unguarded(plan, tools, charter, names)
    new = [
        step for step in plan.steps if step.id not in charter.begun and (step != before.get(step.id) or step.id in bare)
    ]
    planned = {step.id: known.step for step in new if (known := charter.planned.get(names[step.id]))}
    planned = {step_id: step for step_id, step in planned.items() if step_id not in bare}
    left = [step for step in new if step.id not in planned]
    asks = {step.id for step in left if _asks(step, tools, charter)}
    swayed = {step.id for step in left if charter.exposed and (step.id in bare or not _is_spoken(step, charter))}
    if charter.words is None and not charter.part:
        swayed |= {step.id for step in left}
    steps = tuple(_as_guarded(step, planned[step.id]) if step.id in planned else step for step in plan.steps)
    if plan.answer != charter.before.answer and (charter.exposed or charter.words is None):
        swayed.add(ANSWER)
    asks |= {step.id for step in left if step.id in swayed and _has_effect(step, tools)}
    return _with_high_risk(plan.model_copy(update={"steps": steps}), asks), frozenset(swayed)


def _unguarded(plan: Plan, tools: Mapping[str, ToolView], charter: Charter, names: Mapping[str, str]) -> frozenset[str]:
    """Effects of a plan that stand there without a guard that was planned before them: one that has not given its
    result yet, and that they do not wait for any more."""
    if charter.before is None:
        return frozenset()
    before, known = guards_in(charter.before.steps, tools), {step.id: step for step in charter.before.steps}
    named = guard_names(charter.before.steps)
    # One that stands there as it was is the same, whatever became of what it reads.
    as_it_was = {step.id: named[step.id] for step in plan.steps if step == known.get(step.id)}
    now = guards_in(plan.steps, tools, named=as_it_was)
    passed = {named[step_id] for step_id in charter.done}
    found = set()
    for step in plan.steps:
        call, same = charter.planned.get(names[step.id]), step == known.get(step.id)
        planned = before[step.id] if same else call.guards if call is not None else frozenset()
        if step.id not in charter.begun and _has_effect(step, tools) and planned - now[step.id] - passed:
            found.add(step.id)
    return frozenset(found)


def _asks(step: Step, tools: Mapping[str, ToolView], charter: Charter) -> bool:
    """Whether a step asks although nobody can have swayed its author: it cannot be undone, or its tool is one that a
    sub-goal brings in."""
    tool = tools.get(step.tool or "")
    if tool is None or tool.effect == "read":
        return False
    called = {each.tool for each in charter.before.steps if each.risk != "high"} if charter.before else set()
    return tool.effect == "irreversible" or (charter.part and step.tool not in called)


def _is_spoken(step: Step, charter: Charter) -> bool:
    """Whether all that a step says is in the words of the person who has it planned, and it says something."""
    if charter.words is None or step.action != "tool":
        return False
    said = list(_literals(dict(step.args)))
    return bool(said) and all(_is_in(each, charter.words) for each in said)


def _literals(value: JSON) -> Iterable[JSON]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _literals(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _literals(item)
    elif not (isinstance(value, str) and [str(each) for each in references_in(value)] == [value]):
        yield value


def _is_in(literal: JSON, words: str) -> bool:
    """Whether a text or a number stands in what a person has said, as a word of its own."""
    if isinstance(literal, bool) or not isinstance(literal, str | int | float) or literal == "":
        return False
    text = f"{literal:g}" if isinstance(literal, float) else str(literal)
    return re.search(rf"(?<![\w.@-]){re.escape(text.casefold())}(?![\w@-]|\.\w)", words.casefold()) is not None


def _has_effect(step: Step, tools: Mapping[str, ToolView]) -> bool:
    tool = tools.get(step.tool or "")
    return tool is not None and tool.effect != "read"


def _as_guarded(step: Step, other: Step) -> Step:
    """The step, guarded at least as well as the other."""
    return step.model_copy(
        update={
            "risk": highest_risk(step.risk, other.risk),
            "require_approval": step.require_approval or other.require_approval,
            "verify_after": step.verify_after or other.verify_after,
        }
    )


def _with_high_risk(plan: Plan, steps: Collection[str]) -> Plan:
    changed = tuple(step.model_copy(update={"risk": "high"}) if step.id in steps else step for step in plan.steps)
    return plan.model_copy(update={"steps": changed})
