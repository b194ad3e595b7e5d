"""What a fork takes over from its parent: made of the parent's picture, kept as one row, read into the fork's picture.

By reference: results stay where they are. Finished steps are kept; the step that is forked from and all that depends on
it run again. A step in doubt counts as finished (rule 7): it is kept with its stored intent, wherever it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from nodes.step_run import Check, Output, StepRun, base_id
from plans.errors import InvalidInput
from plans.failure import Failure
from plans.moves import SETTLED
from plans.schedule import dependents_of, descendants, edges_of, in_order
from plans.wording import listed

if TYPE_CHECKING:
    from nodes.fold import RunFold

_KEPT = tuple(
    field.name for field in fields(StepRun) if field.name not in ("verdict", "not_before", "resend", "stand_in")
)


def inheritance(parent: RunFold, step_id: str) -> dict[str, Any]:
    """The body of the row `inherited` of a fork from this step. Raises InvalidInput where that makes no sense."""
    _check(parent, step_id)
    run_id = parent.head.run_id if parent.head else ""
    kept = _kept(parent, step_id, run_id)
    return {
        "steps": {unit: _stored(run) for unit, run in kept.items()},
        "expansions": {unit: parent.expansions[unit] for unit in kept if unit in parent.expansions},
        "effects": {
            effect: [unit if " " in unit else f"{unit} of run {run_id}" for unit in units]
            for effect, units in parent.effects.items()
        },
        "had": _had(parent, kept),
        "rejected": sorted(parent.rejected),
        "instructions": dict(parent.instructions),
    }


def inherited(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    """The row read back: steps as the parent left them, and what of the world is known already."""
    self.steps.update({unit: _restored(run) for unit, run in body["steps"].items()})
    self.expansions.update({unit: list(elements) for unit, elements in body["expansions"].items()})
    self.effects.update({effect: tuple(units) for effect, units in body["effects"].items()})
    self.had = frozenset(body["had"])
    self.rejected |= dict.fromkeys(body["rejected"], 1)  # the parent's plan is the first of the fork
    self.instructions.update(body["instructions"])


def is_inherited(run: StepRun) -> bool:
    """Whether what is in doubt was begun by the run that this one was forked from: then only a person, or a probe that
    says it has happened, settles it here. Two runs know of it, and each would send it."""
    return "inherited_from" in (run.in_doubt or {})


def artifacts_in(body: Mapping[str, Any]) -> set[str]:
    """Every `output_ref` that the row's steps refer to: their results, and the raw texts of their failures."""
    runs = body["steps"].values()
    found = {run["output"]["output_ref"] for run in runs if "output" in run}
    return found | {run["failure"]["raw_ref"] for run in runs if "failure" in run and run["failure"]["raw_ref"]}


def _check(parent: RunFold, step_id: str) -> None:
    if parent.plan is None:
        raise InvalidInput("this run has no plan yet, so there is no step to fork from; start the goal again")
    steps = [step.id for step in parent.plan.steps]
    if step_id in steps:
        return
    if base_id(step_id) in steps:
        raise InvalidInput(f"{step_id} is one element of step {base_id(step_id)}; fork from {base_id(step_id)}")
    raise InvalidInput(f"the plan has no step {step_id!r}; its steps: {listed(steps)}")


def _kept(parent: RunFold, step_id: str, run_id: str) -> dict[str, StepRun]:
    """The step runs that the fork has from the beginning."""
    edges = edges_of(parent.plan.steps) if parent.plan else {}
    below = descendants(edges, step_id)
    finished = _finished(parent, edges, {step_id, *below})
    kept: dict[str, StepRun] = {}
    for step in edges:
        run = parent.steps.get(step)
        if run is None:
            continue
        if step in finished:
            kept |= {unit: parent.steps[unit] for unit in (step, *parent.children(step)) if unit in parent.steps}
        elif run.in_doubt is not None:
            kept[step] = _frozen(run, run_id)
        elif step in parent.expansions:
            kept |= _part(parent, step, run_id, again=step == step_id, below=step in below)
    return kept


