"""What to do about one failure: a pure function over one table of next moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nodes.state import Verdict
from plans.failure import CODES, Failure, FailureClass, VerdictName

BACKOFF_S = (1.0, 2.0, 4.0)
"""Waits before the second, third and each later attempt of a step."""

SEVERITY: tuple[VerdictName, ...] = ("next", "ask", "retry", "fallback", "local_replan", "global_replan", "finish")
"""From the mildest to the most severe; of several verdicts the most severe is taken first."""

MOVES: Mapping[FailureClass, tuple[VerdictName, ...]] = MappingProxyType(
    {
        "soft": ("retry", "fallback", "local_replan", "global_replan"),
        "hard": ("local_replan", "fallback", "global_replan"),
        "semantic": ("global_replan",),
        "unknown": ("retry", "ask"),
        "policy": (),
        "limit": (),
    }
)
"""For each class of failure what is tried, in order; after the last of them the step has failed for good."""

FIRST: Mapping[str, tuple[VerdictName, ...]] = MappingProxyType(
    {
        "BREAKER_OPEN": ("fallback", "retry", "local_replan", "global_replan"),
        "TOOL_DISABLED": ("fallback", "local_replan", "global_replan"),
        "REPEATED_FAILURE": ("fallback", "local_replan", "global_replan"),
        "MODEL_NOT_CONFIGURED": (),
        "PLAN_INVALID": (),
    }
)
"""Codes whose order differs from their class's."""

_NEXT_ALTERNATIVE: tuple[VerdictName, ...] = ("fallback", "local_replan", "global_replan")
OF_ALTERNATIVES: Mapping[str, tuple[VerdictName, ...]] = MappingProxyType(
    {
        "INVALID_ARGS": _NEXT_ALTERNATIVE,
        "UNRESOLVED_REFERENCE": _NEXT_ALTERNATIVE,
        "NOT_PERMITTED": _NEXT_ALTERNATIVE,
        "RULE_VIOLATED": _NEXT_ALTERNATIVE,
        "REJECTED": ("fallback",),
        "APPROVAL_EXPIRED": ("fallback",),
    }
)
"""Codes that say of an alternative only that it may not or cannot stand in: the next one is tried first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a failed step run stands: what it has used up, and what is left to try. `stands_in` says that it was not
    its own tool that failed but a fallback of it."""

    tries: int
    max_attempts: int
    resendable: bool
    alternative: str | None
    can_replan: bool
    local_replans_left: int
    global_replans_left: int
    is_child: bool
    tolerated: bool
    stands_in: bool = False


def decide(failure: Failure, standing: Standing, *, now: float) -> Verdict:
    """The verdict on one failure. `now` is wall time in seconds; a retry's `not_before` is counted from it."""
    for name in _moves(failure.code, standing):
        if _possible(name, failure, standing):
            return _verdict(name, failure, standing, now)
    of_the_plan = CODES[failure.code].class_ == "limit" or failure.code == "PREMISE_BROKEN"
    if of_the_plan or not standing.tolerated:
        return _verdict("finish", failure, standing, now)
    return _verdict("next", failure, standing, now)


def _moves(code: str, standing: Standing) -> tuple[VerdictName, ...]:
    if standing.stands_in and code in OF_ALTERNATIVES:
        return OF_ALTERNATIVES[code]
    return FIRST.get(code, MOVES[CODES[code].class_])


def most_severe(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The verdict that is applied first; the earliest of equals."""
    return max(verdicts, key=lambda verdict: SEVERITY.index(verdict.verdict), default=None)


def backoff_s(failure: Failure, tries: int) -> float:
    """How long to wait before the next attempt: what the failure asks for, and never less than the step's backoff."""
    if CODES[failure.code].action == "retry_immediately":
        return failure.delay_s or 0.0
    return max(failure.delay_s or 0.0, BACKOFF_S[min(tries, len(BACKOFF_S)) - 1])


def _possible(name: VerdictName, failure: Failure, standing: Standing) -> bool:
    match name:
        case "retry":
            may = failure.code != "UNKNOWN_OUTCOME" or standing.resendable
            return may and standing.tries < standing.max_attempts
        case "fallback":
            return standing.alternative is not None
        case "local_replan":
            return standing.can_replan and standing.local_replans_left > 0 and not standing.is_child
        case "global_replan":
            return standing.can_replan and standing.global_replans_left > 0 and not standing.is_child
        case _:
            return True


def _verdict(name: VerdictName, failure: Failure, standing: Standing, now: float) -> Verdict:
    return Verdict(
        verdict=name,
        step_id=failure.step_id or "",
        attempt=failure.attempt,
        code=failure.code,
        reason=failure.message,
        not_before=now + backoff_s(failure, standing.tries) if name == "retry" else None,
        alternative=standing.alternative if name == "fallback" else None,
    )
