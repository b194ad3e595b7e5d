"""`python -m tests.simulation --seeds 5000 --from 0`: play many seeds; or one, with a trace (`--seed 17`)."""

from __future__ import annotations

import argparse
import gc
import sys
import time

from tests.simulation.plot import plot_of
from tests.simulation.story import play

COLLECT_EVERY = 50


def main() -> int:
    """Exit code 1 as soon as a law is broken, with the command that shows how."""
    reader = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    reader.add_argument("--seeds", type=int, default=5_000, help="how many")
    reader.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
    reader.add_argument("--seed", type=int, help="this one only, with everything that happens in it")
    reader.add_argument("--keep-going", action="store_true", help="play the others after one has failed")
    given = reader.parse_args()
    if given.seed is not None:
        return _one(given.seed)
    return _many(given.first, given.seeds, keep_going=given.keep_going)


def _one(seed: int) -> int:
    plot = plot_of(seed)
    sys.stdout.write(f"{plot}\n")
    world = play(plot)
    sys.stdout.write("\n".join([*world.said, *world.wrong]) + "\n")
    return 1 if world.wrong else 0


def _many(first: int, count: int, *, keep_going: bool) -> int:
    began, failed = time.perf_counter(), 0
    for seed in range(first, first + count):
        world = play(plot_of(seed))
        if world.wrong:
            failed += 1
            sys.stdout.write(f"seed {seed} ({world.plot.manner}): {world.wrong[0][:300]}\n")
            sys.stdout.write(f"  replay: python -m tests.simulation --seed {seed}\n")
            if not keep_going:
                return 1
        if seed % COLLECT_EVERY == 0:
            gc.collect()
    took = time.perf_counter() - began
    sys.stdout.write(
        f"{count - failed} of {count} seeds kept every law ({first} to {first + count - 1}, {took:.0f} s)\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
