"""Hundreds of seeded stories of the real engine: whatever dies, sleeps, fails or is edited, the laws hold."""

from __future__ import annotations

import gc

import pytest

from tests.simulation.plot import plot_of
from tests.simulation.story import play

TOGETHER = 50
SEEDS = 300


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_no_schedule_breaks_a_law(first: int) -> None:
    """Nothing finished happens again, nothing finished is lost, no doubt is settled by nobody, no step gets another
    one's result, no limit is passed, nothing ready waits, and every run ends."""
    wrong = []
    for seed in range(first, first + TOGETHER):
        world = play(plot_of(seed))
        if world.wrong:
            wrong.append(f"{world.wrong[0]}; replay: python -m tests.simulation --seed {seed}")
    gc.collect()
    assert wrong == []


def test_a_seed_tells_the_same_story_every_time() -> None:
    """A failing seed can be replayed: the same callbacks at the same instants, to the last."""
    for seed in (1, 33, 88):
        assert play(plot_of(seed)).said == play(plot_of(seed)).said


HAPPENINGS = (
    "is killed", "stops", "goes on", "RunBusy", "StaleOwner", "unknown_outcome", "settlement", "the person: edit",
    "the person: reject", "the person: respond", "the model is asked: You plan", "the model is asked: You repair",
    "the model is asked: You carry out", "expansion", "fallback", "skip",
)  # fmt: skip
"""What the laws are about, as the trace of a story says it."""


def test_the_stories_are_rich() -> None:
    """Deaths, sleepers, doubts, people and plans written anew: all of it happens, long before the last seed."""
    missing = set(HAPPENINGS)
    for seed in range(SEEDS):
        told = "\n".join(play(plot_of(seed)).said)
        missing -= {happening for happening in missing if happening in told}
        if not missing:
            break
    assert missing == set()
