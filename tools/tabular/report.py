"""render_report: findings become one page, written as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tools.context import ToolContext
from tools.tabular.arguments import Language, Section
from tools.tabular.export import replacing
from tools.tabular.pace import Pace
from tools.tabular.page import Listing, Page, Part, Tile
from tools.tabular.parts import anomaly_parts, field_parts, figure_parts, section_parts, table_parts
from tools.tabular.phrases import joined, say
from tools.tabular.render_html import html
from tools.tabular.render_markdown import markdown_page
from tools.tabular.results import Aggregate, Anomalies, FieldChecks, Report, TableDescription


class Findings(NamedTuple):
    """What a report is made of; everything but the title may be missing."""

    title: str
    table: TableDescription | None = None
    fields: FieldChecks | None = None
    anomalies: Anomalies | None = None
    aggregates: tuple[Aggregate, ...] = ()
    sections: tuple[Section, ...] = ()


def render(ctx: ToolContext, findings: Findings, name: str, language: Language) -> Report:
    """Writes name.md and name.html into the output folder. The same findings give the same bytes."""
    pace = Pace.of(ctx)
    stem = name.removesuffix(".html").removesuffix(".md")
    targets = {ending: ctx.files.writable(f"{stem}{ending}") for ending in (".md", ".html")}
    pace.tick(0.1, "drawing charts")
    page = page_of(findings, language, ctx.notes)
    pace.tick(0.8, "writing the report")
    _write(targets[".md"], markdown_page(page, f"{Path(stem).name}.html"))
    _write(targets[".html"], html(page))
    return Report(report_md=f"{stem}.md", report_html=f"{stem}.html", summary=page.summary)


def _write(target: Path, text: str) -> None:
    with replacing(target) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


def page_of(findings: Findings, language: Language, notes: Sequence[str] = ()) -> Page:
    """The page, in the order in which it is read: what is wrong, then figures, then what the file is. `notes` say what
    of it rests on something else than was asked for; they stand first."""
    parts = [
        *([Part(say(language, "part_notes"), (Listing(tuple(notes)),))] if notes else ()),
        *section_parts(findings.sections, language),
        *(anomaly_parts(findings.anomalies, language) if findings.anomalies else ()),
        *figure_parts(findings.aggregates, language),
        *(field_parts(findings.fields, language) if findings.fields else ()),
        *(table_parts(findings.table, language) if findings.table else ()),
        *_notes(findings, language),
    ]
    return Page(findings.title, _subtitle(findings, language), summary(findings, language), _tiles(findings, language),
                tuple(parts), language)  # fmt: skip


def summary(findings: Findings, language: Language) -> str:
    """One sentence that can stand for the report."""
    if found := findings.anomalies:
        counted = [say(language, f"count_{rule}", count=count) for rule, count in found.counts.items() if count]
        key = "anomalies" if counted else "no_anomalies"
        return say(language, key, file=found.file, rows=found.rows, count=found.anomalous_rows,
                   found=joined(counted, language))  # fmt: skip
    for result in (findings.fields, *findings.aggregates, findings.table):
        if result:
            return result.summary
    return next((section.text.split("\n\n")[0] for section in findings.sections if section.text), findings.title)


def _subtitle(findings: Findings, language: Language) -> str:
    results = (findings.table, findings.anomalies, findings.fields, *findings.aggregates)
    return joined(dict.fromkeys(result.file for result in results if result), language)


def _tiles(findings: Findings, language: Language) -> tuple[Tile, ...]:
    tiles: list[Tile] = []
    counted = findings.anomalies or findings.fields or findings.table
    if counted:
        tiles.append(Tile(say(language, "tile_rows"), f"{counted.rows:,}"))
    if found := findings.anomalies:
        share = f"{found.anomalous_rows / found.rows:.1%}" if found.rows else ""
        tone: Literal["warn", "good"] = "warn" if found.anomalous_rows else "good"
        tiles.append(Tile(say(language, "tile_anomalous"), f"{found.anomalous_rows:,}", share, tone))
        tiles.append(Tile(say(language, "tile_rules"), f"{len(found.rules):,}"))
    if checked := findings.fields:
        bad = checked.bad_values
        tiles.append(Tile(say(language, "tile_bad"), f"{bad:,}", tone="warn" if bad else "good"))
        tiles.append(Tile(say(language, "tile_missing"), f"{checked.missing_values:,}"))
    if findings.table:
        tiles.append(Tile(say(language, "tile_columns"), f"{len(findings.table.columns):,}"))
    return tuple(tiles)


def _notes(findings: Findings, language: Language) -> list[Part]:
    results = [r for r in (findings.table, findings.fields, findings.anomalies, *findings.aggregates) if r]
    assumed = tuple(dict.fromkeys(text for result in results for text in result.assumptions))
    warned = tuple(dict.fromkeys(text for result in results for text in result.warnings))
    return [
        Part(say(language, key), (Listing(texts),))
        for key, texts in (("part_warnings", warned), ("part_assumptions", assumed)) if texts
    ]  # fmt: skip
