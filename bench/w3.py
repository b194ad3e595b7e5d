"""W3: two hundred runs of ten steps at the same time, each with its own checkpoints. How many steps a second?"""

from __future__ import annotations

from collections.abc import Sequence

from bench.crew import crew
from bench.figures import Line, Series, ratios
from bench.peers.peer import TITLES
from bench.recipes import Recipe
from bench.server import Server

COPIES = (200,)
FACTORS = {"send": 5.0, "task": 2.5, "dbos": 4.0}
"""How many times as many steps a second as this peer."""
OTHERS = tuple(FACTORS)


def measure(server: Server, rounds: int, sizes: Sequence[int] = COPIES, others: Sequence[str] = OTHERS) -> list[Line]:
    """All in turn, round after round; a round's ratio is between two runs that followed each other. `sizes` are
    numbers of runs; the largest counts."""
    copies = max(sizes)
    rates: dict[str, list[float]] = {name: [] for name in ("surestep", *others)}
    with crew(server, rates) as peers:
        for peer in peers.values():
            peer.run(Recipe("w3-first", "ten", 10, copies=2))
        for round_ in range(rounds):
            for name, peer in peers.items():
                recipe = Recipe(f"w3-{round_}", "ten", 10, copies=copies)
                rates[name].append(10 * copies / peer.run(recipe).wall_s)
    ours = Series.of(rates["surestep"])
    lines = [Line("W3", f"{copies} runs of 10 steps at once: steps/s", ours.told(" steps/s", 0))]
    return lines + [_line(name, rates) for name in others]


def _line(name: str, rates: dict[str, list[float]]) -> Line:
    found = ratios(rates["surestep"], rates[name])
    beside = Series.of(rates[name]).told(" steps/s", 0)
    what = f"the same ÷ {TITLES[name]}'s"
    return Line("W3", what, found.told(" ×", 1), found.median, FACTORS[name], "least", " ×", beside)
