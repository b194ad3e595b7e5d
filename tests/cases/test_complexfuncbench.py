"""279 recorded travel-booking plans, run with tools that answer only for exactly the recorded arguments."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from graph.settings import Settings
from plans.failure import ToolFailure
from plans.references import resolve
from plans.values import canonical
from tools.registry import Toolkit

FOLDER = Path(__file__).parents[3] / "shared" / "cases" / "complexfuncbench"
pytestmark = [
    pytest.mark.cases,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared case files are not beside this checkout"),
    pytest.mark.timeout(600),
]


def cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(case, recorded answers by step id) for every plan."""
    with gzip.open(FOLDER / "responses.jsonl.gz", "rt", encoding="utf-8") as lines:
        answers = {case["id"]: case["responses"] for case in map(json.loads, lines)}
    plans = [json.loads(line) for line in (FOLDER / "plans.jsonl").read_text("utf-8").splitlines()]
    return [(case, answers[case["id"]]) for case in plans]


class Recorded:
    """The tools of one case: each call must be one of its steps', with exactly that step's arguments, once."""

    def __init__(self, plan: dict[str, Any], answers: dict[str, Any]) -> None:
        self.waiting: dict[tuple[str, str], list[Any]] = {}
        for step in plan["steps"]:
            args = resolve(step["args"], answers.__getitem__)
            self.waiting.setdefault((step["tool"], canonical(args)), []).append(answers[step["id"]])

    def call(self, tool: str, args: dict[str, Any]) -> Any:
        """The recorded answer; a failure for arguments that no step of this case has."""
        found = self.waiting.get((tool, canonical(args)))
        if not found:
            raise ToolFailure("INVALID_ARGS", f"{tool} was never called with {canonical(args)[:200]}")
        return found.pop(0)


async def test_every_recorded_plan_ends_done_and_each_step_gets_exactly_its_own_arguments(
    database_url: str, tmp_path: Path
) -> None:
    """279 of 279 are done; every recorded call is made exactly once, and no other."""
    current: list[Recorded] = []
    kit = Toolkit("recorded")
    for name in sorted({step["tool"] for case, _ in cases() for step in case["plan"]["steps"]}):
        kit.add(_answering(current, name), name=name, args_schema={"type": "object"}, effect="read")
    settings = Settings.load(environment={}, database_url=database_url, folder=tmp_path, output=tmp_path / "out")
    done = 0
    async with open_agent([kit], settings=settings) as agent:
        for case, answers in cases():
            current.append(Recorded(case["plan"], answers))
            result = await agent.run(case["goal"], plan=case["plan"])
            assert result.status == "done", (case["id"], result.answer)
            assert not any(current[-1].waiting.values()), case["id"]
            done += 1
    assert done == 279


def _answering(current: list[Recorded], name: str) -> Any:
    """The tool of this name in whichever case is run now."""

    async def call(**args: Any) -> Any:
        return current[-1].call(name, args)

    return call
