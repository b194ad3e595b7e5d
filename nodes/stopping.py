"""A run that a limit stops: which one is written down before what it has kept from starting fails for it, and in the
end it is told what is finished, why it stopped, and which limit would have to be higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.fold_spending import settled_usage
from plans.caps import (
    Hit,
    attempt_hit,
    infeasible_hit,
    proposed,
    repeat_hit,
    replan_hit,
    spending_hit,
    steps_hit,
    time_hit,
)
from plans.faults import Fault
from plans.limits import Limits
from plans.moves import SETTLED
from plans.plan import PlanDraft
from plans.sameness import same_call
from plans.values import JSON
from plans.wording import listed

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from nodes.session import Session
    from nodes.state import Verdict
    from tools.tool import Tool

OF_LIMITS = frozenset({"TOO_MANY_STEPS", "LIMIT_INFEASIBLE"})
"""Faults that a higher limit mends."""


async def stopped_by(session: Session, hit: Hit) -> None:
    """Write down that this limit stops the run."""
    if hit.limit not in session.fold.hits:
        await session.record("limit", body={"hit": hit.model_dump()})


async def within_limits(session: Session, verdict: Verdict) -> Verdict:
    """The verdict, or the run's end where a limit forbids it: a wait that is longer than the time that is left, one
    change of the plan too many. Under a higher limit the failure is decided about again."""
    limits, hit = session.head.limits, None
    if verdict.verdict == "retry" and verdict.not_before is not None:
        hit = time_hit(limits, session.elapsed_s(), max(0.0, verdict.not_before - session.clock.wall()))
    elif verdict.verdict == "local_replan" or (verdict.verdict == "global_replan" and verdict.counted):
        hit = replan_hit(limits, session.fold.usage)
    if hit is None:
        return verdict
    await stopped_by(session, hit)
    reason = f"{hit.message}; before that: {verdict.reason}"
    ended = {"verdict": "finish", "code": hit.code, "reason": reason, "not_before": None}
    return verdict.model_copy(update=ended)


def start_hit(fold: RunFold, elapsed_s: float, under_way: int) -> Hit | None:
    """The limit that keeps any step from starting, with so many attempts under way. What is reserved for questions that
    are out does not count: most of it comes back, and no tool spends it."""
    limits, attempts = limits_of(fold), fold.usage.attempts + under_way
    return time_hit(limits, elapsed_s) or spending_hit(limits, settled_usage(fold)) or attempt_hit(limits, attempts)


def circle_hit(fold: RunFold, tool: Tool | None, args: Mapping[str, JSON]) -> Hit | None:
    """The limit that keeps a call from being made once more: the same, with the same result again and again, plan after
    plan, leads nowhere. An effect asks a person."""
    if tool is None or tool.effect != "read" or fold.plan is None or fold.plan.revision == 1:
        return None
    times = fold.progress.times(same_call(tool.name, args), fold.plan.revision)
    return repeat_hit(limits_of(fold), tool.name, times)


def limits_of(fold: RunFold) -> Limits:
    """The limits of the run."""
    return fold.head.limits if fold.head else Limits()


def infeasible(fold: RunFold, draft: PlanDraft) -> Hit | None:
    """Whether a plan has more steps to run than the run may make attempts. Steps that may be left out by their own
    condition are given the benefit of the doubt."""
    to_run = sum(step.when is None and fold.status(step.id) not in SETTLED for step in draft.steps)
    return infeasible_hit(limits_of(fold), fold.usage.attempts, to_run)


def limits_in_the_way(fold: RunFold, draft: PlanDraft | None, errors: Sequence[Fault]) -> list[Hit]:
    """The limits for which a draft cannot be used that has no other faults."""
    codes = {fault.code for fault in errors}
    if draft is None or not codes <= {*OF_LIMITS, "NO_PROGRESS"} or codes.isdisjoint(OF_LIMITS):
        return []
    found = (steps_hit(limits_of(fold), fold.progress.gone + len(draft.steps)), infeasible(fold, draft))
    return [hit for hit in found if hit is not None]


def open_hits(fold: RunFold) -> list[Hit]:
    """The limits that have kept the run from going on; none of them matters where all its steps have ended well."""
    if fold.plan is not None and all(fold.status(step.id) in SETTLED for step in fold.plan.steps):
        return []
    return list(fold.hits.values())


def higher_limits(fold: RunFold) -> dict[str, float | int]:
    """For each limit that has stopped the run a value with which it would go on."""
    return {hit.limit: proposed(limits_of(fold), hit) for hit in fold.hits.values()}


def failed_because(fold: RunFold, why: Sequence[str]) -> str:
    """What a person reads of a run that has failed: why, and what is finished all the same."""
    done = finished(fold)
    return "\n".join(("; ".join(why), *([f"Finished: {listed(done)}."] if done else [])))


def finished(fold: RunFold) -> list[str]:
    """The steps that are done, each by its id and what it is about."""
    steps = fold.plan.steps if fold.plan is not None else ()
    done = [step for step in steps if fold.status(step.id) == "done"]
    return [f"{step.id} ({step.title or step.tool or step.action})" for step in done]


def account(fold: RunFold, why: Sequence[str]) -> str:
    """What a person reads of a run that a limit has stopped."""
    told = [f"Stopped by a limit: {'; '.join(why)}."]
    if fold.plan is None:
        return f"{told[0]} There is no plan yet."
    done = [step.id for step in fold.plan.steps if fold.status(step.id) == "done"]
    left = [step.id for step in fold.plan.steps if fold.status(step.id) not in SETTLED]
    told.append(f"Finished: {listed(done)}." if done else "No step is finished.")
    if left:
        told.append(f"Still to be done: {listed(left)}.")
    return " ".join(told)
