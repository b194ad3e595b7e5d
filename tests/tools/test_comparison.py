"""Tests of what counts as the same, and of how a difference is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.expressions import InvalidExpression
from plans.shadowing import AGREED, KEPT_DIFFERENCES, Agreement, differed, failed
from tests.tools.calls import failed as a_failure
from tools.comparison import MOST_PLACES, places, same, says
from tools.outcome import Success
from tools.shadows import judged

ONE_OF_EACH = st.sampled_from([AGREED, differed("a", ["x"]), failed("a", "TIMEOUT")])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1, max_size=1), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["a: another value"]),
        ({"a": 1}, {"a": True}, ["a: a boolean instead of a number"]),
        ({"a": 1}, {"a": "1"}, ["a: text instead of a number"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]: another value"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a: 1 elements instead of 2"]),
        ({"a": 1}, {"b": 1}, ["a: missing", "b: new"]),
        ({"x": {"ann@example.com": "s3cret"}}, {"x": {"ann@example.com": "0ther"}}, ["x.*: another value"]),
        ({"result": None}, {"failure": "NOT_FOUND"}, ["failure: new", "result: missing"]),
    ],
)
def test_places_name_where_values_differ_and_never_what_stands_there(ours: Any, theirs: Any, told: list[str]) -> None:
    """Types count as JSON writes them; keys that are content are not repeated."""
    assert places(ours, theirs) == told
    assert same(ours, theirs) == (told == [])


@given(JSON_VALUES, JSON_VALUES)
def test_there_is_a_place_exactly_where_two_values_are_not_the_same(ours: Any, theirs: Any) -> None:
    """No difference without a place, no place without a difference, and never more than a few."""
    found = places({"result": ours}, {"result": theirs})
    assert bool(found) != same(ours, theirs)
    assert len(found) <= MOST_PLACES


@pytest.mark.parametrize(
    ("ours", "theirs", "compare", "found"),
    [
        (Success({"a": 1, "t": 3}), Success({"t": 4, "a": 1}), "a", "agreed"),
        (Success({"a": 1, "t": 3}), Success({"t": 4, "a": 1}), None, "differed"),
        (Success({"a": 1}), Success({"b": 1}), "a", "failed"),
        (Success({"a": 1}), Success({"a": 1}), "typo", "nothing"),
        (Success({"a": 1}), Success({"a": "x"}), "abs(a)", "failed"),
        (Success(1), a_failure("TIMEOUT"), None, "failed"),
        (Success(1), a_failure("NOT_FOUND"), None, "differed"),
        (a_failure("NOT_FOUND"), a_failure("NOT_FOUND"), None, "agreed"),
        (a_failure("NOT_FOUND"), Success(1), None, "differed"),
        (a_failure("NOT_FOUND"), a_failure("TIMEOUT"), None, "failed"),
        (a_failure("TIMEOUT"), Success(1), None, "nothing"),
        (a_failure("TIMEOUT"), a_failure("TIMEOUT"), None, "nothing"),
        (Success(1), a_failure("BREAKER_OPEN", called=False), None, "nothing"),
        (Success(1), a_failure("RATE_LIMITED", called=False), None, "nothing"),
        (Success(1), a_failure("RATE_LIMITED"), None, "failed"),
        (Success(1), a_failure("RULE_VIOLATED", called=False), None, "differed"),
    ],
)
def test_what_two_outcomes_say_about_a_candidate(ours: Any, theirs: Any, compare: str | None, found: str) -> None:
    """A failure that is an answer is one; where the tool gave none, or the candidate was not called, nothing counts."""
    verdict = judged(ours, theirs, compare, {"order": "A1"})
    counts = {} if verdict is None else {name: getattr(verdict, name) for name in ("agreed", "differed", "failed")}
    assert [name for name, count in counts.items() if count] == ([] if found == "nothing" else [found])


def test_a_comparison_that_cannot_be_evaluated_is_no_agreement() -> None:
    """A projection that fails on a result says nothing good about it."""
    with pytest.raises(InvalidExpression):
        says(Success({"a": "x"}), "abs(a)")


@given(st.lists(ONE_OF_EACH, max_size=60), st.integers(0, 60))
def test_counts_add_up_however_they_are_cut(calls: list[Agreement], cut: int) -> None:
    """Counted one by one or in two parts that are added: the same sums, the same row, the latest differences."""
    one_by_one = Agreement()
    for call in calls:
        one_by_one = one_by_one.then(call)
    first, second = Agreement(), Agreement()
    for call in calls[:cut]:
        first = first.then(call)
    for call in calls[cut:]:
        second = second.then(call)
    assert first.then(second) == one_by_one
    last_break = max((n for n, call in enumerate(calls, 1) if call.broken), default=0)
    assert one_by_one.in_a_row == len(calls) - last_break
    assert (one_by_one.calls, len(one_by_one.differences) <= KEPT_DIFFERENCES) == (len(calls), True)
