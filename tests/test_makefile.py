"""The Makefile on machines that lack something: one plain message, and nothing half made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = ROOT / "Makefile"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not on this machine")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make` needs of a checkout to begin setting up."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def program(folder: Path, body: str) -> Path:
    """A stand-in for an interpreter."""
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` in a checkout, its output as text; not as a part of the `make` that may run these tests."""
    command = ["make", "--no-print-directory", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("target", ["demo", "test"])
def test_without_ensurepip_it_says_what_to_install(checkout: Path, tmp_path: Path, target: str) -> None:
    """On a Debian with python3 and no python3-venv, the message names the package, and no .venv is left behind."""
    python = program(tmp_path, 'case "$*" in *ensurepip*) exit 1;; esac')
    ended = make(checkout, f"PYTHON={python}", target)
    assert ended.returncode == 2
    assert "apt-get install python3-venv" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_refused_by_its_version(checkout: Path, tmp_path: Path) -> None:
    """A Python below 3.11 is named with its version, and how to name another one."""
    python = program(tmp_path, 'case "$*" in *version_info*) exit 1;; -V) echo Python 3.9.2;; esac')
    ended = make(checkout, f"PYTHON={python}", "demo")
    assert ended.returncode == 2
    assert "3.11 or newer is needed" in ended.stderr
    assert "Python 3.9.2" in ended.stderr
    assert "make PYTHON=" in ended.stderr


def test_no_python_at_all_is_said(checkout: Path) -> None:
    """Without Python the message says what to install."""
    ended = make(checkout, "PYTHON=no-such-python", "demo")
    assert ended.returncode == 2
    assert "apt-get install python3 python3-venv" in ended.stderr


def test_a_failed_setup_leaves_no_half_made_environment(checkout: Path, tmp_path: Path) -> None:
    """When the environment cannot be made, what was begun is removed: the next try starts anew."""
    python = program(tmp_path, 'case "$*" in "-m venv"*) mkdir -p .venv/bin; exit 1;; esac')
    ended = make(checkout, f"PYTHON={python}", "demo")
    assert ended.returncode == 2
    assert not (checkout / ".venv").exists()


def test_help_lists_every_target() -> None:
    """`make help`, and `make` alone, explain each target a person can call."""
    targets = re.findall(r"^\.PHONY: (.*)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    told = make(ROOT).stdout
    assert [target for target in targets if f"make {target} " not in told] == []


def test_no_index_is_named() -> None:
    """Packages come from wherever pip on this machine takes them: no file of ours names an index or an address."""
    for name in ("Makefile", "constraints.txt", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|index-url|find-links|--hash", text), name


def test_ci_runs_what_the_readme_says() -> None:
    """CI has no command of its own: it runs `make test`."""
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
