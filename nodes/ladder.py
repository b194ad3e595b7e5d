"""What follows when a draft cannot be used: its author again, other repairs, a template, a person, an honest refusal.

Every rung is a row before the node returns: the failed repair's verdict gives way to the next one, and whoever enters
again after a crash finds where the run stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from nodes.means import asks_about_plans, is_critical, standing_of
from nodes.questions import ask_about_plan, open_ticket, refusal
from nodes.recording import record_verdict
from nodes.state import Drafted, Planning, Verdict
from nodes.stopping import limits_in_the_way, stopped_by, within_limits
from nodes.verdicts import Move, decide, most_severe
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import MODEL_SOURCES

if TYPE_CHECKING:
    from nodes.session import Session

NOT_WORTH_ASKING_AGAIN = frozenset({"MODEL_NOT_CONFIGURED", "MODEL_FAILED", "PLAN_REFUSED", "INVALID_INPUT"})
"""Faults that the same model would give again, and that no answer of a person mends: they are mended where Surestep is
set up or the goal is given; and a model that declines is not argued with."""
FAILED_REPAIR: Mapping[str, Move] = MappingProxyType(
    {"local": "local_replan", "global": "global_replan", "degraded": "simpler_plan"}
)
"""Which repair has come to nothing when a draft for this purpose cannot be used."""
CODE_OF: Mapping[str, str] = MappingProxyType(
    {
        "MODEL_FAILED": "MODEL_ANSWER_INVALID",
        "MODEL_NOT_CONFIGURED": "MODEL_NOT_CONFIGURED",
        "INVALID_INPUT": "INVALID_INPUT",
    }
)
"""What a run fails with where one of these faults is the reason; anything else is PLAN_INVALID."""

Answered = Literal["ready", "give_up"]


def is_answered(session: Session, planning: Planning) -> bool:
    """Whether what this planning is about has its answer: a stored revision, a question to a person, or the decision to
    mend it another way. Then the process died after that."""
    fold = session.fold
    if planning.purpose == "subgoal":
        return planning.step_id not in fold.reached
    waits = any(v.key == planning.trigger and planning_for(v).purpose == planning.purpose for v in fold.queue)
    return not waits and (fold.plan is not None or fold.question is not None)


def is_refused(session: Session) -> bool:
    """Whether the run is to end because of a plan that could not be made."""
    return any(verdict.verdict == "finish" and not verdict.step_id for verdict in session.fold.queue)


def planning_for(verdict: Verdict) -> Planning:
    """The planning that a verdict asks for."""
    anew: Literal["global", "degraded"] = "degraded" if verdict.degraded else "global"
    return Planning(
        purpose="local" if verdict.verdict == "local_replan" else anew,
        trigger=verdict.key,
        step_id=verdict.step_id or None,
        instruction=verdict.reason if verdict.code == "NEW_INSTRUCTION" else None,
    )


def wanted(session: Session, planning: Planning) -> Planning:
    """The planning, or what the journal knows better: of a run without a plan its checkpoints may not have what a
    person has said since."""
    if planning.trigger or session.fold.plan is not None:
        return planning
    top = most_severe(session.fold.queue)
    return planning_for(top) if top is not None and top.verdict == "global_replan" else planning


async def next_rung(session: Session, drafted: Drafted, planning: Planning, errors: Sequence[Fault]) -> dict[str, Any]:
    """What is done about a draft with these faults: the update that says where the run goes."""
    planning = planning.model_copy(update={"refused": drafted.draft or planning.refused})
    if _worth_asking_again(session, drafted, planning, errors):
        again = planning.model_copy(update={"tries": planning.tries + 1})
        return {"planning": again, "edge": "repatch" if planning.purpose == "local" else "redraft"}
    if hits := limits_in_the_way(session.fold, drafted.draft, errors):  # there is nothing to mend: a limit is too low
        for hit in hits:
            await stopped_by(session, hit)
        return {"edge": "give_up"}
    if planning.purpose == "subgoal":  # a step fails, and what is done about that is decided like about any other
        return {"edge": "give_up"}
    trigger = next((verdict for verdict in session.fold.queue if verdict.key == planning.trigger), None)
    if trigger is not None and trigger.step_id and trigger.step_id in session.fold.steps:
        unplannable = _may_be_asked(session, drafted, planning, errors)
        return await _next_repair(session, trigger, planning, errors, unplannable=unplannable)
    if _template_s_turn(drafted, planning, errors):
        return {"planning": planning.model_copy(update={"by_template": True}), "edge": "redraft"}
    if _may_be_asked(session, drafted, planning, errors):
        await _asked(session, trigger, planning, errors)
        return {"planning": Planning(), "edge": "ready"}
    return await _refused(session, errors)


def _worth_asking_again(session: Session, drafted: Drafted, planning: Planning, errors: Sequence[Fault]) -> bool:
    tries_left = planning.tries < session.head.limits.max_redrafts
    return drafted.source in MODEL_SOURCES and tries_left and not _is_hopeless(errors)


def _is_hopeless(errors: Sequence[Fault]) -> bool:
    return any(fault.code in NOT_WORTH_ASKING_AGAIN for fault in errors)


def _template_s_turn(drafted: Drafted, planning: Planning, errors: Sequence[Fault]) -> bool:
    """Whether a template may do what no model could plan; not what a model has declined to plan."""
    first = planning.purpose == "first" and not planning.by_template
    return first and drafted.source == "model" and all(fault.code != "PLAN_REFUSED" for fault in errors)


def _may_be_asked(session: Session, drafted: Drafted, planning: Planning, errors: Sequence[Fault]) -> bool:
    """Whether a person is asked about it. Faults of a plan that was given are for whoever gave it."""
    by_us = drafted.source in MODEL_SOURCES or drafted.source == "degraded" or planning.by_template
    return by_us and asks_about_plans(session) and not _is_hopeless(errors)


async def _next_repair(
    session: Session, failed: Verdict, planning: Planning, errors: Sequence[Fault], *, unplannable: bool
) -> dict[str, Any]:
    """A repair of one step has come to nothing: what the table of verdicts has behind it."""
    unit = failed.step_id
    failure = session.fold.run(unit).failure or Failure(code=failed.code, message=failed.reason, step_id=unit)
    standing = standing_of(session, unit, failure, unplannable=unplannable)
    verdict = decide(failure, standing, now=session.clock.wall(), after=FAILED_REPAIR[planning.purpose])
    verdict = await within_limits(session, verdict.model_copy(update={"attempt": failed.attempt}))
    if session.fold.hits:
        await record_verdict(session, verdict, unit)
        return {"edge": "give_up"}
    if verdict.verdict == "finish" or (verdict.verdict == "next" and standing.needed):
        return await _refused(session, errors)
    if verdict.verdict == "ask" and is_critical(session, unit):
        await open_ticket(session, unit, failure)
    elif verdict.verdict == "ask":
        await ask_about_plan(session, planning, errors)
    await record_verdict(session, verdict, unit)
    if verdict.verdict == "next":
        session.scheduling().moved(unit)
    return {"planning": Planning(), "edge": "ready"}


async def _asked(session: Session, trigger: Verdict | None, planning: Planning, errors: Sequence[Fault]) -> None:
    """The question first, then the verdict that says so: one without its question would wait for nobody."""
    await ask_about_plan(session, planning, errors)
    if trigger is not None:
        asks = trigger.model_copy(update={"verdict": "ask", "reason": refusal(errors)})
        await record_verdict(session, asks, trigger.step_id or None)


async def _refused(session: Session, errors: Sequence[Fault]) -> dict[str, Any]:
    """The run ends, and its answer says why."""
    code = next((CODE_OF[error.code] for error in errors if error.code in CODE_OF), "PLAN_INVALID")
    reason = refusal(errors) if code == "PLAN_INVALID" else errors[0].message
    verdict = Verdict(verdict="finish", step_id="", attempt=0, code=code, reason=reason)
    await record_verdict(session, verdict)
    return {"edge": "give_up"}
