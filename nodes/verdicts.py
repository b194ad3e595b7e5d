"""What to do about one failure: a pure function over one table of next moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from nodes.state import Verdict
from plans.failure import CODES, Failure, FailureClass, VerdictName

BACKOFF_S = (1.0, 2.0, 4.0)
"""Waits before the second, third and each later attempt of a step."""

SEVERITY: tuple[VerdictName, ...] = ("next", "ask", "retry", "fallback", "local_replan", "global_replan", "finish")
"""From the mildest to the most severe; of several verdicts the most severe is taken first."""

Move = Literal["retry", "fallback", "local_replan", "global_replan", "simpler_plan", "ask", "ticket", "next", "finish"]
"""What can be done. `simpler_plan` is the template's plan for when nothing mends its own, `ticket` a person who is told
what was tried."""

VERDICT_OF: Mapping[Move, VerdictName] = MappingProxyType(
    {
        "retry": "retry",
        "fallback": "fallback",
        "local_replan": "local_replan",
        "global_replan": "global_replan",
        "simpler_plan": "global_replan",
        "ask": "ask",
        "ticket": "ask",
        "next": "next",
        "finish": "finish",
    }
)
"""What each move is called as a verdict."""

_EXHAUSTED: tuple[Move, ...] = ("simpler_plan", "ticket")
MOVES: Mapping[FailureClass, tuple[Move, ...]] = MappingProxyType(
    {
        "soft": ("retry", "fallback", "local_replan", "global_replan", *_EXHAUSTED),
        "hard": ("local_replan", "fallback", "global_replan", *_EXHAUSTED),
        "semantic": ("global_replan", *_EXHAUSTED),
        "unknown": ("retry", "ask"),
        "policy": (),
        "limit": (),
    }
)
"""For each class of failure what is tried, in order; after the last of them the step has failed for good."""

FIRST: Mapping[str, tuple[Move, ...]] = MappingProxyType(
    {
        "BREAKER_OPEN": ("fallback", "retry", "local_replan", "global_replan", *_EXHAUSTED),
        "TOOL_DISABLED": ("fallback", "local_replan", "global_replan", *_EXHAUSTED),
        "REPEATED_FAILURE": ("fallback", "local_replan", "global_replan", *_EXHAUSTED),
        "MODEL_NOT_CONFIGURED": (),
        "PLAN_INVALID": (),
    }
)
"""Codes whose order differs from their class's."""

_NEXT_ALTERNATIVE: tuple[Move, ...] = ("fallback", "local_replan", "global_replan", *_EXHAUSTED)
OF_ALTERNATIVES: Mapping[str, tuple[Move, ...]] = MappingProxyType(
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
    its own tool that failed but a fallback of it, `needed` that the plan has nothing to go on with without it,
    `simpler_plan` that its template has a plan left for that, `asks` that a person is told then."""

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
    needed: bool = False
    simpler_plan: bool = False
    asks: bool = False


def decide(failure: Failure, standing: Standing, *, now: float, after: Move | None = None) -> Verdict:
    """The verdict on one failure. `now` is wall time in seconds; a retry's `not_before` is counted from it. `after` is
    a repair that was decided and came to nothing: what is left are those behind it."""
    for move in _left(_moves(failure.code, standing), after):
        if _possible(move, failure, standing):
            return _verdict(move, failure, standing, now)
    of_the_plan = CODES[failure.code].class_ == "limit" or failure.code == "PREMISE_BROKEN"
    if of_the_plan or not standing.tolerated:
        return _verdict("finish", failure, standing, now)
    return _verdict("next", failure, standing, now)


def _left(moves: tuple[Move, ...], after: Move | None) -> tuple[Move, ...]:
    """The moves behind one; where the failure's own moves have it not, all that is left is what comes behind all."""
    if after is None:
        return moves
    known = moves if after in moves else MOVES["soft"]
    return tuple(move for move in known[known.index(after) + 1 :] if move in moves)


def _moves(code: str, standing: Standing) -> tuple[Move, ...]:
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


def _possible(move: Move, failure: Failure, standing: Standing) -> bool:
    match move:
        case "retry":
            may = failure.code != "UNKNOWN_OUTCOME" or standing.resendable
            return may and standing.tries < standing.max_attempts
        case "fallback":
            return standing.alternative is not None
        case "local_replan":
            return standing.can_replan and standing.local_replans_left > 0 and not standing.is_child
        case "global_replan":
            return standing.can_replan and standing.global_replans_left > 0 and not standing.is_child
        case "simpler_plan":
            return standing.needed and standing.simpler_plan
        case "ticket":
            return standing.needed and standing.asks
        case _:
            return True


def _verdict(move: Move, failure: Failure, standing: Standing, now: float) -> Verdict:
    return Verdict(
        verdict=VERDICT_OF[move],
        step_id=failure.step_id or "",
        attempt=failure.attempt,
        code=failure.code,
        reason=failure.message,
        not_before=now + backoff_s(failure, standing.tries) if move == "retry" else None,
        alternative=standing.alternative if move == "fallback" else None,
        degraded=move == "simpler_plan",
        counted=move != "simpler_plan",
    )
