"""Goals with known answers: which tools a good plan uses, and which of them must come before which."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plans.errors import InvalidInput


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expected(_Frozen):
    """Tools as a multiset (a tool twice stands twice), and pairs (earlier, later) that the plan's order must keep."""

    tools: tuple[str, ...] = Field(min_length=1)
    before: tuple[tuple[str, str], ...] = ()


class Goal(_Frozen):
    """One case. `files` maps an input's name to a file beside the dataset."""

    id: str
    goal: str
    language: str = "en"
    files: dict[str, str] = Field(default_factory=dict)
    expected: Expected


def shipped() -> Path:
    """The dataset that comes with Surestep: twenty goals over both toolkits, in English and Chinese."""
    return Path(str(files("evals").joinpath("datasets", "goals.jsonl")))


def read_goals(path: Path) -> list[Goal]:
    """The goals of a JSONL file, blank lines aside. Raises InvalidInput that names each line that is wrong."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the dataset {path} cannot be read: {error}") from None
    goals, wrong = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            goals.append(Goal.model_validate(json.loads(line)))
        except (ValueError, ValidationError) as error:
            wrong.append(f"line {number}: {_first_line(error)}")
    if wrong or not goals:
        raise InvalidInput(f"the dataset {path} cannot be used: {'; '.join(wrong) or 'it holds no goal'}")
    if twice := {goal.id for goal in goals if sum(other.id == goal.id for other in goals) > 1}:
        raise InvalidInput(f"the dataset {path} has goals with one id: {', '.join(sorted(twice))}")
    return goals


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
    return str(error).splitlines()[0]
