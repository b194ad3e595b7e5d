"""Rules between the rooms that import-linter cannot say, and that `langgraph.json` opens the right doors."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import surestep
from tests.test_dependencies import FILES

ROOT = Path(__file__).resolve().parent.parent
# The gateway and the nodes are told their settings; only these two ask the process's environment for any.
READERS_OF_THE_ENVIRONMENT = {"checkpoints/location.py", "graph/settings.py"}
# A child that is kept gets all of it with each call, unread: it is the caller's, and no setting of ours.
HANDING_IT_ON = {"tools/errand.py"}
# It is written into for LangGraph, which reads it when it is imported; nobody sets it otherwise.
WRITING_INTO_IT = {"surestep.py"}
# The width of a terminal is no setting: it is the terminal's own word.
READERS_OF_THE_TERMINAL = {"graph/commands/printing.py"}


def names(file: Path) -> str:
    """The path of a source file as people say it."""
    return str(file.relative_to(ROOT))


def modules_imported(file: Path) -> set[str]:
    """The dotted modules that a source file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def attributes(file: Path) -> set[str]:
    """The names after a dot in a source file."""
    return {
        node.attr for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("room", surestep.PACKAGES)
def test_entering_a_room_imports_nothing(room: str) -> None:
    """A package's `__init__` is its docstring alone: importing one module never drags its neighbours in. What has to
    come before LangGraph, in whatever order modules are imported, is the one exception."""
    docstring, *body = ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")).body
    assert isinstance(docstring, ast.Expr)
    strict = ["import surestep"] if room in ("checkpoints", "nodes", "graph") else []
    assert [ast.unparse(node) for node in body] == strict


def test_tools_are_called_in_one_place() -> None:
    """Only the node code that writes ahead makes a safeguarded call: no other path leads to an effect."""
    callers = {names(file) for file in FILES if "tools.call" in modules_imported(file)}
    assert callers == {"nodes/calling.py"}


def test_the_environment_is_read_where_settings_are_made() -> None:
    """Everything else is told its settings: defaults < file < environment < call holds because one place decides."""
    readers = {names(file) for file in FILES if {"environ", "getenv", "environb"} & attributes(file)}
    assert readers - READERS_OF_THE_TERMINAL - HANDING_IT_ON - WRITING_INTO_IT == READERS_OF_THE_ENVIRONMENT


def test_langgraph_accepts_the_configuration() -> None:
    """`langgraph validate` finds nothing wrong with langgraph.json."""
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}
    command = [sys.executable, "-m", "langgraph_cli", "validate"]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **quiet}, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "is valid" in ended.stdout


def test_the_configuration_names_what_is_there() -> None:
    """langgraph.json names the graph, which brings no checkpointer of its own, and our saver; both by module."""
    configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    module, _, attribute = configuration["graphs"]["agent"]["path"].partition(":")
    assert getattr(importlib.import_module(module), attribute).checkpointer is None
    module, _, attribute = configuration["checkpointer"]["path"].rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))
