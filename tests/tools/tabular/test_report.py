"""Tests of reports: what is told, in both languages, as Markdown and as a page that does nothing but show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from plans.failure import ToolFailure
from tests.tools.tabular.browser import chromium, needs_chromium, opened
from tests.tools.tabular.conftest import ORDERS, Desk
from tests.tools.tabular.test_inert import ATTACKS
from tools.registry import Registry
from tools.tabular import tabular, toolkit
from tools.tabular.arguments import Chart, Grouping, Language, Measure, Section
from tools.tabular.charts import Bar, bars, short
from tools.tabular.inert import one_line
from tools.tabular.results import Report
from tools.tabular.svg import cleaned


def full_report(desk: Desk, language: Language = "en", path: str | None = None, **more: Any) -> Report:
    """A report from every tool over one file."""
    path = path or desk.declare(ORDERS)
    table = desk.describe(path, language=language)
    first = table.columns[0].name
    figures = [desk.aggregate(path, group_by=(first,), limit=20, language=language)]
    if path.endswith("orders.csv"):
        total = (Measure(op="sum", column="amount"),)
        figures += [
            desk.aggregate(path, group_by=("status",), measures=total, language=language),
            desk.aggregate(path, group_by=(Grouping(column="ordered_at", by="week"),), language=language),
            desk.aggregate(path, group_by=("country", "status"), language=language),
            desk.aggregate(path, measures=total, language=language),
        ]
    return toolkit.render_report(
        desk.ctx(), more.pop("title", "Orders"), table=table, fields=desk.check(path, language=language),
        anomalies=desk.find(path, output="anomalies.csv", language=language), aggregates=tuple(figures),
        language=language, **more,
    )  # fmt: skip


def texts(desk: Desk, report: Report) -> tuple[str, str]:
    """The Markdown and the HTML."""
    return (desk.out / report.report_md).read_text("utf-8"), (desk.out / report.report_html).read_text("utf-8")


def test_a_report_says_first_what_it_rests_on_that_was_not_asked_for(desk: Desk) -> None:
    """An input that came from a mock or an old result is named in both files, before anything that rests on it."""
    note = "s1 was answered by a mock and not by rows, because rows failed: it is down"
    section = (Section(heading="Figures", text="42"),)
    report = toolkit.render_report(replace(desk.ctx(), notes=(note,)), "Orders", sections=section)
    for text in texts(desk, report):
        assert text.index("Not what was asked for") < text.index(note) < text.index("Figures")
    plain = toolkit.render_report(desk.ctx(), "Orders", sections=section)
    assert all("Not what was asked for" not in text for text in texts(desk, plain))


def test_the_summary_can_be_the_answer(desk: Desk) -> None:
    """One sentence says what was found, in the report's language whatever the findings' was."""
    report = full_report(desk)
    assert report.summary.startswith("404 rows in orders.csv, 27 of them anomalous: 7 negative amounts, ")
    found = desk.find(desk.declare(ORDERS))
    chinese = toolkit.render_report(desk.ctx(), "异常订单", anomalies=found, language="zh")
    assert chinese.summary.startswith("orders.csv 共 404 行，其中 27 行异常：负数金额 7 行、时间倒流 5 行")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_forms_tell_everything(desk: Desk, language: Language) -> None:
    """Every rule with its count, every offending line shown, every column and every assumption."""
    report = full_report(desk, language)
    found = desk.find(desk.declare(ORDERS), language=language)
    markdown, html = texts(desk, report)
    for text in (MarkdownIt().enable("table").render(markdown), html):
        for rule in found.rules:
            assert not rule.found or rule.label in text.lower()
        for example in found.examples:
            assert f">{example.line}<" in text.replace("<bdi>", "").replace("</bdi>", "")
        assert "cp1252" in text
        assert "anomalies.csv" in text


def test_the_page_asks_for_nothing_and_runs_nothing(desk: Desk) -> None:
    """One file: a policy that forbids everything, no script, no link, no picture from anywhere."""
    _, html = texts(desk, full_report(desk))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert not re.search(r"<(script|link|iframe|img|object|embed|form|a)\b", body)
    assert not re.search(r"\bon\w+\s*=", re.sub(r">[^<]*<", "><", body))
    assert "http" not in re.sub(r">[^<]*<", "><", body).replace("http-equiv", "")


def test_the_same_findings_are_the_same_bytes(desk: Desk) -> None:
    """A step that runs again after a crash leaves the very same report."""
    first = texts(desk, full_report(desk))
    assert texts(desk, full_report(desk)) == first


def test_every_chart_has_words_and_a_table(desk: Desk) -> None:
    """Whoever cannot see the picture hears its caption and finds its numbers."""
    _, html = texts(desk, full_report(desk))
    figures = re.findall(r"<figure>.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) == 6
    for figure in figures:
        assert re.search(r'<svg[^>]* role="img" aria-label="[^"]+"', figure)
        assert "<table>" in figure
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_charts_hold_only_shapes() -> None:
    """Whatever a drawing brings, known shapes and attributes are left, in the page's own colours."""
    wild = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50" onload="x()">'
        '<script>x()</script><a href="http://evil.example"><text>link</text></a><style>@import "x"</style>'
        '<image href="http://evil.example/x.png"/><foreignObject><b/></foreignObject>'
        '<g clip-path="url(#c1)" style="x">'
        '<rect id="c1" fill="#010111" stroke="url(http://evil.example)" width="5"/></g>'
        '<text font-family="x" fill="#010101">a &lt; b</text></svg>'
    )
    root = ET.fromstring(cleaned(wild, 'say "it"', "p-"))  # noqa: S314 - what we made
    assert [element.tag for element in root.iter()] == ["svg", "g", "rect", "text"]
    assert root.attrib == {
        "viewBox": "0 0 100 50", "role": "img", "aria-label": 'say "it"', "style": "max-width:100px", "class": "chart",
    }  # fmt: skip
    assert root[0].attrib == {"clip-path": "url(#p-0)"}
    assert root[0][0].attrib == {"id": "p-0", "width": "5", "style": "fill:var(--c1)"}
    assert root[1].text == "a < b"


