"""What the packages import is what the wheel declares, and what is pinned is a version and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import surestep

ROOT = Path(__file__).resolve().parent.parent
OURS = {*surestep.PACKAGES, "surestep"}
FILES = [ROOT / "surestep.py", *(file for name in surestep.PACKAGES for file in (ROOT / name).rglob("*.py"))]
FOR_USERS = ("auth", "mcp", "presidio", "s3")
# Released and pinned together with what is declared.
PART_OF = {"psycopg_pool": "psycopg", "pydantic_core": "pydantic", "pydantic_monty": "pydantic-monty",
           "cryptography": "pyjwt"}  # fmt: skip


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    """The distributions that pyproject.toml asks for at run time, by itself or in an extra for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name in FOR_USERS for line in lines]
    return {normal(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in [*project["dependencies"], *extras]}


def imported(source: str) -> Iterator[str]:
    """The top-level names that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_every_import_is_declared() -> None:
    """A module of ours imports the standard library, ourselves, or something pyproject.toml asks for by name."""
    homes = packages_distributions()
    foreign = {name for file in FILES for name in imported(file.read_text(encoding="utf-8"))}
    foreign = {PART_OF.get(name, name) for name in foreign - {*sys.stdlib_module_names, *OURS}}
    known = declared()
    missing = {name for name in foreign if not {normal(home) for home in homes.get(name, [name])} & known}
    assert foreign
    assert missing == set()


def test_everything_declared_is_pinned() -> None:
    """Each dependency has its exact version in constraints.txt, so that a fresh checkout gets what was tested."""
    assert declared() <= set(pins())


def test_pins_name_versions_only() -> None:
    """constraints.txt holds `name==version` lines: no addresses, no hashes, no options, nothing twice."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line) for line in lines if not line.startswith("#"))
    assert len(pins()) == sum(not line.startswith("#") for line in lines)


def pins() -> dict[str, str]:
    """Version by distribution, from constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines) if version}
