"""The table of moves: walked at random, it only ever allows what the design says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.moves import MOVES, SETTLED, IllegalMove, Status, move

STATUSES: list[Status] = ["pending", "running", "done", "failed", "skipped"]
LEGAL = {
    ("pending", "running"),
    ("pending", "failed"),
    ("pending", "skipped"),
    ("running", "done"),
    ("running", "failed"),
    ("running", "skipped"),
    ("failed", "pending"),
}


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_exactly_the_moves_of_the_design_are_legal(before: Status, after: Status) -> None:
    """Every pair of statuses is either a move that the design names, or refused as a bug."""
    if (before, after) in LEGAL:
        assert move(before, after) == after
    else:
        with pytest.raises(IllegalMove, match=f"from {before} to {after}"):
            move(before, after)


@given(st.lists(st.sampled_from(STATUSES), max_size=30))
def test_no_walk_leaves_a_settled_step_or_succeeds_without_running(wishes: list[Status]) -> None:
    """Whatever is tried in whatever order: done and skipped are the end, done follows running, a new attempt begins
    at pending."""
    walked: list[Status] = ["pending"]
    for wish in wishes:
        if wish in MOVES[walked[-1]]:
            walked.append(move(walked[-1], wish))
    for before, after in itertools.pairwise(walked):
        assert before not in SETTLED
        assert after != "done" or before == "running"
        assert before != "failed" or after == "pending"
    assert sum(status in SETTLED for status in walked) <= 1


def test_the_table_covers_every_status_and_cannot_be_changed() -> None:
    """It is total, names only statuses, and is read-only."""
    assert set(MOVES) == set(STATUSES)
    assert set().union(*MOVES.values()) <= set(STATUSES)
    assert {status for status in STATUSES if not MOVES[status]} == SETTLED
    with pytest.raises(TypeError):
        MOVES["done"] = frozenset({"pending"})  # type: ignore[index]
