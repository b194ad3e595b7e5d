"""What the bench makes of its measurements: medians, ratios, slopes, delays, PASS and MISS."""

from __future__ import annotations

import re

import pytest

from bench.__main__ import PAGE, PLACE, placed
from bench.crew import Timed
from bench.figures import Line, Series, percentile, ratios, table
from bench.recipes import Task, levels
from bench.w1 import start_delays
from bench.w2 import Costs


def test_a_line_passes_up_to_its_number_and_no_further() -> None:
    """PASS at the number itself, MISS beyond it, on whichever side it is to be kept; nothing where there is none."""
    assert Line("W", "w", "", 1.03, 1.03).reached is True
    assert Line("W", "w", "", 1.031, 1.03).reached is False
    assert Line("W", "w", "", 5.0, 5.0, "least").reached is True
    assert Line("W", "w", "", 4.99, 5.0, "least").reached is False
    assert Line("W", "w", "").reached is None


def test_the_table_shows_the_number_to_reach_beside_what_came() -> None:
    """A row has the number to reach, the measured one, and PASS or MISS."""
    text = table([Line("W3", "runs", "4.1 ×", 4.1, 5.0, "least", " ×", "45 steps/s"), Line("W4", "again", "0", 0, 0)])
    assert text.splitlines()[2:] == [
        "| W3 | runs | ≥ 5 × | 4.1 × | MISS | 45 steps/s |",
        "| W4 | again | ≤ 0 | 0 | PASS |  |",
    ]


def test_a_series_is_told_by_its_median_and_range() -> None:
    """Ratios are taken pair by pair, and their median stands before the least and the most."""
    found = ratios([2.0, 3.0, 8.0], [1.0, 1.0, 2.0])
    assert found.told(" ×", 1) == "3.0 × (2.0–4.0)"
    assert Series.of([2.5]).told(" s") == "2.50 s"
    assert percentile(list(range(100)), 0.99) == 99
    assert percentile([4.0], 0.99) == 4.0


def test_slope_and_fixed_cost_are_told_apart() -> None:
    """A run of 50 ms and 2 ms a step has a slope of 2 ms and a fixed cost of 50 ms."""
    costs = Costs()
    costs.add(100, Timed(0.25, 0.1, ()))
    costs.add(1_000, Timed(2.05, 1.0, ()))
    assert costs.slopes(100, 1_000).median == pytest.approx(2.0)
    assert costs.cpu_slopes(100, 1_000).median == pytest.approx(1.0)
    assert costs.fixed(100, 1_000).median == pytest.approx(50.0)


TASKS = [Task(0), Task(1), Task(2, (0,))]


@pytest.mark.parametrize(
    ("places", "begins", "delays"),
    [
        (2, 1.25, [0.25]),  # a place is free from the moment the first ends
        (1, 2.25, []),  # the only place is taken by the second until 2.0
    ],
)
def test_a_start_counts_as_late_only_while_a_place_is_free(places: int, begins: float, delays: list[float]) -> None:
    """A step that waits for a place is not late; one that could have begun is, from its last dependency's end."""
    timed = Timed(3.0, 0.1, ((0, 0.0, 1.0), (1, 0.5, 2.0), (2, begins, 3.0)))
    assert start_delays(TASKS, timed, places) == delays


def test_levels_are_what_barriers_would_wait_for() -> None:
    """Steps of one depth stand together, in their order."""
    assert levels([Task(0), Task(1, (0,)), Task(2), Task(3, (1, 2))]) == [[0, 2], [1], [3]]


def test_the_table_has_one_place_in_the_readme() -> None:
    """What is measured replaces what stands between the marks, and nothing else of the page."""
    page = PAGE.read_text("utf-8")
    assert len(PLACE.findall(page)) == 1
    assert placed(page, "| new |\n").count("| new |\n") == 1
    assert re.sub(PLACE, "", placed(page, "| new |\n")) == re.sub(PLACE, "", page)
