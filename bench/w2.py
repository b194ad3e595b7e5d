"""W2: what one step costs when its work takes no time and its result has 2 KB; and the bytes that it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from bench.crew import Member, Timed, crew, member
from bench.figures import Line, Series, side_by_side
from bench.recipes import Recipe, Shape
from bench.server import Server, fetched

SIZES = (100, 1_000, 10_000)
OTHERS = ("task", "dbos", "send", "send-sync")
OTHERS_SIZES = (50, 250)
"""Of the others: their cost per step grows with the plan, and ten thousand steps would take an hour."""
RAW_STEPS = 200
PAYLOAD = 2048

TABLE_BYTES = """
    SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND (n.nspname = 'surestep' OR c.relname LIKE 'checkpoint%')
"""


@dataclass(frozen=True)
class Kind:
    """One way to arrange the steps, and what one of them may cost in ms (None: a multiple of two raw commits)."""

    name: str
    shape: Shape
    effects: bool
    bound_ms: float | None

    def recipe(self, size: int, round_: int) -> Recipe:
        """So many steps of this kind."""
        return Recipe(f"w2-{self.name}-{round_}-{size}", self.shape, size, effects=self.effects, payload_bytes=PAYLOAD)


KINDS = (
    Kind("fan-out of reads", "fan", effects=False, bound_ms=0.8),
    Kind("chain of reads", "chain", effects=False, bound_ms=1.0),
    Kind("chain of effects", "chain", effects=True, bound_ms=None),
)


@dataclass
class Costs:
    """Seconds of one kind by size, round by round, and of two raw commits in the same seconds."""

    by_size: dict[int, list[float]] = field(default_factory=dict)
    cpu_by_size: dict[int, list[float]] = field(default_factory=dict)
    raw_s: list[float] = field(default_factory=list)

    def slopes(self, small: int, large: int) -> Series:
        """Cost per step in ms, from the difference of two sizes, round by round."""
        return _slopes(self.by_size, small, large)

    def cpu_slopes(self, small: int, large: int) -> Series:
        """The same of the peer's processor time, without the database's."""
        return _slopes(self.cpu_by_size, small, large)

    def add(self, size: int, timed: Timed) -> None:
        """One more run of this size."""
        self.by_size.setdefault(size, []).append(timed.wall_s)
        self.cpu_by_size.setdefault(size, []).append(timed.cpu_s)

    def fixed(self, small: int, large: int) -> Series:
        """What a run costs whatever its size, in ms."""
        slopes = self.slopes(small, large).values
        pairs = zip(self.by_size[small], slopes, strict=True)
        return Series.of(seconds * 1_000 - slope * small for seconds, slope in pairs)


def _slopes(by_size: dict[int, list[float]], small: int, large: int) -> Series:
    pairs = zip(by_size[small], by_size[large], strict=True)
    return Series.of((more - less) / (large - small) * 1_000 for less, more in pairs)


def measure(server: Server, rounds: int, sizes: Sequence[int] = SIZES, others: Sequence[str] = OTHERS) -> list[Line]:
    """Cost per step of each kind, ours at all sizes, the others' at small ones; then the bytes."""
    costs = {kind.name: Costs() for kind in KINDS}
    beside = {kind.name: {name: Costs() for name in others} for kind in KINDS}
    with crew(server, ("surestep", "raw", *others)) as peers:
        for peer in peers.values():
            peer.run(Recipe("w2-first", "fan", 20))
        for round_ in range(rounds):
            for kind in KINDS:
                _ours(peers, kind, costs[kind.name], round_, sizes)
                for name in others if kind.bound_ms and not round_ else ():
                    _timed(peers[name], kind, beside[kind.name][name], round_, OTHERS_SIZES)
    lines = [line for kind in KINDS for line in _lines(kind, costs[kind.name], beside[kind.name], sizes)]
    return lines + bytes_lines(server, sizes)


def _ours(peers: dict[str, Member], kind: Kind, costs: Costs, round_: int, sizes: Sequence[int]) -> None:
    """Raw commits before, between and after: they are compared with what ran in the same seconds."""
    raw = [_raw(peers["raw"], kind, round_)]
    for size in sizes:
        _timed(peers["surestep"], kind, costs, round_, (size,))
        raw.append(_raw(peers["raw"], kind, round_))
    costs.raw_s.append(Series.of(raw).median)


