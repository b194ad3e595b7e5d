"""What a person is asked when nothing mends a run: about a plan that cannot be made, or about a step that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nodes.asking import record_request
from nodes.events import Event
from nodes.state import Planning
from nodes.step_run import base_id
from nodes.stopping import finished
from plans.decisions import ABOUT_PLAN
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import PlanDraft
from plans.values import JSON, sha256_of
from plans.wording import counted

if TYPE_CHECKING:
    from nodes.session import Session

MOST_FAULTS = 8
"""Faults of one plan that are told to a person; more say nothing new."""


async def ask_about_plan(session: Session, planning: Planning, faults: Sequence[Fault]) -> None:
    """Record the question what to do about a goal, or a failure, for which no plan could be made."""
    args: dict[str, JSON] = {
        "goal": session.full_goal,
        "faults": [str(fault) for fault in faults],
        "draft": _shown(planning.refused),
    }
    if planning.step_id is not None:
        args["step"] = base_id(planning.step_id)
        if failure := session.fold.run(planning.step_id).failure:
            args["failure"] = failure.message
    await record_request(session, ABOUT_PLAN, "question", "plan", args, "low", refusal(faults))


async def open_ticket(session: Session, unit: str, failure: Failure) -> str:
    """Record what a person has to see to: a failure in something critical that nothing mends. Gives the ticket's id,
    which is the same whenever this is asked about this attempt."""
    ticket = f"T-{sha256_of([session.head_run_id, unit, failure.attempt])[:8]}"
    args: dict[str, JSON] = {
        "ticket": ticket,
        "failure": {"code": failure.code, "message": failure.message},
        "tried": list(tried(session, unit)),
        "finished": list(finished(session.fold)),
    }
    tool = failure.tool or session.step(base_id(unit)).tool or session.step(base_id(unit)).action
    await record_request(session, unit, "ticket", tool, args, "high", f"ticket {ticket}: {failure.message}")
    session.emit(Event(kind="ticket", step_id=unit, tool=tool, status=ticket, message=failure.message))
    return ticket


def refusal(faults: Sequence[Fault]) -> str:
    """Why a goal is not pursued, as a sentence for whoever gave it."""
    told = [_plainly(fault) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        told.append(f"and {counted(len(faults) - MOST_FAULTS, 'fault')} more")
    return f"I cannot do this because no plan for it can be used: {'; '.join(told)}"


def _plainly(fault: Fault) -> str:
    where = f"step {fault.step}: " if fault.step and fault.step not in fault.message else ""
    return f"{where}{fault.message} ({fault.code})"


def tried(session: Session, unit: str) -> Iterable[str]:
    """What the run has done about a failure, from the nearest to the furthest."""
    run, fold = session.fold.run(unit), session.fold
    yield counted(max(run.attempt, 1), "attempt")
    for name in run.tried:
        yield f"the fallback {name}"
    if local := fold.local_replans[base_id(unit)]:
        yield counted(local, "local replan")
    if fold.global_replans:
        yield counted(fold.global_replans, "global replan")
    if fold.simplified:
        yield "the template's simplified plan"


def _shown(draft: PlanDraft | None) -> Any:
    """A draft as a person may edit it."""
    return None if draft is None else draft.model_dump(mode="json", exclude_defaults=True)
