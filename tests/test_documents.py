"""What the documents name is there: files in backticks, and links between the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import surestep

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ROOMS = (*surestep.PACKAGES, "tests", "docs", "examples", "bench")
NAMED = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w./*-]*)`")
LINKED = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)")
CODE = re.compile(r"`[^`\n]*`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_a_page_names_exists(page: Path) -> None:
    """A path in backticks or behind a link leads to a file or folder of this tree: pages rot where code moves on."""
    text = page.read_text(encoding="utf-8")
    gone = [name for name in NAMED.findall(text) if not list(ROOT.glob(name.rstrip("/")))]
    gone += [link for link in LINKED.findall(CODE.sub("", text)) if not (page.parent / link).exists()]
    assert gone == []


def test_the_search_for_names_finds_some() -> None:
    """The pattern still matches how the pages write paths."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert "nodes/calling.py" in NAMED.findall(text)
    assert "docs/glossary.md" in LINKED.findall(text)


@pytest.mark.parametrize("room", surestep.PACKAGES)
def test_every_room_is_on_the_map(room: str) -> None:
    """ARCHITECTURE.md names each package."""
    assert re.search(rf"^\s*{room}\b|\b{room} ", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
