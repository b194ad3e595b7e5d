"""What is left to try for a failed step: its attempts, its tool's fallbacks, replans, and what its template says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.inheritance import is_inherited
from nodes.step_run import base_id
from nodes.verdicts import Standing
from plans.caps import replan_hit
from plans.failure import Failure
from plans.moves import SETTLED
from plans.tolerance import can_do_without, gone_on_without
from tools.fallbacks import labelled

if TYPE_CHECKING:
    from nodes.session import Session


def standing_of(session: Session, unit: str, failure: Failure, *, unplannable: bool = False) -> Standing:
    """What the step run has used up and what is left. `unplannable` says that no plan could be made that mends it: then
    a person may be asked for one, whatever failed."""
    step_id = base_id(unit)
    step = session.step(step_id)
    run = session.fold.run(unit)
    limits = session.head.limits
    tool = session.engine.registry.get(run.tool or step.tool or "")
    # Children have had their tries and alternatives: what they came to is not changed by asking their parent again.
    once = step_id in session.fold.expansions and unit == step_id
    ended = run.stand_in is not None and run.stand_in.kind == "code"
    single = once or ended or (tool is not None and tool.spec.critical)
    return Standing(
        tries=run.tries,
        max_attempts=1 if single else limits.max_attempts,
        resendable=tool is not None and tool.effect in ("idempotent", "transactional") and not is_inherited(run),
        alternative=None if once or ended else next_alternative(session, unit, failure),
        can_replan=session.engine.planner is not None,
        local_replans_left=limits.max_local_replans - session.fold.local_replans[step_id],
        global_replans_left=limits.max_global_replans - session.fold.global_replans,
        is_child=unit != step_id,
        tolerated=unit != step_id or _tolerated(session, step_id) or _is_strange(session, step_id, failure),
        stands_in=bool(run.tried),
        needed=unit == step_id and not (_tolerated(session, step_id) and gone_on_without(session.plan.steps, step_id)),
        simpler_plan=has_simpler_plan(session),
        asks=session.approve == "ask" and (unplannable or is_critical(session, unit)),
    )


def may_plan_anew(session: Session) -> bool:
    """Whether the rest of the plan may be written anew once more; under the limits that a caller goes on with, which
    stand in no row yet when a run is opened."""
    limits, fold = session.engine.limits.get(session.head_run_id, session.head.limits), session.fold
    left = fold.global_replans < limits.max_global_replans and replan_hit(limits, fold.usage) is None
    return session.engine.planner is not None and left


def is_critical(session: Session, unit: str) -> bool:
    """Whether a person has to see to it when nothing mends this step: its tool or the run's template says so."""
    tool = session.engine.registry.get(session.fold.run(unit).tool or session.step(base_id(unit)).tool or "")
    return session.fold.critical or (tool is not None and tool.spec.critical)


def has_simpler_plan(session: Session) -> bool:
    """Whether the run's template names a plan for when nothing mends its own. It is turned to once, and not once the
    person who gave the goal has asked for something else."""
    fold = session.fold
    return fold.on_exhausted is not None and not fold.simplified and not fold.instructions


def asks_about_plans(session: Session) -> bool:
    """Whether a person is asked where no plan could be made, before the run ends."""
    return session.approve == "ask" and session.engine.options.on_unplannable == "ask"


def next_alternative(session: Session, unit: str, failure: Failure) -> str | None:
    """The name of the next fallback that was not tried yet, in their order; where the code asks for what is kept, that
    comes first. None once an effect may have happened, whatever was found out about it since."""
    run = session.fold.run(unit)
    tool = session.engine.registry.get(session.step(base_id(unit)).tool or "")
    if tool is None or run.in_doubt is not None or run.acted:
        return None
    known = session.engine.registry
    declared = labelled(tool.spec.fallbacks)
    left = [name for name, each in declared.items() if name not in run.tried and (not each.tool or each.tool in known)]
    if failure.suggested_action == "use_cache_fallback":
        left.sort(key=lambda name: declared[name].kind != "cached")
    return next(iter(left), None)


def _is_strange(session: Session, step_id: str, failure: Failure) -> bool:
    """Whether a person has refused what strangers' text may have brought into the plan: that takes nothing else of the
    plan with it, or such text could end what it cannot change."""
    return failure.code in ("REJECTED", "APPROVAL_EXPIRED") and step_id in session.fold.swayed


def _tolerated(session: Session, step_id: str) -> bool:
    """Whether the run can go on without this step: everything that depends on it says so, or nothing does."""
    return can_do_without(session.plan.steps, step_id, lambda name: session.fold.status(name) in SETTLED)
