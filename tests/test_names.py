"""A user's folder named like a package of ours is told plainly, before anything breaks far from the cause."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surestep

ROOT = Path(__file__).resolve().parent.parent


def in_project(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Python with the user's project first on its path, as PYTHONPATH would put it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def package(project: Path, name: str) -> Path:
    """A package of the user's with this name."""
    folder = project / name
    folder.mkdir()
    (folder / "__init__.py").write_text('"""The user\'s own."""\n')
    return folder


def test_our_own_tree_has_no_clash() -> None:
    """Where every name finds Surestep's own package, nothing is refused."""
    assert surestep.clash() is None
    surestep.refuse_foreign_packages()


@pytest.mark.parametrize("name", surestep.PACKAGES)
def test_the_command_line_names_the_clashing_folder_and_ends_with_2(tmp_path: Path, name: str) -> None:
    """`surestep` beside a package of the same name says which folder clashes and what to do, in one plain message."""
    folder = package(tmp_path, name)
    ended = in_project(tmp_path, "-m", "surestep", "--help")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert f"the folder {folder} has the name of Surestep's own package {name!r}" in ended.stderr
    assert f"keep {tmp_path} off PYTHONPATH" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_clashes_are_told_at_once(tmp_path: Path) -> None:
    """Every clash is named in the one message, so that nobody mends them one by one."""
    package(tmp_path, "tools")
    (tmp_path / "nodes.py").write_text("")
    ended = in_project(tmp_path, "-m", "surestep")
    assert f"the folder {tmp_path / 'tools'}" in ended.stderr
    assert f"the file {tmp_path / 'nodes.py'}" in ended.stderr


def test_a_plain_folder_without_init_is_no_clash(tmp_path: Path) -> None:
    """A folder that is no package hides nothing: Python still finds ours."""
    (tmp_path / "tools").mkdir()
    ended = in_project(tmp_path, "-c", "import surestep; surestep.refuse_foreign_packages(); print('ours')")
    assert (ended.returncode, ended.stdout) == (0, "ours\n")


@pytest.mark.parametrize("name", ["tools", "checkpoints", "nodes"])
def test_a_library_user_gets_a_name_clash(tmp_path: Path, name: str) -> None:
    """`from graph.agent import open_agent` beside a package of our name raises NameClash, which says where it is."""
    folder = package(tmp_path, name)
    ended = in_project(tmp_path, "-c", "from graph.agent import open_agent")
    assert f"plans.errors.NameClash: the folder {folder}" in ended.stderr


def test_a_foreign_plans_package_is_told_too(tmp_path: Path) -> None:
    """Where the home of NameClash itself is hidden (in an installation for development it can be found), an
    ImportError says the same."""
    folder = package(tmp_path, "plans")
    ended = in_project(tmp_path, "-c", "from graph.agent import open_agent")
    assert re.search(rf"^(ImportError|plans\.errors\.NameClash): the folder {folder} has", ended.stderr, re.MULTILINE)


def test_a_project_with_evals_of_its_own_can_use_the_library(tmp_path: Path) -> None:
    """The library never imports `evals`, a name that many projects have: only the command line refuses it."""
    package(tmp_path, "evals")
    ended = in_project(tmp_path, "-c", "import graph.names; print('ours')")
    assert (ended.returncode, ended.stdout) == (0, "ours\n")


def test_a_missing_package_says_to_install_again(tmp_path: Path) -> None:
    """A torn installation is not called a clash."""
    (tmp_path / "surestep.py").write_text((ROOT / "surestep.py").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "surestep.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "package 'plans' of Surestep is missing" in ended.stderr
    assert "install Surestep again" in ended.stderr
