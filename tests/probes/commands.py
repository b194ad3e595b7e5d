"""Every value that the command line takes: found in the tree of commands itself, so that a new one is probed too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from graph.cli import app

REQUIRED = {
    "THREAD": "mine", "STEP": "s1", "FILE|-": "good.json", "TOOL": "double", "CANDIDATE": "double", "NAME": "ann",
    "RUN": "mine", "TEMPLATE": "anomalous_orders", "SETTING=VALUE...": "timeout_s=3",
}  # fmt: skip
"""What is given for a parameter that has to be there while another one is probed, by what it is called in the help."""
BESIDE = {
    "run": ("--plan", "good.json"),
    "plan": ("--plan", "good.json"),
    "reject": ("--message", "no"),
    "edit": ("--arg", "text=x"),
}
"""What else makes a command get so far that it looks at the other values."""


HERE = "\x01"
PAIRS = {"=": (HERE, f"x={HERE}", f"{HERE}=x"), ":": (f"mykit:{HERE}", f"{HERE}:kit"), "": (HERE,)}


@dataclass(frozen=True)
class Place:
    """One value that one command takes. `is_file` says that it names a file or a folder of the caller's own."""

    command: tuple[str, ...]
    name: str
    is_file: bool
    given: tuple[tuple[str, ...], ...]

    def words(self, value: str) -> Iterator[list[str]]:
        """Command lines with the value in this place, alone and behind a name where it is a pair."""
        for words in self.given:
            yield [*self.command, *(word.replace(HERE, value) for word in words)]

    def __str__(self) -> str:
        return " ".join((*self.command, self.name))


def places() -> list[Place]:
    """All values of all commands, in the order of the help."""
    return [
        place
        for path, command in _commands(typer.main.get_command(app), ())
        for place in _places(path, [each for each in command.params if not getattr(each, "is_flag", False)])
    ]


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, (*path, name))


def _places(path: tuple[str, ...], params: Sequence[Any]) -> Iterator[Place]:
    for probed in params:
        kind, metavar = probed.type_descriptor.annotation, probed.metavar or ""
        is_file = kind is Path or any(word in metavar for word in ("FILE", "FOLDER", "PATH", "URL", "MODULE"))
        values = PAIRS["=" if "=" in metavar else ":" if "MODULE" in metavar else ""]
        given = tuple(_line(path, params, probed, value) for value in values)
        yield Place(path, probed.opts[-1], is_file, given)


def _line(path: tuple[str, ...], params: Sequence[Any], probed: Any, value: str) -> tuple[str, ...]:
    """The words behind a command: what has to be there, what is probed, and `--` before what stands without a name."""
    others = [each for each in params if each is not probed and each.required]
    beside = BESIDE.get(" ".join(path), ())
    options = [word for each in others if _is_option(each) for word in (each.opts[-1], REQUIRED[each.metavar])]
    if probed.opts[-1] not in beside:
        options += beside
    if _is_option(probed):
        options.append(f"{probed.opts[-1]}={value}")
    arguments = [
        value if each is probed else REQUIRED[each.metavar]
        for each in params
        if not _is_option(each) and (each is probed or each.required)
    ]
    return (*options, *(("--", *arguments) if arguments else ()), *(() if path else ("runs",)))


def _is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")
