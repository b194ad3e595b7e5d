"""Layer before the retries: a call that failed again and again with the same arguments is not made once more."""

from __future__ import annotations

from typing import TypeGuard

from plans.sharing import FailedCalls
from tools.cache import key_of
from tools.outcome import Call, CallFailure, Outcome, Proceed, Success, refused
from tools.spec import Repeats

SAYING_NOTHING = frozenset({"UNKNOWN_OUTCOME", "POOL_FULL"})
"""Codes that are no failure of this call: nobody knows, or there was no thread for it."""


async def refuse_repetition(call: Call, proceed: Proceed) -> Outcome:
    """REPEATED_FAILURE instead of a call whose last attempts all failed within a while, in whatever run or worker;
    `delay_s` says when it may be tried again. Attempts are counted, not the calls that they retried; a success starts
    the count anew. A run that grants a step more tries than the tool's `repeats` has failures is given them."""
    failures, policy = call.ports.failures, call.spec.repeats
    if failures is None or policy is None:
        return await proceed(call)
    known = await failures.known()
    key = key_of(call) if known else ""
    if (before := known.get(key)) is not None:
        least = max(policy.failures, call.tries)
        wait = wait_s(before, least, policy, call.ports.clock.monotonic())
        if wait > 0:
            return refused(call, "REPEATED_FAILURE", _said(call, before, least, wait), wait, before.code)
    outcome = await proceed(call)
    if counts(outcome):
        await failures.note(key or key_of(call), call.tool.name, outcome.failure.code, policy.within_s)
    elif known and isinstance(outcome, Success) and (key := key or key_of(call)) in known:
        await failures.clear(key)
    return outcome


def wait_s(before: FailedCalls, least: int, policy: Repeats, now: float) -> float:
    """Seconds until the last `least` failures no longer lie within the policy's time; 0 where they do not now."""
    if len(before.at) < least:
        return 0.0
    return max(0.0, before.at[-least] + policy.within_s - now)


def counts(outcome: Outcome) -> TypeGuard[CallFailure]:
    """Whether an attempt has failed: the tool was called, and is known not to have done what it was called for."""
    return (
        isinstance(outcome, CallFailure)
        and outcome.called
        and not outcome.in_doubt
        and outcome.failure.code not in SAYING_NOTHING
    )


def _said(call: Call, before: FailedCalls, least: int, wait: float) -> str:
    name = call.tool.name
    return (
        f"{name} was not called: its last {least} attempts with these arguments failed, the last one with "
        f"{before.code}; it may be tried again in {wait:.0f} s, or after `surestep tools enable {name}`"
    )
