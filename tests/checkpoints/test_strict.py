"""LangGraph makes only named types out of checkpoints, by whatever door a process comes in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The library and what langgraph.json names; the command line imports the first of them. The other modules of these
# rooms come after the same `__init__` (tests/test_rooms.py).
DOORS = ("graph.agent", "checkpoints.saver", "nodes.state")

ASKED = """
import sys, importlib
importlib.import_module(sys.argv[1])
import langgraph.graph
from langgraph._internal import _serde
from langgraph.checkpoint.serde import _msgpack
assert _msgpack.STRICT_MSGPACK_ENABLED and _serde.STRICT_MSGPACK_ENABLED
"""

# A blob that names a callable which is in nobody's list, as somebody with access to the database could write it.
CRAFTED = """
import subprocess, sys
if sys.argv[1] == "langgraph first":
    import langgraph.checkpoint.serde.jsonplus
from checkpoints.serializer import StateSerializer
from plans.errors import VersionTooNew
import ormsgpack
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_POS_ARGS
touched = sys.argv[2]
call = ormsgpack.packb(("subprocess", "getoutput", [f"touch {touched}"]))
blob = ormsgpack.packb(ormsgpack.Ext(EXT_CONSTRUCTOR_POS_ARGS, call))
try:
    StateSerializer().loads_typed(("msgpack", blob))
except VersionTooNew as refused:
    print(refused)
"""


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program in a fresh process whose environment says nothing about it."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_each_door_makes_langgraph_strict_before_it_is_imported(door: str) -> None:
    """A fresh process that imports this module first has LangGraph's own strict mode, without anybody's setting."""
    asked = python(ASKED, door)
    assert asked.returncode == 0, asked.stderr


def test_a_server_that_has_langgraph_already_is_told_by_its_configuration() -> None:
    """`langgraph dev` imports LangGraph before our modules: langgraph.json says it for the server's process."""
    configured = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    assert configured["env"] == {"LANGGRAPH_STRICT_MSGPACK": "true"}


@pytest.mark.parametrize("order", ["ours first", "langgraph first"])
def test_a_crafted_blob_calls_nothing(order: str, tmp_path: Path) -> None:
    """A blob that names a function of the standard library is refused, and the function is not called: also in a
    program that has imported LangGraph before Surestep."""
    touched = tmp_path / "touched"
    ended = python(CRAFTED, order, str(touched))
    assert "subprocess.getoutput" in ended.stdout, ended.stderr
    assert not touched.exists()