def _finished(parent: RunFold, edges: Mapping[str, tuple[str, ...]], again: set[str]) -> set[str]:
    """Steps that are kept whole: settled ones, and failures that a step which is kept has gone on without."""
    dependents = dependents_of(edges)
    relying = {step for step in edges if _begun(parent, step)}
    found: set[str] = set()
    for step in reversed(in_order(edges)):
        run = parent.steps.get(step)
        if run is None or step in again:
            continue
        gone_on = not relying.isdisjoint(dependents[step]) or not found.isdisjoint(dependents[step])
        if run.status in SETTLED or (run.status == "failed" and run.exhausted and gone_on):
            found.add(step)
    return found


def _begun(parent: RunFold, step: str) -> bool:
    """Whether a step is in doubt, or has elements that are or that have ended."""
    runs = [parent.steps[unit] for unit in (step, *parent.children(step)) if unit in parent.steps]
    return any(run.in_doubt is not None for run in runs) or any(run.status in SETTLED for run in runs[1:])


def _part(parent: RunFold, step: str, run_id: str, *, again: bool, below: bool) -> dict[str, StepRun]:
    """What is kept of a `for_each` step that has not finished or is to run again: its elements in doubt; and, if it
    need not run again, those that have ended. Their list is the same then, for all that it is made of is kept."""
    children = {unit: parent.steps[unit] for unit in parent.children(step) if unit in parent.steps}
    kept = {unit: _frozen(run, run_id) for unit, run in children.items() if run.in_doubt is not None}
    if below and kept:
        raise InvalidInput(
            f"whether {listed(kept)} has happened is not known, and the list that step {step} goes over would be made "
            "anew. Settle that in the run itself first (`surestep approvals` shows the question), then fork"
        )
    if not (again or below):
        kept |= {unit: run for unit, run in children.items() if run.status in SETTLED}
    if not kept:
        return {}
    whole = parent.steps[step]
    return {step: StepRun("running", whole.attempt, whole.first_attempt, degraded=whole.degraded), **kept}


def _frozen(run: StepRun, run_id: str) -> StepRun:
    """An effect in doubt: its stored intent, marked as begun by the parent, who may still settle it too. Where the
    attempt's end is recorded, nobody need wait for its worker's time to be over (rule 6)."""
    intent = {"inherited_from": run_id, **(run.in_doubt or {})}
    if run.failure is not None or run.resend:
        intent.pop("settled_after", None)
    return replace(run, in_doubt=intent, failure=None, exhausted=False)


def _had(parent: RunFold, kept: Mapping[str, StepRun]) -> list[str]:
    """Names of steps, or of elements of one whose list is kept, that have had their effect and would have it again."""
    own = {unit for units in parent.effects.values() for unit in units if " " not in unit}
    again = {unit for unit in own | parent.had if unit not in kept}
    return sorted({unit if base_id(unit) in kept else base_id(unit) for unit in again})


def _stored(run: StepRun) -> dict[str, Any]:
    """A step run as JSON, without what is as it always is."""
    plain = StepRun()
    found = {name: getattr(run, name) for name in _KEPT if getattr(run, name) != getattr(plain, name)}
    if run.output is not None:
        found["output"] = asdict(run.output)
    if run.failure is not None:
        found["failure"] = run.failure.model_dump()
    if run.check is not None:
        found["check"] = asdict(run.check)
    found |= {name: list(found[name]) for name in ("tried", "rests_on", "tainted_by") if name in found}
    return found


def _restored(stored: Mapping[str, Any]) -> StepRun:
    known = dict(stored)
    if "output" in known:
        known["output"] = Output(**known["output"])
    if "failure" in known:
        known["failure"] = Failure.model_validate(known["failure"])
    if "check" in known:
        known["check"] = Check.of_row(known["check"])
    known |= {name: tuple(known[name]) for name in ("tried", "rests_on", "tainted_by") if name in known}
    return StepRun(**known)
