"""Charts as SVG: Vega-Lite drawn without a browser, then reduced to shapes and text in the page's own colours.

Field names never come from a file (`label`, `value`, `series`), so that nothing in a file is read as an expression.
Colours are placeholders that svg.py turns into the page's: a chart follows light, dark and print.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.tabular.inert import one_line
from tools.tabular.svg import GRID, INK, MUTED, SERIES, cleaned

if TYPE_CHECKING:
    import altair as alt

_WIDTH = 620
_LANE = 170
_LABEL_UNITS = 26
_BAR_STEP = 30
_SHORT_NUMBER = "datum.value == 0 ? '0' : format(datum.value, '~s')"
MOST_BARS = 15
MOST_SERIES = 6


class Bar(NamedTuple):
    """One mark: its label, its number, and the series it belongs to."""

    label: str
    value: float
    series: str = ""


def short(label: str) -> str:
    """A label that fits its lane: wide characters count twice."""
    text, width = "", 0
    for character in one_line(label):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > _LABEL_UNITS:
            return f"{text}…"
        text += character
    return text


def bars(rows: Sequence[Bar], alt_text: str, prefix: str) -> str:
    """Horizontal bars in the given order, each with its number; stacked where there are several series."""
    import altair as alt

    base = _chart(rows, width=_WIDTH - _LANE, height={"step": _BAR_STEP}).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(minExtent=_LANE, maxExtent=_LANE, labelLimit=_LANE)),
        x=alt.X("value:Q", title=None, axis=alt.Axis(grid=False, labels=False), scale=alt.Scale(nice=False)),
    )
    several = len({row.series for row in rows}) > 1
    if several:
        return _svg(base.mark_bar(size=16).encode(color=_series(rows)), alt_text, prefix)
    marks = base.mark_bar(size=16, color=SERIES[0], cornerRadiusEnd=3)
    named = base.mark_text(align="left", dx=6, color=INK, fontSize=12).encode(text=alt.Text("shown:N"))
    return _svg(marks + named, alt_text, prefix)


def over_time(rows: Sequence[Bar], alt_text: str, prefix: str) -> str:
    """Columns along an axis of periods; a line once there are more than 40."""
    import altair as alt

    base = _chart(rows, width=_WIDTH, height=190).encode(
        x=alt.X(
            "label:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=8)
        ),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4, labelExpr=_SHORT_NUMBER)),
        color=_series(rows) if len({row.series for row in rows}) > 1 else alt.value(SERIES[0]),
    )
    marked = (
        base.mark_line(strokeWidth=2) if len({row.label for row in rows}) > 40 else base.mark_bar(cornerRadiusEnd=3)
    )
    return _svg(marked, alt_text, prefix)


class Interval(NamedTuple):
    """A bar of a distribution: its borders as text, how many rows, and whether it lies beyond the limits."""

    label: str
    rows: int
    beyond: bool


def distribution(intervals: Sequence[Interval], alt_text: str, prefix: str) -> str:
    """Touching columns; those beyond the limits in the colour of a warning. Heights are on a square root scale, or a
    single outlier among thousands of rows would not be seen."""
    import altair as alt

    rows = [{"label": f"{place:03} {one.label}", "value": one.rows, "shown": one.label, "beyond": one.beyond}
            for place, one in enumerate(intervals)]  # fmt: skip
    chart = alt.Chart(alt.InlineData(values=rows), width=_WIDTH, height=150).mark_bar(binSpacing=1).encode(
        x=alt.X("label:O", sort=None, title=None, scale=alt.Scale(paddingInner=0.08), axis=alt.Axis(
            labelExpr="slice(datum.label, 4)", labelAngle=0, labelOverlap="greedy", labelSeparation=8)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4), scale=alt.Scale(type="sqrt")),
        color=alt.condition("datum.beyond", alt.value(SERIES[1]), alt.value(SERIES[0])),
    )  # fmt: skip
    return _svg(chart, alt_text, prefix)


def _chart(rows: Sequence[Bar], **size: Any) -> alt.Chart:
    import altair as alt

    values = [
        {"label": short(row.label), "value": row.value, "series": short(row.series), "shown": f"{row.value:,.10g}"}
        for row in rows
    ]
    return alt.Chart(alt.InlineData(values=values), **size)


def _series(rows: Sequence[Bar]) -> alt.Color:
    import altair as alt

    names = list(dict.fromkeys(short(row.series) for row in rows))
    scale = alt.Scale(domain=names, range=list(SERIES[: len(names)]))
    return alt.Color(
        "series:N", scale=scale, sort=None, legend=alt.Legend(title=None, orient="top", symbolType="square")
    )


def _svg(chart: alt.Chart | alt.LayerChart, alt_text: str, prefix: str) -> str:
    import vl_convert

    axis = {"domain": False, "ticks": False, "labelColor": MUTED, "labelFontSize": 12, "labelPadding": 8,
            "gridColor": GRID, "titleColor": MUTED}  # fmt: skip
    styled = chart.configure(
        background="transparent", font="sans-serif", axis=axis, padding=4,
        view={"stroke": None}, legend={"labelColor": INK, "labelFontSize": 12},
    )  # fmt: skip
    return cleaned(vl_convert.vegalite_to_svg(styled.to_dict()), alt_text, prefix)