def _raw(peer: Member, kind: Kind, round_: int) -> float:
    return peer.run(kind.recipe(RAW_STEPS, round_)).wall_s / RAW_STEPS


def _timed(peer: Member, kind: Kind, costs: Costs, round_: int, sizes: Sequence[int]) -> None:
    for size in sizes:
        costs.add(size, peer.run(kind.recipe(size, round_)))


def _lines(kind: Kind, costs: Costs, beside: dict[str, Costs], sizes: Sequence[int]) -> list[Line]:
    small, *middle, large = sizes
    told = side_by_side(
        {name: found.slopes(*OTHERS_SIZES).told(" ms", 1) for name, found in beside.items() if found.by_size}
    )
    told = f"{told} (from {OTHERS_SIZES[0]} to {OTHERS_SIZES[1]} steps)" if told else ""
    fixed = costs.fixed(small, middle[0] if middle else large)
    lines = [
        _slope_line(kind, costs, small, large, told),
        Line("W2", f"{kind.name}: fixed cost of a run", fixed.told(" ms", 0), fixed.median, 60, unit=" ms"),
    ]
    if middle:
        early, late = costs.slopes(small, middle[0]), costs.slopes(middle[0], large)
        growth = Series.of(high / low for low, high in zip(early.values, late.values, strict=True))
        what = f"{kind.name}: slope at {large:,} ÷ at {middle[0]:,}"
        detail = f"{early.median:.2f} ms → {late.median:.2f} ms"
        lines.append(Line("W2", what, f"{growth.told(' ×')}; {detail}", growth.median, 1.3, unit=" ×"))
    return lines


def _slope_line(kind: Kind, costs: Costs, small: int, large: int, told: str) -> Line:
    slopes = costs.slopes(small, large)
    what = f"{kind.name}: cost per step, slope from {small:,} to {large:,} steps"
    spent = f"{slopes.told(' ms')}, of which processor {costs.cpu_slopes(small, large).median:.2f}"
    if kind.bound_ms is not None:
        return Line("W2", what, spent, slopes.median, kind.bound_ms, unit=" ms", beside=told)
    raw_ms = Series.of(seconds * 1_000 for seconds in costs.raw_s)
    found = Series.of(slope / raw for slope, raw in zip(slopes.values, raw_ms.values, strict=True))
    measured = f"{found.told(' ×')}; {spent}"
    what = f"{what}, ÷ two raw commits in the same seconds"
    return Line("W2", what, measured, found.median, 1.6, unit=" ×", beside=f"two raw commits {raw_ms.told(' ms')}")


def bytes_lines(server: Server, sizes: Sequence[int]) -> list[Line]:
    """Growth of all tables by one run, each on a fresh database; one step in ten fails once."""
    lines = []
    for kind in (KINDS[0], KINDS[2]):
        left = {size: _bytes_of(server, kind, size) for size in sizes}
        slopes = [(left[b] - left[a]) / (b - a) for a, b in pairwise(sizes)]
        share = max(slopes) / PAYLOAD
        what = f"{kind.name}: table bytes per step ÷ payload, one step in ten tried twice"
        told = f"{share:.2f} ×; {' → '.join(f'{slope:,.0f}' for slope in slopes)} bytes"
        lines.append(Line("W2", what, told, share, 2, unit=" ×"))
        if len(slopes) > 1:
            drift = abs(slopes[-1] / slopes[0] - 1) * 100
            what = f"{kind.name}: change of the bytes per step from {sizes[1]:,} to {sizes[-1]:,} steps"
            lines.append(Line("W2", what, f"{drift:.0f} %", drift, 15, unit=" %"))
    return lines


def _bytes_of(server: Server, kind: Kind, size: int) -> int:
    with member(server, "surestep") as peer:
        before = _table_bytes(peer.url)
        recipe = kind.recipe(size, 0)
        peer.run(replace(recipe, name=f"{recipe.name}-failing", seed=size, failing=0.1, wait_s=0.0))
        return _table_bytes(peer.url) - before


def _table_bytes(url: str) -> int:
    [(found,)] = fetched(url, TABLE_BYTES)
    return int(str(found))