@pytest.mark.parametrize(
    "label", ["datum.value", "{{x}}", "a.b[0]", "'+alert(1)+'", "</text><script>", "标签很长很长很长很长很长"]
)
def test_labels_are_never_read_as_expressions(label: str) -> None:
    """Labels that look like Vega expressions or markup are drawn letter by letter."""
    svg = bars([Bar(label, 3.0), Bar("other", 1.0)], "chart", "x-")
    drawn = [element.text for element in ET.fromstring(svg).iter("text")]  # noqa: S314 - what we made
    assert short(label) in drawn


def attacking(desk: Desk) -> str:
    """A file whose name, header and cells are attacks, with enough rows for every kind of finding."""
    rows = [f'"{attack.replace(chr(34), chr(34) * 2)}",{place},-1' for place, attack in enumerate(ATTACKS)]
    header = '"<script>window.pwned=1</script>",order_id,"<img src=x onerror=window.pwned=1> amount"'
    return desk.file("\n".join([header, *rows, rows[0], "short"]), "<img src=x onerror=pwned=1>.csv")


def test_attacks_stay_text_in_markdown(desk: Desk) -> None:
    """Rendered with HTML on, a report over hostile cells has the tags of a report and no other."""
    report = full_report(desk, path=attacking(desk), title=ATTACKS[0])
    markdown, _ = texts(desk, report)
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    tags = set(re.findall(r"<\s*/?\s*([A-Za-z!][\w-]*)", rendered))
    assert tags <= {"h1", "h2", "h3", "p", "strong", "em", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


@needs_chromium
@pytest.mark.browser
def test_attacks_do_nothing_in_a_browser(desk: Desk) -> None:
    """In a real Chromium nothing in a cell, header, file name or title runs, loads or asks; not even without the
    page's policy, and not in the rendered Markdown either."""
    sections = tuple(
        Section(heading=attack[:200], text=attack, rows=({attack[:50]: attack, "n": 1}, {attack[:50]: "x", "n": 2}),
                chart=Chart(x=attack[:50], y="n"))
        for attack in ATTACKS[:8]
    )  # fmt: skip
    report = full_report(desk, path=attacking(desk), title=ATTACKS[0], sections=sections)
    markdown, html = texts(desk, report)
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    pages = {
        "policy.html": html, "open.html": re.sub(r"<meta http-equiv[^>]*>", "", html),
        "markdown.html": f"<!doctype html><meta charset=utf-8>{rendered}",
    }  # fmt: skip
    with chromium() as browser:
        for name, text in pages.items():
            path = desk.folder / name
            path.write_text(text, encoding="utf-8")
            page, seen = opened(browser, path)
            assert seen.requests == [path.as_uri()], name
            assert (seen.dialogs, seen.said) == ([], []), name
            assert page.evaluate("window.pwned === undefined"), name
            assert page.locator("script, img, iframe, a, object, form").count() == 0, name
            assert one_line(ATTACKS[0]) in page.inner_text("h1"), name
            shown = page.inner_text("body")
            for attack in ATTACKS[1:8]:
                assert one_line(attack) in shown, (name, attack)
            page.close()


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_reads_well(desk: Desk, scheme: str) -> None:
    """On a phone nothing but tables scrolls sideways; text has contrast in light and dark; charts are drawn."""
    report = full_report(desk, "zh", title="异常订单")
    with chromium() as browser:
        page, seen = opened(browser, desk.out / report.report_html, scheme)
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("figure svg").count() == 6
        for selector in ("h1", ".summary", "td", "figcaption", ".tiles dt", "svg text", ".tiles .warn dd"):
            assert page.evaluate(_CONTRAST, selector) >= 4.5, selector
        assert seen.said == []


_CONTRAST = """selector => {
  const light = text => {
    const part = text.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const element = document.querySelector(selector), style = getComputedStyle(element);
  const ink = light(element.closest("svg") ? style.fill : style.color);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}"""


def test_sections_of_ones_own(desk: Desk) -> None:
    """Text in paragraphs, rows as a table with numbers to the right, a chart of them; without findings the first
    paragraph is the summary."""
    rows = ({"city": "Bonn", "total": 12.5}, {"city": "Köln", "total": 1200}, {"city": None, "total": "7.25"})
    section = Section(heading="Cities", text="First.\n\nSecond.", rows=rows, chart=Chart(x="city", y="total"))
    report = toolkit.render_report(desk.ctx(), "Cities", sections=(section,), name="cities.html")
    assert report == Report(report_md="cities.md", report_html="cities.html", summary="First.")
    markdown, html = texts(desk, report)
    assert "| Köln | 1,200.0 |" in markdown
    assert html.count("<figure>") == 1
    assert "<p><bdi>Second.</bdi></p>" in html


def test_long_tables_are_cut_and_say_so(desk: Desk) -> None:
    """Of 60 rows 50 are shown."""
    rows = tuple({"n": n} for n in range(60))
    report = toolkit.render_report(desk.ctx(), "Rows", sections=(Section(heading="All", rows=rows),))
    markdown, html = texts(desk, report)
    for text in (markdown, html):
        assert "Of 60 rows the first 50 are shown." in text
    assert markdown.count("\n| ") == 52


def test_a_report_without_anything_is_its_title(desk: Desk) -> None:
    """Nothing to tell is no failure."""
    assert toolkit.render_report(desk.ctx(), "Nothing yet").summary == "Nothing yet"


def test_results_fit_the_arguments_as_plain_json(desk: Desk) -> None:
    """What the tools give, as plans hand it on, is what render_report accepts."""
    path = desk.declare(ORDERS)
    args = {
        "title": "Orders", "table": desk.describe(path).model_dump(mode="json"),
        "fields": desk.check(path).model_dump(mode="json"), "anomalies": desk.find(path).model_dump(mode="json"),
        "aggregates": [desk.aggregate(path, group_by=("status",)).model_dump(mode="json")],
    }  # fmt: skip
    assert Registry.of(tabular)["render_report"].check_args(args) == []


def test_reports_stay_in_the_output_folder(desk: Desk, tmp_path: Path) -> None:
    """A name that leads elsewhere is not permitted, and writes nothing."""
    with pytest.raises(ToolFailure) as failure:
        toolkit.render_report(desk.ctx(), "x", name="../../report")
    assert failure.value.code == "NOT_PERMITTED"
    assert not list(desk.out.iterdir())
    assert not (tmp_path / "report.md").exists()
