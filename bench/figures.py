"""What is said about measurements: medians with their range, and lines of the table with PASS or MISS."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.peers.peer import TITLES


@dataclass(frozen=True, slots=True)
class Series:
    """One figure, measured several times."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Series:
        """At least one value."""
        return cls(tuple(values))

    @property
    def median(self) -> float:
        """Half of the values are not above it."""
        return statistics.median(self.values)

    def told(self, unit: str, digits: int = 2) -> str:
        """The median, and the range where there is more than one value."""
        low, high = min(self.values), max(self.values)
        said = f"{_number(self.median, digits)}{unit}"
        return f"{said} ({_number(low, digits)}–{_number(high, digits)})" if len(self.values) > 1 else said


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Series:
    """One to one, measurement by measurement: each pair met the same moments."""
    return Series.of(one / other for one, other in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not pass: the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: what was measured, the number to reach, what came, and the others beside it."""

    workload: str
    what: str
    measured: str
    value: float | None = None
    bound: float | None = None
    at: Literal["most", "least"] = "most"
    unit: str = ""
    beside: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the number was reached; None where there is none to reach."""
        if self.bound is None or self.value is None:
            return None
        return self.value <= self.bound if self.at == "most" else self.value >= self.bound

    @property
    def target(self) -> str:
        """The number to reach."""
        if self.bound is None:
            return ""
        return f"{'≤' if self.at == 'most' else '≥'} {self.bound:,g}{self.unit}"


def side_by_side(found: Mapping[str, str]) -> str:
    """What the others came to, each under its title."""
    return " · ".join(f"{TITLES[name]} {told}" for name, told in found.items())


def table(lines: Sequence[Line]) -> str:
    """The lines as a Markdown table."""
    said = {True: "PASS", False: "MISS", None: ""}
    rows = [
        f"| {line.workload} | {line.what} | {line.target} | {line.measured} | {said[line.reached]} | {line.beside} |"
        for line in lines
    ]
    head = ("| | what | to reach | Surestep: median (least–most) | | others |", "|---|---|---|---|---|---|")
    return "\n".join((*head, *rows))
