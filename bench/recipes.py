"""What is run: a recipe is small enough to be sent to any peer, and says the same steps to all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Shape = Literal["random", "fan", "chain", "ten", "layers"]

MEDIAN_S = 0.1
"""Of the durations in a random DAG, which are log-normal and cut to 20 to 400 ms."""
SIGMA = 0.8


@dataclass(frozen=True, slots=True)
class Task:
    """One step: which it waits for, how long its work takes, and whether its first try fails at the end of that."""

    number: int
    after: tuple[int, ...] = ()
    seconds: float = 0.0
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run, or `copies` equal ones at the same time. Of the steps a share `failing` fails once and is tried again
    `wait_s` seconds later. `ledger` is a file that every call is noted in; `name` makes runs distinct."""

    name: str
    shape: Shape
    size: int
    seed: int = 0
    failing: float = 0.0
    wait_s: float = 0.05
    payload_bytes: int = 2048
    concurrency: int = 8
    effects: bool = False
    copies: int = 1
    ledger: str | None = None

    def tasks(self) -> list[Task]:
        """The steps, each after those it waits for."""
        chance = random.Random(self.seed)  # noqa: S311 (nothing is kept secret by it)
        made = SHAPES[self.shape](self.size, chance)
        fails = random.Random(self.seed + 1)  # noqa: S311 (the same)
        return [
            Task(number, after, seconds, fails.random() < self.failing) for number, (after, seconds) in enumerate(made)
        ]


Steps = Iterator[tuple[tuple[int, ...], float]]


def _random(size: int, chance: random.Random) -> Steps:
    """Up to three dependencies among the dozen steps before; some steps have none."""
    for number in range(size):
        near = range(max(0, number - 12), number)
        after = tuple(sorted(chance.sample(near, min(len(near), chance.choice((0, 1, 1, 2, 3))))))
        yield after, min(0.4, max(0.02, chance.lognormvariate(0.0, SIGMA) * MEDIAN_S))


def _fan(size: int, _chance: random.Random) -> Steps:
    for _ in range(size):
        yield (), 0.0


def _chain(size: int, _chance: random.Random) -> Steps:
    for number in range(size):
        yield ((number - 1,) if number else ()), 0.0


def _ten(_size: int, _chance: random.Random) -> Steps:
    """One step, three branches of two that meet by pairs, and an end: depth 5."""
    for after in ((), (0,), (0,), (0,), (1,), (2,), (3,), (4, 5), (5, 6), (7, 8)):
        yield after, 0.0


def _layers(size: int, chance: random.Random) -> Steps:
    """Layers of ten short steps, each after two of the layer before."""
    for number in range(size):
        start = number // 10 * 10
        after = tuple(sorted(chance.sample(range(start - 10, start), 2))) if start else ()
        yield after, chance.uniform(0.002, 0.01)


SHAPES: Mapping[Shape, Callable[[int, random.Random], Steps]] = MappingProxyType(
    {"random": _random, "fan": _fan, "chain": _chain, "ten": _ten, "layers": _layers}
)


def levels(tasks: list[Task]) -> list[list[int]]:
    """The steps by depth: what an engine with barriers runs at once."""
    depth: list[int] = []
    for task in tasks:
        depth.append(1 + max((depth[number] for number in task.after), default=-1))
    found: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number, level in enumerate(depth):
        found[level].append(number)
    return found
