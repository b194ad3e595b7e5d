"""The outlier rule: modified z-scores by the median absolute deviation, with a stated stand-in where that is zero.

M = 0.6745 (x - median) / MAD, an outlier beyond 3.5: Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC,
1993, p. 11-12; 0.6745 is the 0.75 quantile of the standard normal distribution, so that M is in standard deviations
where the values are normal. Where more than half of the values are the same MAD is 0, and M is
(x - median) / (1.253314 MeanAD): the mean absolute deviation times the square root of pi/2, consistent likewise.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import polars as pl

FEWEST = 12
"""With fewer values than this no verdict is given."""
BINS = 24
_NORMAL = 0.6745
_MEAN_NORMAL = 1.253314


class Spread(NamedTuple):
    """The middle and the unit of the scores, on the scale of the comparison; a unit of 0 means no verdict."""

    median: float
    unit: float
    measure: Literal["MAD", "mean absolute deviation", "none"]


class Bin(NamedTuple):
    """How many rows have values from start (included) to end (left out, save for the last)."""

    start: float
    end: float
    rows: int


def on_scale(values: pl.Series, scale: Literal["linear", "log"]) -> pl.Series:
    """The values to compare: as they are, or their natural logarithms, null where there is none."""
    return values if scale == "linear" else values.set(values <= 0, None).log()


def spread(compared: pl.Series) -> Spread:
    """The spread of the values that are present."""
    present = compared.drop_nulls()
    if present.len() < FEWEST:
        return Spread(0.0, 0.0, "none")
    median = float(present.median() or 0.0)  # type: ignore[arg-type]
    deviations = (present - median).abs()
    mad = float(deviations.median() or 0.0)  # type: ignore[arg-type]
    if mad > 0:
        return Spread(median, mad / _NORMAL, "MAD")
    mean = float(deviations.mean() or 0.0)  # type: ignore[arg-type]
    return Spread(median, mean * _MEAN_NORMAL, "mean absolute deviation" if mean > 0 else "none")


def scores(compared: pl.Series, around: Spread) -> pl.Series:
    """The modified z-score of each value; null where there is no value or no verdict."""
    if around.unit == 0:
        return pl.Series(compared.name, [None], dtype=pl.Float64).new_from_index(0, compared.len())
    return (compared - around.median) / around.unit


def histogram(compared: pl.Series) -> list[Bin]:
    """The values' distribution in 24 bins of equal width on the scale of the comparison."""
    present = compared.drop_nulls()
    if present.len() < FEWEST or present.min() == present.max():
        return []
    low, high = float(present.min()), float(present.max())  # type: ignore[arg-type]
    width = (high - low) / BINS
    places = ((present - low) / width).floor().clip(0, BINS - 1).cast(pl.Int64)
    counts = dict(places.value_counts().iter_rows())
    return [Bin(low + place * width, low + (place + 1) * width, counts.get(place, 0)) for place in range(BINS)]
