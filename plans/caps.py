"""Whether a run's limits let it do what it is about to do; which one is in the way, and how high it would have to be.

Pure: the same limits and figures always give the same answer. What stops a run once stops it until that limit is
raised, for nothing that is counted here ever becomes less by going on.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from plans.limits import Limits, Usage

LimitName = Literal[
    "max_steps", "max_for_each", "max_total_attempts", "max_replans", "max_wall_s", "max_tokens", "max_cost",
    "max_repeats",
]  # fmt: skip

ROUNDING = 1e-9
"""What sums of money may be off by, as a share."""
TOKENS_STEP = 1_000
"""Token limits are proposed in thousands."""


class Hit(BaseModel):
    """A limit that is in the way: `code` is one of `plans.failure`, `message` a sentence that says what is used up, and
    `needed` the value from which on the limit would let this very thing happen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: LimitName
    code: str
    message: str
    needed: float


class Bill(BaseModel):
    """What a question to a model may cost at most: tokens of prompt and answer, and money."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt_tokens + self.completion_tokens


def time_hit(limits: Limits, elapsed_s: float, wait_s: float = 0.0) -> Hit | None:
    """Whether the run's time is over, or will be when it has waited so many seconds."""
    cap = limits.max_wall_s
    if cap is None or elapsed_s + wait_s < cap:
        return None
    said = f"the run has used its {cap:g} s"
    if elapsed_s < cap:
        said = f"the run has {cap - elapsed_s:.0f} s of its {cap:g} s left, and would have to wait {wait_s:.0f} s"
    return Hit(limit="max_wall_s", code="LIMIT_TIME", message=said, needed=elapsed_s + wait_s + 1.0)


def spending_hit(limits: Limits, spent: Usage) -> Hit | None:
    """Whether tokens or money are used up, whatever is to be done next."""
    if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
        said = f"the run has used {spent.tokens:,} tokens; its limit is {limits.max_tokens:,}"
        return Hit(limit="max_tokens", code="LIMIT_TOKENS", message=said, needed=spent.tokens + 1)
    if limits.max_cost is not None and spent.cost >= limits.max_cost:
        said = f"the run has cost {spent.cost:.6g}; its limit is {limits.max_cost:g}"
        return Hit(limit="max_cost", code="LIMIT_COST", message=said, needed=spent.cost * 1.01)
    return None


def question_hit(limits: Limits, used: Usage, bill: Bill) -> Hit | None:
    """Whether a question that may cost so much fits into what is left. `used` counts what is reserved for others."""
    if limits.max_tokens is not None and used.tokens + bill.tokens > limits.max_tokens:
        left = max(0, limits.max_tokens - used.tokens)
        said = f"the next question to a model may take {bill.tokens:,} tokens, and {left:,} of {limits.max_tokens:,} "
        needed = used.tokens + bill.tokens
        return Hit(limit="max_tokens", code="LIMIT_TOKENS", message=f"{said}are left", needed=needed)
    if limits.max_cost is not None and used.cost + bill.cost > limits.max_cost * (1 + ROUNDING):
        left_over = max(0.0, limits.max_cost - used.cost)
        said = f"the next question to a model may cost {bill.cost:.6g}, and {left_over:.6g} of {limits.max_cost:g} "
        return Hit(limit="max_cost", code="LIMIT_COST", message=f"{said}is left", needed=used.cost + bill.cost)
    return None


def attempt_hit(limits: Limits, attempts: int) -> Hit | None:
    """Whether one more attempt of a step may be made, after so many of the run that have been made or are under way."""
    cap = limits.max_total_attempts
    if cap is None or attempts < cap:
        return None
    said = f"the run has made {attempts} attempts; its limit is {cap}"
    return Hit(limit="max_total_attempts", code="LIMIT_ATTEMPTS", message=said, needed=attempts + 1)


def replan_hit(limits: Limits, used: Usage) -> Hit | None:
    """Whether the plan may be changed by a model once more, in one step or as a whole."""
    cap, made = limits.max_replans, used.local_replans + used.global_replans
    if cap is None or made < cap:
        return None
    said = f"the plan has been changed {made} times; the run's limit is {cap}"
    return Hit(limit="max_replans", code="LIMIT_REPLANS", message=said, needed=made + 1)


def repeat_hit(limits: Limits, name: str, times: int) -> Hit | None:
    """Whether a call that has given the same result so many times, with nothing new in between, may be made again."""
    cap = limits.max_repeats
    if times < cap:
        return None
    said = f"{name} has been called {times} times with the same arguments and has given the same result each time"
    return Hit(limit="max_repeats", code="NO_PROGRESS", message=f"{said}; nothing new has come of it", needed=times + 1)


def steps_hit(limits: Limits, steps: int) -> Hit | None:
    """Whether a plan may have so many steps, those of earlier revisions that have run and are gone among them."""
    if steps <= limits.max_steps:
        return None
    said = f"the run would have {steps} steps, over all revisions of its plan; its limit is {limits.max_steps}"
    return Hit(limit="max_steps", code="LIMIT_STEPS", message=said, needed=steps)


def elements_hit(limits: Limits, step_id: str, elements: int) -> Hit | None:
    """Whether a `for_each` step may go over so many elements."""
    if elements <= limits.max_for_each:
        return None
    said = f"{step_id} would run {elements} times; the limit is {limits.max_for_each} (--limit max_for_each=N)"
    return Hit(limit="max_for_each", code="LIMIT_STEPS", message=said, needed=elements)


def infeasible_hit(limits: Limits, attempts: int, steps: int) -> Hit | None:
    """Whether so many steps can be run, each once, after so many attempts."""
    cap = limits.max_total_attempts
    if cap is None or attempts + steps <= cap:
        return None
    said = f"{steps} steps are to run, and the run may make {max(0, cap - attempts)} more attempts"
    return Hit(limit="max_total_attempts", code="LIMIT_ATTEMPTS", message=said, needed=attempts + steps)


def proposed(limits: Limits, hit: Hit) -> float | int:
    """A value of the limit with which the run can go on for a while: twice what it is, and what it needs at least."""
    cap = getattr(limits, hit.limit) or 0
    if hit.limit in ("max_steps", "max_for_each"):
        return math.ceil(hit.needed)
    if hit.limit == "max_replans":
        return max(cap + 1, math.ceil(hit.needed))
    wanted = max(2.0 * cap, hit.needed)
    if hit.limit == "max_tokens":
        return math.ceil(wanted / TOKENS_STEP) * TOKENS_STEP
    if hit.limit == "max_cost":
        return float(f"{wanted * 1.01:.3g}")
    return math.ceil(wanted)
