"""The legal moves of a step run, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Status = Literal["pending", "running", "done", "failed", "skipped"]

MOVES: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        "pending": frozenset({"running", "failed", "skipped"}),
        "running": frozenset({"done", "failed", "skipped"}),
        "failed": frozenset({"pending"}),
        "done": frozenset(),
        "skipped": frozenset(),
    }
)
"""`pending → failed` is a refusal before start; `failed → pending` happens through a verdict only, as a new attempt;
`running → skipped` is the settlement of an unknown outcome."""

SETTLED: frozenset[Status] = frozenset({"done", "skipped"})


class IllegalMove(Exception):
    """A bug: some code tried a move that the table does not have."""


def move(before: Status, after: Status) -> Status:
    """`after`, if a step run may go there from `before`."""
    if after not in MOVES[before]:
        raise IllegalMove(
            f"a step run cannot go from {before} to {after}; from {before} it may go to {sorted(MOVES[before])}"
        )
    return after
