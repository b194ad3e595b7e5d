"""A plan's verdict as a person reads it: the faults by step, each with its place and what would be right, short."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graph.commands.printing import console, harmless
from plans.wording import counted

if TYPE_CHECKING:
    from graph.validation import Validation
    from plans.faults import Fault

WIDEST = 80
"""Columns that are used, also where there are more: a sentence is read best so."""
MOST_SHOWN = 50
"""Faults that are shown to a person; the errors come first. As JSON they are all there."""


def verdict_lines(found: Validation, *, width: int = WIDEST) -> Iterator[str]:
    """The faults that are shown, each under its step and in the plan's order; the last line is the verdict."""
    shown = _first(found.faults)
    for title, faults in _by_step(shown).items():
        yield title
        for fault in faults:
            yield from _fault_lines(fault, min(width, WIDEST))
    if hidden := len(found.faults) - len(shown):
        yield f"and {counted(hidden, 'more fault')}; --json has all of them"
    if shown:
        yield ""
    yield _verdict(found)


def _verdict(found: Validation) -> str:
    errors = sum(fault.severity == "error" for fault in found.faults)
    said = [counted(errors, "fault")] if errors else []
    if found.plan:
        said.append(counted(len(found.plan["steps"]), "step"))
    if warned := len(found.faults) - errors:
        said.append(counted(warned, "warning"))
    repaired = " (repaired: the text was not the plan as it stands)" if found.repaired and found.valid else ""
    return f"{'valid' if found.valid else 'not valid'}: {', '.join(said)}{repaired}"


def _first(faults: Sequence[Fault]) -> list[Fault]:
    """The most important faults, in the order in which they were found."""
    if len(faults) <= MOST_SHOWN:
        return list(faults)
    kept = sorted(range(len(faults)), key=lambda place: (faults[place].severity != "error", place))[:MOST_SHOWN]
    return [faults[place] for place in sorted(kept)]


def _by_step(faults: Iterable[Fault]) -> Mapping[str, list[Fault]]:
    """The faults of the plan as a whole, then those of each step, in the plan's order."""
    placed = sorted(faults, key=lambda fault: _position(fault.path))
    found: dict[str, list[Fault]] = {}
    for fault in placed:
        found.setdefault(_title(fault), []).append(fault)
    return found


def _position(path: str) -> int:
    number = path.removeprefix("steps[").partition("]")[0] if path.startswith("steps[") else ""
    return int(number) if number.isdecimal() else -1


def _title(fault: Fault) -> str:
    position = _position(fault.path)
    if position < 0:
        return f"step {fault.step}" if fault.step else "the plan"
    return f"step {fault.step} (steps[{position}])" if fault.step else f"steps[{position}]"


def _fault_lines(fault: Fault, width: int) -> Iterator[str]:
    within = fault.path.partition("].")[2] if fault.path.startswith("steps[") else fault.path
    where = f" at {within}" if within else ""
    yield from _wrapped(f"{fault.severity}: {fault.code}{where}: {fault.message}", width, "  ", "    ")
    if fault.fix:
        yield from _wrapped(f"→ {fault.fix}", width, "    ", "      ")


def _wrapped(text: str, width: int, first: str, others: str) -> Iterator[str]:
    """The text in lines of at most so many columns; wide characters count as two."""
    from rich.text import Text

    lines = Text(harmless(text)).wrap(console(file=io.StringIO()), width - len(others), overflow="fold")
    for number, line in enumerate(lines):
        yield f"{others if number else first}{line.plain.rstrip()}"
