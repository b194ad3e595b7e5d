"""A page as one HTML file: no script, no request, every text from outside escaped by the template."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tools.tabular.inert import one_line, plain
from tools.tabular.page import Grid, Listing, Page, Paragraph, Picture
from tools.tabular.phrases import say

if TYPE_CHECKING:
    from jinja2 import Template

_LONGEST_CELL = 160
_KINDS = {Paragraph: "paragraph", Grid: "grid", Picture: "picture", Listing: "listing"}


def html(page: Page) -> str:
    """The whole page. Only the style sheet and the charts, which are reduced to shapes, are put in as markup."""
    return _template().render(
        page=page, style=_resource("report.css"), kind=lambda block: _KINDS[type(block)], cell=_cell,
        say=lambda key, **values: say(page.language, key, **values),
    )  # fmt: skip


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = plain
    return environment.from_string(_resource("report.html"))


@cache
def _resource(name: str) -> str:
    return (files("tools.tabular") / name).read_text(encoding="utf-8")


def _cell(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
