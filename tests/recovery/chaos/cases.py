"""Which trials there are: each has a name that says everything about it, so that one alone can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.recovery.child import Durability
from tests.recovery.kit import WIRE

Kind = Literal["kill", "interrupt", "random", "together", "stop", "cut", "cut-random", "restart", "full"]

DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
RENEWED: Mapping[str, Any] = {"lease_s": 3.0, "slow_s": 1.5}
"""A lease that is renewed within the run."""
WITHOUT_POINT: Mapping[Kind, int] = {"together": 20, "cut-random": 30, "restart": 10, "full": 3}
"""How many trials there are of the kinds whose moment is random."""
EFFECT_POINTS = ("effect.intended", "effect.returned", "journal.before_batch", "journal.batch_committed")
"""Points at which every coming is stopped at: each is another effect, or rows of another one."""


@dataclass(frozen=True)
class Case:
    """One trial. Where it has no point, its moment comes from the seed and its number `nth`."""

    kind: Kind
    nth: int
    point: str | None = None
    durability: Durability | None = None

    def __str__(self) -> str:
        return "/".join(str(part) for part in (self.kind, self.nth, self.point, self.durability) if part is not None)

    @classmethod
    def read(cls, name: str) -> Case:
        """The case of this name."""
        kind, nth, *more = name.split("/")
        named: dict[str, Any] = dict(zip(("point", "durability"), more, strict=False))
        return cls(kind, int(nth), **named)  # type: ignore[arg-type]  # an unknown kind is refused by who runs it

    def chance(self, seed: int) -> random.Random:
        """The random numbers of this case."""
        return random.Random(f"{seed}/{self}")  # noqa: S311 - chance that can be had again is the purpose


def all_cases(
    seed: int, points: Sequence[str], comings: Mapping[Durability, Mapping[str, int]], kills: int
) -> Iterator[Case]:
    """All trials: `comings` says how often a run without a stop comes to each point, `kills` how many random kills."""
    chosen = random.Random(seed)  # noqa: S311 - the same trials every time
    for durability in DURABILITIES:
        for point in points:
            if not (times := comings[durability].get(point, 0)):
                continue  # of a withdrawal, which a run that ends well does not come to
            later = sorted(chosen.sample(range(2, times + 1), min(2, times - 1))) if times > 1 else []
            yield from (Case("kill", nth, point, durability) for nth in (1, *later))
            yield Case("interrupt", chosen.randint(1, times), point, durability)
    yield from (Case("random", number) for number in range(kills))
    for point in (point for point in points if comings["async"].get(point)):
        last = min(comings["async"].get(point, 1), 5) if point in EFFECT_POINTS else 1
        yield from (Case("stop", nth, point) for nth in range(1, last + 1))
        yield from (Case("cut", nth, point) for nth in range(1, last + 1))
    yield from (Case("stop", nth, WIRE) for nth in range(1, comings["async"].get(WIRE, 0) + 1))
    for kind, count in WITHOUT_POINT.items():
        yield from (Case(kind, number) for number in range(count if kills else 0))
