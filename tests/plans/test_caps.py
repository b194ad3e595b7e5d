"""Tests of what a run's limits let it do: the laws, on every limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans import caps
from plans.caps import Bill, Hit
from plans.failure import CODES
from plans.limits import Limits, Usage

Check = Callable[[Limits, int], Hit | None]

CHECKS: dict[str, Check] = {
    "max_wall_s": lambda limits, used: caps.time_hit(limits, float(used), wait_s=float(used % 3)),
    "max_tokens": lambda limits, used: caps.question_hit(
        limits, Usage(prompt_tokens=used), Bill(prompt_tokens=3, completion_tokens=4)
    ),
    "max_cost": lambda limits, used: caps.question_hit(limits, Usage(cost=float(used)), Bill(cost=0.5)),
    "max_total_attempts": caps.attempt_hit,
    "max_replans": lambda limits, used: caps.replan_hit(limits, Usage(local_replans=used - 1, global_replans=1)),
    "max_repeats": lambda limits, used: caps.repeat_hit(limits, "look", used),
    "max_steps": caps.steps_hit,
    "max_for_each": lambda limits, used: caps.elements_hit(limits, "s1", used),
}  # fmt: skip
SPENT: dict[str, Check] = {
    "max_tokens": lambda limits, used: caps.spending_hit(limits, Usage(completion_tokens=used)),
    "max_cost": lambda limits, used: caps.spending_hit(limits, Usage(cost=float(used))),
}
ALL = [*CHECKS.items(), *SPENT.items()]

names = st.sampled_from(ALL)
figures = st.integers(min_value=1, max_value=400)


def under(name: str, cap: float) -> Limits:
    """Limits of which only this one is set."""
    return Limits.model_validate({name: cap})


@given(names, figures, figures, figures)
def test_a_limit_once_hit_stays_hit_until_it_is_raised(
    named: tuple[str, Check], cap: int, used: int, more: int
) -> None:
    """Whatever is spent on top, the same limit is in the way; without a limit nothing ever is."""
    name, check = named
    first = check(under(name, cap), used)
    if first is not None:
        assert check(under(name, cap), used + 3 * more) is not None
        assert (first.limit, CODES[first.code].class_) == (name, "limit")
    if Limits.model_fields[name].default is None:
        assert check(Limits(), used) is None


@given(names, figures, figures)
def test_the_proposed_limit_lets_the_run_go_on(named: tuple[str, Check], cap: int, used: int) -> None:
    """It is a limit that can be set, it is higher, and with it the very thing that was refused is not."""
    name, check = named
    if (hit := check(under(name, cap), used)) is not None:
        higher = caps.proposed(under(name, cap), hit)
        assert higher > cap
        assert check(under(name, higher), used) is None, (hit, higher)


@given(figures, st.lists(st.integers(min_value=1, max_value=60), max_size=12))
def test_questions_that_are_let_through_never_pass_the_limit(cap: int, bills: list[int]) -> None:
    """Reserved one after the other, all that were let through together are within it, and none was refused that
    would have fitted."""
    limits, used = Limits(max_tokens=cap), Usage()
    for tokens in bills:
        bill = Bill(completion_tokens=tokens)
        hit = caps.question_hit(limits, used, bill)
        assert (hit is not None) == (used.tokens + tokens > cap)
        used = used if hit else used.plus(completion_tokens=tokens)
    assert used.tokens <= cap


def test_sums_of_money_are_not_refused_for_their_rounding() -> None:
    """0.1 and 0.2 are within 0.3, which floats do not think."""
    assert caps.question_hit(Limits(max_cost=0.3), Usage(cost=0.1), Bill(cost=0.2)) is None
    assert caps.question_hit(Limits(max_cost=0.3), Usage(cost=0.1), Bill(cost=0.2001)) is not None


@pytest.mark.parametrize(("elapsed", "wait", "words"), [(9.0, 0.0, "has used its 5 s"), (2.0, 4.0, "wait 4 s")])
def test_a_wait_that_does_not_fit_is_no_wait(elapsed: float, wait: float, words: str) -> None:
    """The time is over, or would be before anything happens: the sentence says which."""
    hit = caps.time_hit(Limits(max_wall_s=5.0), elapsed, wait)
    assert hit is not None
    assert words in hit.message
