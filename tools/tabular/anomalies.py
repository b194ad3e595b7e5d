"""find_anomalies: rules applied to a table, counted, shown by examples, and written out in full when asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

import polars as pl

from tools.context import ToolContext
from tools.tabular import rules as evaluated
from tools.tabular.arguments import Language, Reading, Rule
from tools.tabular.cells import shown
from tools.tabular.export import line_name, target_of, write
from tools.tabular.infer import Inferred, infer
from tools.tabular.layout import LINE
from tools.tabular.opening import open_table
from tools.tabular.pace import Pace
from tools.tabular.phrases import Note, assumptions, joined, note, say, warnings
from tools.tabular.results import Anomalies, Anomaly, RuleFinding
from tools.tabular.rules import Hits
from tools.tabular.table import Table

_EXAMPLES = 20


def find(
    ctx: ToolContext, path: str, rules: Sequence[Rule] | None, output: str | None,
    sheet: str | None, reading: Reading | None, language: Language,
) -> Anomalies:  # fmt: skip
    """The anomalies; ToolFailure INVALID_ARGS names columns that a rule speaks of and the table lacks."""
    pace = Pace.of(ctx)
    target = target_of(ctx, output) if output else None
    table = open_table(ctx, path, sheet, reading, pace.part(0.0, 0.5))
    applied = infer(table, pace.part(0.5, 0.7)) if rules is None else [Inferred(r, note("why_given")) for r in rules]
    table.require(chain.from_iterable(_columns(one.rule) for one in applied))
    hits = [*_hits(table, applied, pace.part(0.7, 0.9)), evaluated.ragged(table)]
    whys = [*(one.why for one in applied), note("why_ragged")]
    findings = [_finding(hit, why, rules is None, language) for hit, why in zip(hits, whys, strict=True)]
    places = _union(hits)
    kinds = dict.fromkeys(hit.rule for hit in hits)
    counts = {kind: _union([hit for hit in hits if hit.rule == kind]).len() for kind in kinds}
    if target:
        write(_listed(table, hits, places, language), target, pace.part(0.9, 1.0))
    return Anomalies(
        summary=_summary(table, places.len(), counts, language), file=table.name, rows=table.rows,
        anomalous_rows=places.len(), counts=counts, rules=tuple(findings), examples=_examples(table, hits, language),
        examples_cut=sum(hit.places.len() for hit in hits) > _EXAMPLES, rows_file=output,
        assumptions=assumptions(table.all_notes, language), warnings=warnings(table.all_notes, language),
    )  # fmt: skip


def _columns(rule: Rule) -> list[str]:
    return [str(value) for name, value in rule if name in {"column", "earlier", "later"}]


def _hits(table: Table, applied: Sequence[Inferred], pace: Pace) -> list[Hits]:
    found = []
    for place, one in enumerate(applied):
        pace.tick(place / len(applied), f"applying {one.rule.rule} to {', '.join(_columns(one.rule))}")
        found.append(evaluated.hits(table, one.rule))
    return found


def _finding(hit: Hits, why: Note, inferred: bool, language: Language) -> RuleFinding:
    return RuleFinding(
        rule=hit.rule, columns=hit.columns, found=hit.places.len(), label=say(language, f"rule_{hit.rule}"),
        why=say(language, why.key, **why.values), inferred=inferred and hit.rule != "ragged", figures=hit.figures,
        histogram=hit.histogram,
    )  # fmt: skip


def _union(hits: Sequence[Hits]) -> pl.Series:
    """The positions of all rows that break any of these rules, ascending."""
    if not hits:
        return pl.Series([], dtype=pl.UInt32)
    return pl.concat([hit.places.cast(pl.UInt32).rename("place") for hit in hits]).unique().sort()


def _summary(table: Table, anomalous: int, counts: dict[str, int], language: Language) -> str:
    found = [say(language, f"count_{rule}", count=count) for rule, count in counts.items() if count]
    key = "anomalies" if found else "no_anomalies"
    return say(language, key, file=table.name, rows=table.rows, count=anomalous, found=joined(found, language))


def _examples(table: Table, hits: Sequence[Hits], language: Language) -> tuple[Anomaly, ...]:
    """A few rows of every rule: the first of each, then the second of each, and so on."""
    numbered = ([(hit, place, fact) for place, fact in zip(hit.places, hit.facts, strict=False)] for hit in hits)
    turns = chain.from_iterable(zip_longest(*numbered))
    chosen = [one for one in turns if one][:_EXAMPLES]
    rows = _rows(table, [place for _, place, _ in chosen])
    order = {hit.rule: rank for rank, hit in enumerate(hits)}
    made = [_anomaly(hit, rows[place], fact, language) for hit, place, fact in chosen]
    return tuple(sorted(made, key=lambda anomaly: (order[anomaly.rule], anomaly.line)))


def _rows(table: Table, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    wanted = pl.Series("place", sorted(set(places)), dtype=pl.UInt32)
    numbered = table.frame.with_row_index("\x1fplace").filter(pl.col("\x1fplace").is_in(wanted.implode()))
    return {row.pop("\x1fplace"): row for row in numbered.collect().to_dicts()}


def _anomaly(hit: Hits, row: dict[str, Any], fact: dict[str, Any], language: Language) -> Anomaly:
    line = row[LINE]
    names = {"column": hit.column, "columns": hit.columns}
    if hit.rule == "time_order":
        names |= {"first": hit.columns[0], "second": hit.columns[1]}
    shown_fact = {name: f"{value:.1f}" if isinstance(value, float) else value for name, value in fact.items()}
    detail = say(language, f"detail_{hit.rule}", **{**names, **shown_fact})
    cells = {name: shown(text) for name, text in row.items() if name != LINE}
    return Anomaly(line=line, rule=hit.rule, column=hit.column, value=fact["value"], detail=detail, row=cells)


def _listed(table: Table, hits: Sequence[Hits], places: pl.Series, language: Language) -> pl.LazyFrame:
    """All anomalous rows in order, each with what is wrong with it."""
    told = [
        pl.DataFrame({"\x1fplace": hit.places.cast(pl.UInt32)}).with_columns(problem=pl.lit(_problem(hit, language)))
        for hit in hits
    ]
    problems = pl.concat(told).group_by("\x1fplace", maintain_order=True).agg(pl.col("problem").str.join("; "))
    problems = problems.sort("\x1fplace")
    numbered = table.frame.with_row_index("\x1fplace").filter(pl.col("\x1fplace").is_in(places.implode()))
    joined_rows = numbered.join(problems.lazy(), on="\x1fplace", how="left", maintain_order="left")
    problem = "problems" if "problems" not in table.names else "found_problems"
    return joined_rows.select(
        pl.col(LINE).alias(line_name(table.names)), pl.col("problem").alias(problem), *table.names
    )


def _problem(hit: Hits, language: Language) -> str:
    label = say(language, f"rule_{hit.rule}")
    return f"{label}: {', '.join(hit.columns)}" if hit.columns else label
