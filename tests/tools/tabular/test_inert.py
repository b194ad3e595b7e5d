"""Tests of making text inert: in Markdown it renders as itself, in a spreadsheet it is text, on a page it is seen."""

from __future__ import annotations

from html.parser import HTMLParser

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tools.tabular.export import _formula_free
from tools.tabular.inert import formula_free, markdown, one_line, plain

ATTACKS = (
    "<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", '=HYPERLINK("http://evil.example","x")',
    "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)*cmd|' /C calc'!A0", "[x](javascript:window.pwned=1)",
    "](javascript:window.pwned=1)", "`code` ```\nfence", "a|b|c", "line\nbreak", "\u202egnp.exe",
    "![x](http://evil.example/i.png)", "<http://evil.example>", "https://evil.example", "www.evil.example",
    "mail@evil.example", "# heading", "* item", "- item", "+ item", "1. one", "2) two", "> quote", "---", "===",
    "&lt;b&gt;", "\\<b>", "~~gone~~", "**bold** _it_", "\tTAB", "\r=1+1", "＝1+1", "x" * 5_000, "<!-- c -->",
    "<![CDATA[x]]>", "&#60;b&#62;", "\u2066x\u2069", "a;=1+1", 'a","=1+1', 'a;"=1+1', "ﬁ\u0000\u0007", " =1+1",
    "{{7*7}}", "{% raw %}", "<svg/onload=window.pwned=1>", "</style><script>window.pwned=1</script>", "$x^2$",
    "==mark== ++ins++", ":smile:",
)  # fmt: skip
MARKUP = st.text(alphabet="<>&\"'`*_{}[]()#+-.!|~:/@\\=\n\t ab1\u202e;^$w", max_size=40)


class _Read(HTMLParser):
    """Tags and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(source: str) -> _Read:
    """The Markdown as a browser would get it, with everything switched on that renderers offer."""
    read = _Read()
    engine = MarkdownIt("commonmark", {"html": True, "typographer": False}).enable(["table", "strikethrough"])
    read.feed(engine.render(source))
    return read


@pytest.mark.parametrize("attack", ATTACKS)
def test_markdown_shows_attacks_as_text(attack: str) -> None:
    """In a heading, a paragraph and a table cell, with HTML on: the text is seen, and no element comes from it."""
    text = markdown(attack)
    read = rendered(f"# {text}\n\n**{text}**\n\n- {text}\n\n| a |\n| --- |\n| {text} |\n")
    allowed = {"h1", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(read.tags) <= allowed
    assert read.text.count(one_line(attack)) == 4


@given(MARKUP)
def test_markdown_renders_any_text_as_itself(text: str) -> None:
    """Whatever the text, rendering its escaped form gives exactly the visible text."""
    read = rendered(f"| a |\n| --- |\n| x{markdown(text)}x |\n")
    assert read.tags == ["table", "thead", "tr", "th", "tbody", "tr", "td"]
    assert read.text.split("a", 1)[1].strip() == f"x{one_line(text)}x".strip()


def test_no_renderer_makes_a_link_of_a_bare_address() -> None:
    """Neither web nor mail addresses survive in a form that linkifiers look for."""
    for text in ("see https://evil.example/x", "www.evil.example", "WWW.evil.example", "a@evil.example"):
        escaped = markdown(text).lower()
        assert "://" not in escaped
        assert "www." not in escaped
        assert "@" not in escaped


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_cell_begins_as_a_formula(attack: str) -> None:
    """Whatever a spreadsheet would run gets an apostrophe, also behind the delimiters that it may split at."""
    safe = formula_free(attack)
    for delimiter in (None, ",", ";", "|", "\t", "\n", "\r"):
        for piece in safe.split(delimiter) if delimiter else [safe]:
            assert not piece.lstrip('"').startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")), (safe, piece)
    assert not safe.startswith(("\t", "\r", "\n"))


@given(st.text(alphabet="=+-@ \t\r\n,;|ab1.5%'\"＝", max_size=12))
def test_a_column_is_made_inert_like_a_text(text: str) -> None:
    """The export's vectorised form and formula_free agree on every text."""
    column = pl.DataFrame({"a": [text]}).select(_formula_free(pl.col("a"))).item()
    assert column == formula_free(text)


@pytest.mark.parametrize("text", ["-12,50", "+5", "-1.234,56", "12 %", "-5", "1'000.50", "plain", "a-b", "x=1"])
def test_plain_numbers_and_texts_stay_what_they_are(text: str) -> None:
    """A negative amount is no formula; text with a sign inside stays whole."""
    assert formula_free(text) == text


def test_invisible_characters_are_shown() -> None:
    """What could turn or hide text is written out."""
    assert plain("a\u202eb\u200bc\x07") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0007⟩"
    assert one_line("a\r\n\nb\u2028c") == "a ⏎ b ⏎ c"
