"""The `surestep` command, and the check that its packages are the ones Python finds.

Surestep's packages have plain names (plans, tools, checkpoints, nodes, graph, evals). A project with a folder of the
same name earlier on the path would stand in for one of them and break far from the cause. So this module, which
imports none of them before the check, is where every entry begins.

Importing it also has LangGraph make only named types out of checkpoints. LangGraph reads that when it is imported, so
each room that imports LangGraph imports this module before; a program that has imported LangGraph earlier still has our
saver's own list.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

LIBRARY = ("plans", "tools", "checkpoints", "nodes", "graph")
PACKAGES = (*LIBRARY, "evals")
USAGE = 2  # the exit code of a usage or configuration error

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

_HOME = Path(__file__).resolve().parent


def refuse_foreign_packages() -> None:
    """Raise NameClash when Python finds something else under a name the library needs; the message says what to do.

    The library never imports `evals`, so a folder of that name, which many projects have, is no clash here. Where
    even `plans` is foreign, its NameClash cannot be imported, and an ImportError carries the same message.
    """
    message = clash(LIBRARY)
    if message is None:
        return
    try:
        from plans.errors import NameClash
    except ImportError:
        raise ImportError(message) from None
    raise NameClash(message)


def clash(names: Sequence[str] = PACKAGES) -> str | None:
    """What stands in for packages of ours and what to do about it, in one message; None when all of them are ours."""
    found = {name: _where(name) for name in names}
    foreign = {name: place for name, place in found.items() if place != _HOME / name}
    if not foreign:
        return None
    return "\n".join([*(_sentence(name, place) for name, place in foreign.items()), _remedy(foreign)])


def main() -> None:
    """Run the command line; exit 2 with one plain message when a name clashes."""
    message = clash()
    if message is not None:
        sys.stderr.write(f"surestep: {message}\n")
        raise SystemExit(USAGE)
    from evals.cli import app as evals
    from graph.cli import app
    from graph.cli import main as command_line

    app.add_typer(evals, name="eval")
    command_line()


def _where(name: str) -> Path | None:
    """The folder or file that an import of this top-level name would load, or has loaded; None when there is none."""
    try:
        spec = find_spec(name)
    except ValueError:  # somebody put a module without a spec into sys.modules
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None


def _sentence(name: str, place: Path | None) -> str:
    """One clash as a person would say it."""
    if place is None:
        return f"package {name!r} of Surestep is missing from {_HOME}; install Surestep again."
    kind = "folder" if place.is_dir() else "file"
    return f"the {kind} {place} has the name of Surestep's own package {name!r} and hides it."


def _remedy(foreign: dict[str, Path | None]) -> str:
    """What to do about the clashes; empty when there is nothing to rename."""
    folders = sorted({str(place.parent) for place in foreign.values() if place is not None})
    if not folders:
        return ""
    return f"Rename it, or keep {' and '.join(folders)} off PYTHONPATH and run from another folder."


if __name__ == "__main__":
    main()
