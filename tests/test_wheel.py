"""The wheel: what is in it, what is not, and that it works away from the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import surestep

ROOT = Path(__file__).resolve().parent.parent
NOT_SHIPPED = ("tests", "bench", "examples", "docs")


def completed(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command run in a folder; its output is part of the failure when it fails."""
    environment = {**os.environ, **variables}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the wheel is built from: a build in the checkout would leave modules behind for the next one."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "surestep.py"):
        shutil.copy(ROOT / name, copy)
    for name in surestep.PACKAGES:
        shutil.copytree(ROOT / name, copy / name)
    for name in NOT_SHIPPED:
        (copy / name).mkdir()
        (copy / name / "__init__.py").write_text('"""Must stay behind."""\n')
    return copy


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the tools that are installed; no index is asked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    completed([*command, "--wheel-dir", str(folder), str(sources)], folder)
    (built,) = folder.glob("surestep-*.whl")
    return built


@dataclass(frozen=True)
class Installed:
    """The wheel unpacked into a folder of its own, with the dependencies of the running interpreter beside it."""

    site: Path
    empty: Path

    def run(self, *arguments: str) -> str:
        """Standard output of `surestep` with these arguments, started in an empty folder."""
        command = [sys.executable, str(self.site / "bin" / "surestep"), *arguments]
        return completed(command, self.empty, PYTHONPATH=str(self.site)).stdout

    def python(self, program: str) -> str:
        """Standard output of a Python program that sees the installed wheel and not the checkout."""
        return completed([sys.executable, "-c", program], self.empty, PYTHONPATH=str(self.site)).stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel installed by pip, apart from the checkout."""
    site, empty = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("empty")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    completed(command, empty)
    return Installed(site, empty)


def test_every_source_and_text_of_the_packages_is_shipped(wheel: Path) -> None:
    """SQL, migrations, prompts, templates and datasets travel with the modules that read them."""
    kept = {file for name in surestep.PACKAGES for file in (ROOT / name).rglob("*") if file.is_file()}
    expected = {str(file.relative_to(ROOT)) for file in kept if "__pycache__" not in file.parts}
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    assert expected - shipped == set()
    assert {Path(name).suffix for name in expected} >= {".py", ".sql", ".md", ".yaml"}


def test_nothing_else_is_shipped(wheel: Path) -> None:
    """Tests, benches, examples and documents stay out of a user's environment, where their names would clash."""
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.partition("/")[0] for name in archive.namelist()}
        compiled = [name for name in archive.namelist() if "__pycache__" in name]
    assert {root for root in roots if not root.endswith(".dist-info")} == {*surestep.PACKAGES, "surestep.py"}
    assert compiled == []


def test_the_installed_modules_are_the_wheels(installed: Installed) -> None:
    """What the next tests run is the wheel, not the checkout that lies on this interpreter's path."""
    printed = installed.python("import surestep, plans; print(surestep.__file__, plans.__file__, surestep.clash())")
    assert printed.split() == [
        str(installed.site / "surestep.py"),
        str(installed.site / "plans" / "__init__.py"),
        "None",
    ]


def test_the_installed_command_answers(installed: Installed) -> None:
    """`pip install` of the wheel gives a working `surestep` in an empty folder, and asking for help leaves it empty."""
    assert "surestep" in installed.run("--help")
    assert list(installed.empty.iterdir()) == []


def test_the_installed_templates_are_found(installed: Installed) -> None:
    """The templates in the wheel are the ones the command offers."""
    printed = json.loads(installed.run("templates", "--json"))
    shipped = {file.stem for file in (ROOT / "nodes" / "templates").glob("[a-z]*.yaml")}
    assert shipped
    assert len(printed["templates"]) == len(shipped)


def test_the_installed_wheel_does_the_main_job(installed: Installed) -> None:
    """Prompts, SQL and migrations are found: a run on a fresh embedded database ends well, away from the checkout."""
    orders = ROOT / "examples" / "data" / "orders.csv"
    goal = "Find anomalous orders in this file and summarise them"
    printed = json.loads(installed.run("run", goal, "--file", f"orders={orders}", "--json"))
    assert printed["status"] == "done"
    assert "27 of them anomalous" in printed["answer"]
    assert "${" not in printed["answer"]
