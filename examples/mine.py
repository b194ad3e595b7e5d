"""A toolkit for the command line: `surestep run --toolkit mine:kit --plan mine.yaml --input name=Ann`, in here."""

from __future__ import annotations

from tools.registry import Toolkit

kit = Toolkit("mine")


@kit.tool(effect="read")
def greet(name: str) -> dict[str, str]:
    """A greeting."""
    return {"text": f"Good morning, {name}!"}
