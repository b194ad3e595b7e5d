"""The bench's command: `python -m bench` measures all; `python -m bench w2 --rounds 1 --sizes 100,1000` a part."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.crew import ROOT
from bench.figures import Line, table
from bench.server import Server, serving

WORKLOADS = {"w1": 3, "w2": 2, "w3": 5, "w4": 3, "w5": 5, "w6": 5, "w7": 1, "w8": 3, "w9": 5}
"""Each workload's rounds, so that all of them together end within fifteen minutes."""
PAGE = ROOT / "README.md"
PLACE = re.compile(r"(<!-- bench: written by make bench -->\n).*(<!-- bench: end -->\n)", re.DOTALL)
COMPARED = ("langgraph", "langgraph-checkpoint-postgres", "dbos")


def main(arguments: list[str]) -> None:
    """Print the table, and put it into the page if asked; what is being measured goes to stderr."""
    options = _parser().parse_args(arguments)
    with serving(options.folder) as server:
        environment = server.environment()
        lines = _measured(server, options)
        text = f"{table(lines)}\n\n{environment}; load {os.getloadavg()[0]:.1f} at the end. {_versions()}\n"
    print(text)
    if options.readme:
        PAGE.write_text(placed(PAGE.read_text("utf-8"), text), "utf-8")


def _measured(server: Server, options: argparse.Namespace) -> list[Line]:
    lines: list[Line] = []
    for name in options.workloads or WORKLOADS:
        given = {"sizes": options.sizes} if options.sizes else {}
        given |= {"others": options.others} if options.others is not None else {}
        began = time.monotonic()
        lines += importlib.import_module(f"bench.{name}").measure(server, options.rounds or WORKLOADS[name], **given)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return lines


def placed(page: str, text: str) -> str:
    """The page with this text in the place for it."""
    return PLACE.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def _versions() -> str:
    found = []
    for name in COMPARED:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # of a part of the bench that was run without it
            found.append(f"{name} not installed")
    return f"Compared: {', '.join(found)}."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []], help="which to run; all if none is named")
    parser.add_argument("--rounds", type=int, help="how often each pair is measured")
    parser.add_argument("--sizes", type=_numbers, help="numbers of steps (of runs in w3), ascending: 100,1000")
    parser.add_argument("--others", type=_words, help="which others to measure: task,dbos; none if empty")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="where its database is made")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md too")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _words(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


if __name__ == "__main__":
    main(sys.argv[1:])
