"""Tests of the outlier rule: against the definition, its invariances, and the stated stand-in for MAD = 0."""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tools.tabular.conftest import Desk
from tools.tabular.arguments import Outliers
from tools.tabular.outliers import BINS, FEWEST, histogram, on_scale, scores, spread

VALUES = st.lists(st.integers(-10_000, 10_000).map(float), min_size=FEWEST, max_size=60)


def defined(values: list[float]) -> list[float] | None:
    """The modified z-scores as Iglewicz and Hoaglin write them; None where MAD is 0."""
    median = statistics.median(values)
    mad = statistics.median(abs(value - median) for value in values)
    return [0.6745 * (value - median) / mad for value in values] if mad else None


def scored(values: list[float]) -> list[float | None]:
    """The scores that the rule gives."""
    series = pl.Series(values, dtype=pl.Float64)
    return scores(series, spread(series)).to_list()


@given(VALUES)
def test_scores_are_those_of_the_definition(values: list[float]) -> None:
    """0.6745 (x - median) / MAD, whatever the values."""
    expected = defined(values)
    assume(expected is not None)
    assert scored(values) == pytest.approx(expected)


@given(VALUES, st.integers(-1_000, 1_000), st.integers(1, 50))
def test_scores_do_not_depend_on_unit_or_origin(values: list[float], shift: int, factor: int) -> None:
    """Cents or euros, Celsius or kelvin: the same rows are outliers."""
    moved = scored([value * factor + shift for value in values])
    assert moved == pytest.approx(scored(values), nan_ok=True)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(values: list[float], rng: object) -> None:
    """Shuffled rows get the same scores."""
    places = list(range(len(values)))
    rng.shuffle(places)  # type: ignore[attr-defined]
    before = scored(values)
    assert scored([values[place] for place in places]) == [before[place] for place in places]


@given(VALUES)
def test_up_to_half_of_the_values_cannot_hide_an_outlier(values: list[float]) -> None:
    """The rule is robust: however far a few values lie, a value at the median of the rest is none."""
    far = [*values, 1e12]
    median = statistics.median(far)
    series = pl.Series(far)
    around = spread(series)
    assert abs(scores(pl.Series([median]), around).item() or 0.0) < 3.5


def test_where_most_values_are_equal_the_mean_deviation_stands_in() -> None:
    """MAD = 0: (x - median) / (1.253314 MeanAD), and it says so."""
    values = [5.0] * 18 + [6.0, 50.0]
    around = spread(pl.Series(values))
    assert around.measure == "mean absolute deviation"
    expected = (50.0 - 5.0) / (1.253314 * (46.0 / 20))
    assert scored(values)[-1] == pytest.approx(expected)


@pytest.mark.parametrize("values", [[1.0] * 30, [1.0, 2.0, 500.0], []])
def test_without_spread_or_with_few_values_there_is_no_verdict(values: list[float]) -> None:
    """Equal values have no outliers, and three values are no distribution."""
    assert all(score is None for score in scored(values))


def test_the_logarithm_is_taken_of_positive_values_only() -> None:
    """Zero and negative amounts have no logarithm, and no score on that scale."""
    compared = on_scale(pl.Series([math.e, 0.0, -1.0, 1.0]), "log").to_list()
    assert compared == [pytest.approx(1.0), None, None, 0.0]


@given(VALUES)
def test_the_histogram_holds_every_value_once(values: list[float]) -> None:
    """24 bins from the smallest to the largest value; their counts add up."""
    bins = histogram(pl.Series(values))
    if min(values) == max(values):
        assert bins == []
        return
    assert len(bins) == BINS
    assert sum(one.rows for one in bins) == len(values)
    assert bins[0].start == min(values)
    assert bins[-1].end == pytest.approx(max(values))


def test_the_finding_states_its_limits(desk: Desk) -> None:
    """Median and limits are given in the values' own unit, on either scale."""
    text = "id;amount\n" + "".join(f"{n};{n % 20 + 90},50\n" for n in range(100)) + "100;9.000,00\n101;-1,00\n"
    path = desk.file(text)
    linear = desk.find(path, [Outliers(column="amount")])
    assert [example.value for example in linear.examples] == ["9.000,00", "-1,00"]
    figures = linear.rules[0].figures
    assert figures["median"] == 100
    assert 70 < float(figures["low"]) < 90
    assert 110 < float(figures["high"]) < 140
    logged = desk.find(path, [Outliers(column="amount", scale="log")])
    assert [example.value for example in logged.examples] == ["9.000,00"]
    assert sum(one.count for one in logged.rules[0].histogram) == 101
