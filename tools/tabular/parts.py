"""The parts of a report, one function per kind of finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tools.tabular.arguments import Language, Section
from tools.tabular.charts import MOST_BARS, MOST_SERIES, Bar, Interval, bars, distribution, over_time
from tools.tabular.figures import as_float, grid, texts
from tools.tabular.page import Block, Grid, Listing, Paragraph, Part, Picture
from tools.tabular.phrases import heading, joined, say
from tools.tabular.results import Aggregate, Anomalies, Anomaly, FieldChecks, RuleFinding, TableDescription

_MOST_ROW_CELLS = 12
_PERIODS = ("_day", "_week", "_month", "_quarter", "_year")


def section_parts(sections: Sequence[Section], language: Language) -> Iterator[Part]:
    """The sections that a caller wrote."""
    for place, section in enumerate(sections):
        blocks: list[Block] = [Paragraph(text) for text in (section.text or "").split("\n\n") if text.strip()]
        if section.rows:
            columns = tuple(dict.fromkeys(name for row in section.rows for name in row))
            left_out = say(language, "rows_left_out", count=len(section.rows))
            table = grid(columns, section.rows, section.heading, say(language, "no_value"), left_out)
            svg = _section_chart(section, place)
            blocks.append(Picture(svg, section.heading, table) if svg else table)
        yield Part(section.heading, tuple(blocks))


def _section_chart(section: Section, place: int) -> str:
    if not (chart := section.chart):
        return ""
    rows = [
        Bar(str(row.get(chart.x, "")), value)
        for row in section.rows if (value := as_float(row.get(chart.y))) is not None
    ]  # fmt: skip
    if not rows:
        return ""
    draw = bars if chart.kind == "bar" else over_time
    return draw(rows[:MOST_BARS] if chart.kind == "bar" else rows, section.heading, f"s{place}-")


def anomaly_parts(found: Anomalies, language: Language) -> Iterator[Part]:
    """How many rows break which rule, examples of each, and the rules that no row breaks."""
    blocks: list[Block] = []
    counted = dict(sorted(((r, c) for r, c in found.counts.items() if c), key=lambda item: -item[1]))
    if counted:
        caption = say(language, "caption_rules")
        rows = [{"rule": say(language, f"rule_{rule}"), "rows": count} for rule, count in counted.items()]
        table = _renamed(grid(("rule", "rows"), rows, caption, ""), language, "rule", "rows")
        marks = [Bar(str(row["rule"]), float(str(row["rows"]))) for row in rows]
        blocks.append(Picture(bars(marks, caption, "rules-"), caption, table))
    else:
        blocks.append(Paragraph(say(language, "nothing_found")))
    if found.rows_file and counted:
        blocks.append(Paragraph(say(language, "all_rows_in", file=found.rows_file)))
    if clean := [_named(rule, language) for rule in found.rules if not rule.found]:
        blocks.append(Listing(tuple(clean), folded=say(language, "also_checked", count=len(clean))))
    yield Part(say(language, "part_anomalies"), tuple(blocks))
    for rule in counted:
        yield _rule_part(found, rule, language)


def _named(rule: RuleFinding, language: Language) -> str:
    columns = joined(rule.columns, language)
    return say(language, "rule_on", label=say(language, f"rule_{rule.rule}"), columns=columns, why=rule.why)


def _rule_part(found: Anomalies, rule: str, language: Language) -> Part:
    applied = [one for one in found.rules if one.rule == rule and one.found]
    examples = [one for one in found.examples if one.rule == rule]
    title = heading(say(language, "rule_heading", label=say(language, f"rule_{rule}"), count=found.counts[rule]))
    blocks: list[Block] = [Paragraph(one.why) for one in applied if one.why != say(language, "why_ragged")]
    blocks += [_spread(one, place, language) for place, one in enumerate(applied) if one.histogram]
    if examples:
        blocks.append(_example_grid(examples, found.counts[rule], language))
    return Part(title, tuple(blocks), level=3)


def _example_grid(examples: Sequence[Anomaly], count: int, language: Language) -> Grid:
    names = list(examples[0].row)
    offending = [name for name in dict.fromkeys(one.column for one in examples) if name in names]
    shown = [*offending, *(name for name in names if name not in offending)][:_MOST_ROW_CELLS]
    columns = (say(language, "column_line"), say(language, "column_detail"), *shown)
    rows = tuple((f"{one.line:,}", one.detail, *(one.row.get(name) or "" for name in shown)) for one in examples)
    marked = frozenset(
        (place, shown.index(one.column) + 2) for place, one in enumerate(examples) if one.column in shown
    )
    caption = say(language, "caption_examples", count=len(examples), all=count)
    return Grid(columns, rows, caption, frozenset({0}), marked, captioned=True)


def _spread(one: RuleFinding, place: int, language: Language) -> Picture:
    low, high = as_float(one.figures.get("low")), as_float(one.figures.get("high"))
    starts = texts([b.start for b in one.histogram])
    ends = texts([b.end for b in one.histogram])
    intervals = [
        Interval(_compact(as_float(b.start) or 0.0), b.count, _beyond(as_float(b.start), as_float(b.end), low, high))
        for b in one.histogram
    ]
    caption = say(language, "caption_spread", column=one.columns[0], median=texts([one.figures.get("median")])[0],
                  low=texts([one.figures.get("low")])[0], high=texts([one.figures.get("high")])[0])  # fmt: skip
    rows = [
        {"from": start, "to": end, "rows": b.count} for start, end, b in zip(starts, ends, one.histogram, strict=True)
    ]
    table = _renamed(grid(("from", "to", "rows"), rows, caption, ""), language, "from", "to", "rows")
    return Picture(distribution(intervals, caption, f"spread{place}-"), caption, table)


def _beyond(start: float | None, end: float | None, low: float | None, high: float | None) -> bool:
    return (end is not None and low is not None and end < low) or (
        start is not None and high is not None and start > high
    )


def _compact(value: float) -> str:
    """1.2k for a label below an axis."""
    for size, sign in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def _renamed(table: Grid, language: Language, *keys: str) -> Grid:
    columns = tuple(say(language, f"column_{key}") for key in keys)
    return Grid(columns, table.rows, table.caption, table.numeric, table.marked, table.left_out)


def figure_parts(aggregates: Sequence[Aggregate], language: Language) -> Iterator[Part]:
    """Each summary of the table as a chart where it has groups."""
    if aggregates:
        yield Part(say(language, "part_figures"), ())
    for place, one in enumerate(aggregates):
        missing = say(language, "no_value")
        title = heading(one.summary)
        table = grid(one.columns, one.rows, title, missing, say(language, "rows_left_out", count=len(one.rows)))
        svg = _aggregate_chart(one, f"a{place}-", missing, say(language, "other"))
        yield Part(title, (Picture(svg, title, table) if svg else table,), level=3)


def _aggregate_chart(one: Aggregate, prefix: str, missing: str, other: str) -> str:
    """The first number over one or two groups; none where a chart would say less than the table."""
    value = next((name for name in one.columns[len(one.group_columns):] if _all_numbers(one, name)), None)  # fmt: skip
    if not value or len(one.group_columns) not in (1, 2) or len(one.rows) < 2:
        return ""
    first, *second = (texts([row.get(name) for row in one.rows], missing) for name in one.group_columns)
    values = [as_float(row[value]) or 0.0 for row in one.rows]
    series = _few(second[0], values, other) if second else [""] * len(first)
    rows = [Bar(label, number, kind) for label, number, kind in zip(first, values, series, strict=True)]
    if one.group_columns[0].endswith(_PERIODS):
        return over_time(rows, one.summary, prefix)
    labels = list(dict.fromkeys(first))[:MOST_BARS]
    return bars([row for row in rows if row.label in labels], one.summary, prefix)


def _few(series: Sequence[str], values: Sequence[float], other: str) -> list[str]:
    """The largest series by name, the rest together as one."""
    totals: Counter[str] = Counter()
    for name, value in zip(series, values, strict=True):
        totals[name] += value  # type: ignore[assignment]
    kept = {name for name, _ in totals.most_common(MOST_SERIES if len(totals) <= MOST_SERIES else MOST_SERIES - 1)}
    return [name if name in kept else other for name in series]


def _all_numbers(one: Aggregate, name: str) -> bool:
    return all(as_float(row.get(name)) is not None for row in one.rows)


def field_parts(checked: FieldChecks, language: Language) -> Iterator[Part]:
    """What each column should be, and where it is not."""
    keys = ("column", "type", "missing", "bad", "first_lines")
    rows = [
        {
            "column": field.column, "type": say(language, f"type_{field.type}"), "missing": field.missing.count,
            "bad": field.bad.count, "first_lines": ", ".join(f"{one.line}: {one.value}" for one in field.bad.first[:3]),
        }
        for field in checked.fields
    ]  # fmt: skip
    table = _renamed(grid(keys, rows, checked.summary, ""), language, *keys)
    marked = frozenset((place, 3) for place, field in enumerate(checked.fields) if field.bad.count)
    table = Grid(table.columns, table.rows, table.caption, table.numeric, marked)
    yield Part(say(language, "part_fields"), (Paragraph(checked.summary), table))


def table_parts(table: TableDescription, language: Language) -> Iterator[Part]:
    """What the file is and what its columns hold."""
    keys = ("column", "type", "missing", "distinct", "min", "max", "examples")
    rows = [
        {
            "column": column.name, "type": say(language, f"type_{column.type}"), "missing": column.missing,
            "distinct": column.distinct, "min": texts([column.min])[0], "max": texts([column.max])[0],
            "examples": " · ".join(column.examples),
        }
        for column in table.columns
    ]  # fmt: skip
    facts = [say(language, f"format_{table.format}")]
    facts += [say(language, "fact_encoding", encoding=table.encoding)] if table.encoding else []
    facts += [say(language, "fact_delimiter", delimiter=_visible(table.delimiter))] if table.delimiter else []
    facts += [say(language, "fact_sheet", sheet=table.sheet)] if table.sheet else []
    made = _renamed(grid(keys, rows, table.summary, ""), language, *keys)
    yield Part(
        say(language, "part_table"),
        (Paragraph(say(language, "table_facts", summary=table.summary, facts=joined(facts, language))), made),
    )


def _visible(delimiter: str) -> str:
    return {"\t": "tab", " ": "space"}.get(delimiter, delimiter)
