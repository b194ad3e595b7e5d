"""Fourth layer: transport retries within one attempt of a step, only where a second call cannot double an effect.

How many calls retries, attempts, alternatives and replans can come to together is said in docs/retries.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tools.outcome import Call, CallFailure, Outcome, Proceed
from tools.spec import RETRIED_EFFECTS

if TYPE_CHECKING:
    from tenacity import RetryCallState

REPEATABLE = frozenset({"TIMEOUT", "RATE_LIMITED", "UNAVAILABLE", "CONFLICT", "POOL_FULL"})
"""Codes that a moment later may be gone. An open breaker is not among them: it says when to come back."""


async def retry_transport(call: Call, proceed: Proceed) -> Outcome:
    """The first outcome that is final. No retry is started that would find no time left before the deadline."""
    outcome = await proceed(call)
    if call.spec.retry.max_attempts == 1 or call.spec.effect not in RETRIED_EFFECTS or not _repeatable(outcome):
        return outcome
    return await _repeated(call, proceed, outcome)


def _repeatable(outcome: Outcome) -> bool:
    return isinstance(outcome, CallFailure) and outcome.failure.code in REPEATABLE


async def _repeated(call: Call, proceed: Proceed, first: Outcome) -> Outcome:
    from tenacity import AsyncRetrying, retry_if_result

    outcomes, in_doubt = [first], False

    async def again() -> Outcome:
        # The outcome of the call that was already made counts as the first attempt's. A call that may have had its
        # effect stays in doubt whatever becomes of the next one: that one may never have arrived.
        nonlocal in_doubt
        outcome = outcomes.pop() if outcomes else await proceed(call)
        in_doubt = in_doubt or (isinstance(outcome, CallFailure) and outcome.in_doubt)
        return outcome

    retrying = AsyncRetrying(
        sleep=call.ports.clock.sleep,
        wait=lambda state: _wait(call, state),
        stop=lambda state: _exhausted(call, state),
        retry=retry_if_result(_repeatable),
        retry_error_callback=_last,
    )
    outcome: Outcome = await retrying(again)
    return replace(outcome, in_doubt=True) if in_doubt and isinstance(outcome, CallFailure) else outcome


def _wait(call: Call, state: RetryCallState) -> float:
    """The policy's wait, or the one that the other side asked for where that is longer."""
    policy = call.spec.retry
    interval = min(policy.initial_interval * policy.backoff_factor ** (state.attempt_number - 1), policy.max_interval)
    asked = _last(state)
    least = asked.failure.delay_s if isinstance(asked, CallFailure) and asked.failure.delay_s else 0.0
    return max(interval, least) + call.ports.clock.uniform(0.0, policy.jitter)


def _exhausted(call: Call, state: RetryCallState) -> bool:
    starts_at = call.ports.clock.monotonic() + state.upcoming_sleep
    return state.attempt_number >= call.spec.retry.max_attempts or starts_at >= call.ctx.deadline


def _last(state: RetryCallState) -> Outcome:
    assert state.outcome is not None  # noqa: S101 (tenacity sets it before it asks)
    outcome: Outcome = state.outcome.result()
    return outcome
