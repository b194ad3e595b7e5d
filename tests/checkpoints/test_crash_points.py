"""The names of the commit points: each stands where the engine can die, once, and nobody listens in production."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints import crash_points
from checkpoints.crash_points import KEEPING, POINTS, SAYING, SWEEPING, reached

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("plans", "tools", "checkpoints", "nodes", "graph", "evals")


def names_in(source: str) -> Iterator[str]:
    """The names of the points that this source reaches; what is not a plain name is given as its own text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "reached":
            match node.args:
                case [ast.Constant(value=str(name))]:
                    yield name
                case _:
                    yield ast.unparse(node)


def test_every_point_stands_in_the_code_once_and_no_other_does() -> None:
    """A point that nothing reaches, a name that is not explained, or one name for two places is an error."""
    sources = [path.read_text("utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    found = Counter(name for source in sources for name in names_in(source))
    assert found == Counter(dict.fromkeys([*POINTS, *KEEPING, *SAYING, *SWEEPING], 1))


def test_a_point_calls_who_listens_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process of the tests hears of each point it reaches, in order; without it a point does nothing."""
    assert crash_points.hook is None
    reached("run.created")
    heard: list[str] = []
    monkeypatch.setattr(crash_points, "hook", heard.append)
    reached("run.created")
    reached("lease.acquired")
    assert heard == ["run.created", "lease.acquired"]
