"""Every file in examples/ runs as it says, in a folder of its own and on a real database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.nodes.model_server import ScriptedModel

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(folder: Path, database_url: str, *command: str, **environment: str) -> str:
    """What an example prints; it must end well."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "SURESTEP_DATABASE_URL": database_url, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("example", "arguments", "printed"),
    [
        ("own_tools.py", (), "done - It is warmest in Heidelberg: 35.0 °C"),
        ("approvals.py", (), "bob failed - a person has rejected transfer of step bob: too much"),
        ("files.py", (str(EXAMPLES / "data" / "orders.csv"),), "404 rows in orders.csv, 27 of them anomalous"),
        ("stream.py", (), "dispatch -> run"),
        ("mcp_server.py", (), "done - note 1 says: buy milk"),
        ("service.py", (), "done - Ulm: 10.5 °C"),
    ],
)
def test_an_example_prints_what_it_promises(
    database_url: str, tmp_path: Path, example: str, arguments: tuple[str, ...], printed: str
) -> None:
    """Run as its first line says, it ends well and prints the result."""
    assert printed in run(tmp_path, database_url, str(EXAMPLES / example), *arguments)


def test_the_example_with_a_model_plans_and_runs(database_url: str, tmp_path: Path, httpserver: HTTPServer) -> None:
    """Against an OpenAI-compatible server on this machine, the model's plan is shown and run."""
    endpoint = ScriptedModel(httpserver)
    endpoint.answers(json.dumps({"goal": "g", "steps": [{"id": "s1", "tool": "double", "args": {"number": 21}}]}))
    environment = {"SURESTEP_MODEL": "scripted", "OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "key-1"}
    printed = run(tmp_path, database_url, str(EXAMPLES / "model.py"), **environment)
    assert "s1: double {'number': 21}" in printed
    assert '{"number": 42}' in printed


def test_the_toolkit_for_the_command_line_runs_its_plan(database_url: str, tmp_path: Path) -> None:
    """`--toolkit mine:kit --plan mine.yaml` from the examples' folder."""
    environment = {"SURESTEP_OUTPUT": str(tmp_path / "out"), "SURESTEP_FOLDER": str(tmp_path / "surestep")}
    command = ("-m", "surestep", "run", "--toolkit", "mine:kit", "--plan", "mine.yaml", "--input", "name=Ann", "--json")
    assert json.loads(run(EXAMPLES, database_url, *command, **environment))["answer"] == "Good morning, Ann!"


def test_every_example_is_run() -> None:
    """A new file in examples/ is named in this file, or this fails."""
    named = Path(__file__).read_text("utf-8")
    left = [file.name for file in EXAMPLES.glob("*.py") if file.name not in named and f"{file.stem}:kit" not in named]
    assert left == []
