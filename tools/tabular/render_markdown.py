"""A page as Markdown (GitHub's tables) in which every text from outside renders as itself and does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tools.tabular.inert import markdown
from tools.tabular.page import Block, Grid, Listing, Page, Paragraph, Part, Picture
from tools.tabular.phrases import say

_LONGEST_CELL = 120


def markdown_page(page: Page, html_name: str) -> str:
    """The whole report as text; charts are tables here, and the page with them is named at the end."""
    lines = [f"# {markdown(page.title)}", ""]
    if page.subtitle:
        lines += [markdown(page.subtitle), ""]
    lines += [f"**{markdown(page.summary)}**", ""]
    lines += [f"- {markdown(tile.label)}: {markdown(f'{tile.value} {tile.remark}')}" for tile in page.tiles]
    for part in page.parts:
        lines += ["", *_part(part)]
    lines += ["", f"*{markdown(say(page.language, 'charts_in', file=html_name))}*", ""]
    return "\n".join(lines)


def _part(part: Part) -> Iterator[str]:
    yield f"{'#' * part.level} {markdown(part.heading)}"
    for block in part.blocks:
        yield ""
        yield from _block(block, part)


def _block(block: Block, part: Part) -> Iterator[str]:
    match block:
        case Paragraph():
            yield markdown(block.text)
        case Listing():
            if block.folded:
                yield from (f"{markdown(block.folded)}", "")
            yield from (f"- {markdown(item)}" for item in block.items)
        case Picture():
            if block.caption != part.heading:
                yield from (markdown(block.caption), "")
            yield from _grid(block.grid)
        case Grid():
            yield from _grid(block)


def _grid(grid: Grid) -> Iterator[str]:
    if grid.captioned:
        yield from (f"*{markdown(grid.caption)}*", "")
    yield _row(grid.columns)
    yield "|" + "|".join(" ---: " if place in grid.numeric else " --- " for place in range(len(grid.columns))) + "|"
    yield from map(_row, grid.rows)
    if grid.left_out:
        yield from ("", markdown(grid.left_out))


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(markdown(cell, _LONGEST_CELL) for cell in cells) + " |"
