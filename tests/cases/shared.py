"""Where the shared case files are, and what their tests have in common: they skip where the folder is absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def needs(name: str) -> list[pytest.MarkDecorator]:
    """The marks of a test that reads this file."""
    missing = not (CASES / name).exists()
    return [pytest.mark.cases, pytest.mark.skipif(missing, reason=f"{name} is not beside this checkout")]


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file; none where it is absent."""
    file = CASES / name
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
