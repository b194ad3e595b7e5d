"""The page of guarantees names a test for each rule, and each test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from checkpoints.crash_points import KEEPING, POINTS, SAYING, SWEEPING

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
RULES = 23
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rules() -> dict[int, str]:
    """The cell of tests of each rule."""
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", PAGE, re.MULTILINE)
    return {int(number): tests for number, tests in rows}


def functions_in(path: str) -> set[str]:
    """The names of the functions in a file; none, if there is no such file."""
    if not (ROOT / path).exists():
        return set()
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_rule_names_its_tests_or_says_that_it_is_open() -> None:
    """No rule is left out, and one without a test says so in its row."""
    assert sorted(rules()) == list(range(1, RULES + 1))
    assert [number for number, tests in rules().items() if not NAMED.search(tests) and "open: " not in tests] == []


def test_every_test_that_the_page_names_exists() -> None:
    """A test that was renamed or removed is missed here: a guarantee without its test is a claim."""
    named = NAMED.findall(PAGE)
    assert len(named) > RULES
    assert [f"{path}::{name}" for path, name in named if name not in functions_in(path)] == []


def test_the_page_names_no_crash_point_that_does_not_exist() -> None:
    """The points in the table are those of the code."""
    rooms = {name.partition(".")[0] for name in (*POINTS, *KEEPING, *SAYING, *SWEEPING)}
    named = set(re.findall(rf"`((?:{'|'.join(sorted(rooms))})\.\w+)`", PAGE))
    assert len(named) > 5
    assert named <= {*POINTS, *KEEPING, *SAYING, *SWEEPING}


def test_every_claim_of_the_threat_model_names_code_and_a_test_that_exist() -> None:
    """What is said to hold is held by a file and shown by a test; a line without both is a wish."""
    page = (ROOT / "THREAT_MODEL.md").read_text("utf-8")
    claims = [
        line
        for line in page.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| tries", "| can |"))
    ]
    assert len(claims) > 30
    assert [line for line in claims if not NAMED.search(line)] == []
    assert [f"{path}::{name}" for path, name in NAMED.findall(page) if name not in functions_in(path)] == []
