"""The page that says what follows when a model's answer goes wrong says what the code does, row by row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodes import model_errors as errors
from nodes.model_errors import AnswerUnusable, ModelFailed
from plans.reader import read_plan

PAGE = (Path(__file__).parents[2] / "docs" / "planning.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
CLASSES = [row for row in ROWS if len(row) == 4 and row[0] != "way"]
READINGS = [row for row in ROWS if len(row) == 3 and row[0] != "way"]


def classes() -> dict[str, type[ModelFailed]]:
    """The classes that are met, by name: those that only gather others are not."""
    found: dict[str, type[ModelFailed]] = {}
    waiting: list[type[ModelFailed]] = [ModelFailed]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__ == errors.__name__ and not kind.__name__.startswith("_"):
            found[kind.__name__] = kind
    return {name: kind for name, kind in found.items() if kind not in (ModelFailed, errors.NotUsable, AnswerUnusable)}


def test_every_class_has_one_row() -> None:
    """None is left out, none is told twice, and each stands in the table of its kind."""
    assert sorted(row[1] for row in CLASSES) == sorted(classes())
    whole = PAGE.partition("## A whole answer")[2]
    for name, kind in classes().items():
        assert (f"| {name} |" in whole) == issubclass(kind, AnswerUnusable)


@pytest.mark.parametrize(("name", "code", "move"), [row[1:] for row in CLASSES])
def test_each_class_has_its_code_and_its_next_move(name: str, code: str, move: str) -> None:
    """As the page says."""
    kind = classes()[name]
    assert (kind.code, kind.next_move) == (code, move)


@pytest.mark.parametrize(("text", "becomes"), [row[1:] for row in READINGS], ids=[row[0] for row in READINGS])
def test_each_example_is_read_as_it_says(text: str, becomes: str) -> None:
    """A draft, a repaired one, or the fault that is told."""
    text = re.sub(r"^(`+) ?(.*?) ?\1$", r"\2", text).replace("```json ", "```json\n").replace(" ```", "\n```")
    reading = read_plan(text)
    if becomes.startswith("a draft"):
        assert reading.draft is not None
        assert reading.repaired == ("repaired" in becomes)
    else:
        assert becomes in [fault.code for fault in reading.faults]
