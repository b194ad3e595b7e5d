"""What a report consists of, before it is Markdown or HTML: every text in it is still as the file had it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table. `numeric` are the places of columns to be aligned right, `marked` cells (row, column) that offend.
    The caption is read aloud, and seen where it is `captioned`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    numeric: frozenset[int] = frozenset()
    marked: frozenset[tuple[int, int]] = frozenset()
    left_out: str = ""
    captioned: bool = False


@dataclass(frozen=True)
class Picture:
    """A chart, in words, and as a table for whoever cannot see it. The SVG is inert markup."""

    svg: str
    caption: str
    grid: Grid


@dataclass(frozen=True)
class Listing:
    """Short sentences, one below the other."""

    items: tuple[str, ...]
    folded: str = ""


Block = Paragraph | Grid | Picture | Listing


@dataclass(frozen=True)
class Part:
    """A headed part of the page; `level` 3 stands under the last part of level 2."""

    heading: str
    blocks: tuple[Block, ...]
    level: Literal[2, 3] = 2


@dataclass(frozen=True)
class Tile:
    """One figure at the top of the page."""

    label: str
    value: str
    remark: str = ""
    tone: Literal["plain", "warn", "good"] = "plain"


@dataclass(frozen=True)
class Page:
    """The whole report."""

    title: str
    subtitle: str
    summary: str
    tiles: tuple[Tile, ...]
    parts: tuple[Part, ...]
    language: Literal["en", "zh"]
