"""Experiments: the shipped goals are planned and scored offline, nothing is sent, and a bar makes a regression fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evals.dataset import read_goals, shipped
from evals.evaluators import MEASURES
from evals.experiment import run_experiment
from plans.errors import InvalidInput, ModelNotConfigured
from plans.plan import Plan


class Sink:
    """A server on this machine that counts whatever is sent to it."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sink.requests.append(self.path)
                self.send_response(202)
                self.end_headers()

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def sink() -> Iterator[Sink]:
    """The sink, serving."""
    found = Sink()
    thread = Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def surestep_eval(database_url: str, folder: Path, *arguments: str, **environment: str) -> Any:
    """`surestep eval run` as a child process."""
    return subprocess.run(
        [sys.executable, "-m", "surestep", "eval", "run", *arguments],
        cwd=folder,
        env={**os.environ, "SURESTEP_DATABASE_URL": database_url, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_the_shipped_goals_are_twenty_in_two_languages_over_both_toolkits() -> None:
    """The dataset is what the README says it is."""
    goals = read_goals(shipped())
    tools = {tool for goal in goals for tool in goal.expected.tools}
    assert len(goals) == 20
    assert {goal.language for goal in goals} == {"en", "zh"}
    assert {"render_report", "send_reply"} <= tools


def test_every_shipped_goal_gets_a_perfect_plan_offline_and_nothing_is_sent(
    database_url: str, tmp_path: Path, sink: Sink
) -> None:
    """All means are 1.0 without a model, the JSON is written, and LangSmith's service hears nothing at all."""
    told = {"LANGSMITH_API_KEY": "key-1", "LANGSMITH_ENDPOINT": sink.url, "LANGSMITH_TRACING": "true"}
    done = surestep_eval(database_url, tmp_path, "--bar", "1.0", "--json", "--output", "scores.json", **told)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(done.stdout)
    assert printed == json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert printed["means"] == dict.fromkeys(MEASURES, 1.0)
    assert sink.requests == []


def test_a_bar_that_is_not_reached_exits_1_and_the_table_names_the_measure(database_url: str, tmp_path: Path) -> None:
    """A dataset that a plan cannot satisfy fails the command."""
    case = {"id": "x", "goal": "which orders are late?", "expected": {"tools": ["find_orders", "get_order"]}}
    (tmp_path / "own.jsonl").write_text(json.dumps(case) + "\n", "utf-8")
    done = surestep_eval(database_url, tmp_path, "--dataset", "own.jsonl", "--bar", "0.9")
    assert done.returncode == 1
    assert "coverage" in done.stdout
    assert "0.50" in done.stdout


async def test_a_goal_that_nothing_can_plan_counts_with_zero_and_says_why() -> None:
    """Errors of the planner are scores, not gaps."""

    async def no_planner(goal: str, files: dict[str, Path]) -> Plan:
        raise ModelNotConfigured("no model is configured")

    goals = read_goals(shipped())[:2]
    experiment = await run_experiment(shipped(), goals, no_planner)
    assert experiment.means == dict.fromkeys(MEASURES, 0.0)
    assert [goal.error for goal in experiment.goals] == ["no model is configured"] * 2


def test_a_broken_dataset_is_refused_with_every_wrong_line(tmp_path: Path) -> None:
    """Each wrong line is named, with what is wrong."""
    path = tmp_path / "broken.jsonl"
    path.write_text('{"id": "a"}\n\nnot json\n', "utf-8")
    with pytest.raises(InvalidInput, match=r"line 1: .*goal.*line 3"):
        read_goals(path)
