"""Runs the trials and prints a table: `python -m tests.recovery.chaos`; ends with 1 if anything was wrong."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from checkpoints.crash_points import POINTS
from checkpoints.embedded import EmbeddedServer
from checkpoints.migrate import migrate
from tests.conftest import in_database
from tests.recovery.chaos.cases import DURABILITIES, RENEWED, Case, all_cases
from tests.recovery.chaos.kinds import ALONE, KINDS, Place, Verdict
from tests.recovery.child import Durability
from tests.recovery.forks import Forks
from tests.recovery.kit import BOOKINGS
from tests.recovery.ledger import Ledger
from tests.recovery.trial import Trials


@dataclass
class Score:
    """What the trials of a kind came to."""

    trials: int = 0
    hit: int = 0
    surfaced: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 if a trial shows a violation."""
    wish = _wish(arguments)
    started = time.monotonic()
    scores: defaultdict[str, Score] = defaultdict(Score)
    with tempfile.TemporaryDirectory() as folder, _place(Path(folder), wish.seed) as (place, comings):
        cases = [Case.read(name) for name in wish.only] or list(all_cases(wish.seed, wish.points, comings, wish.kills))
        side_by_side = [case for case in cases if case.kind not in ALONE]
        with ThreadPoolExecutor(wish.jobs) as pool:
            for case, verdict in zip(side_by_side, pool.map(lambda case: _run(place, case), side_by_side), strict=True):
                _note(scores[case.kind], case, verdict, wish.seed)
        for case in cases:
            if case.kind in ALONE:
                _note(scores[case.kind], case, _run(place, case), wish.seed)
    _print(scores, time.monotonic() - started, wish.seed)
    return int(any(score.wrong for score in scores.values()))


def _wish(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=300, metavar="N", help="random kill times; 0: named points only")
    parser.add_argument("--points", nargs="+", default=list(POINTS), choices=list(POINTS), metavar="POINT")
    parser.add_argument("--only", nargs="+", default=[], metavar="CASE", help="these trials and no others")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="trials at a time")
    return parser.parse_args(arguments)


def _run(place: Place, case: Case) -> Verdict:
    try:
        return KINDS[case.kind](place, case)
    except AssertionError as error:  # a child that did not do what every child must
        return Verdict((str(error),))


def _note(score: Score, case: Case, verdict: Verdict, seed: int) -> None:
    score.trials += 1
    score.hit += verdict.hit
    score.surfaced += [f"{case}: {each}" for each in verdict.surfaced]
    score.wrong += [f"{case}: {each}" for each in verdict.wrong]
    for each in verdict.wrong:
        _say(f"VIOLATION {case}: {each}\n  again: python -m tests.recovery.chaos --seed {seed} --only {case}")


def _print(scores: Mapping[str, Score], seconds: float, seed: int) -> None:
    _say(f"\n{'kind':<12}{'trials':>8}{'stopped':>9}{'surfaced':>10}{'violations':>12}")
    for kind, score in scores.items():
        _say(f"{kind:<12}{score.trials:>8}{score.hit:>9}{len(score.surfaced):>10}{len(score.wrong):>12}")
    surfaced = Counter(each for score in scores.values() for each in score.surfaced)
    for each in surfaced:
        _say(f"surfaced: {each}")
    trials = sum(score.trials for score in scores.values())
    _say(f"{trials} trials in {seconds:.0f} s, seed {seed}: {sum(len(s.wrong) for s in scores.values())} violations")


@contextmanager
def _place(folder: Path, seed: int) -> Iterator[tuple[Place, Mapping[Durability, Mapping[str, int]]]]:
    """A server of our own, a ledger, a forking process; and how often a run comes to each point."""
    server = EmbeddedServer.open(folder)
    numbers = count(1)

    def database() -> str:
        """A new database; made from a migrated one."""
        name = f"chaos_{next(numbers)}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE chaos_0 STRATEGY FILE_COPY")
        return in_database(server.url, name)

    try:
        _template(server.url)
        with Ledger() as ledger, Forks() as forks:
            shared = Trials(database(), folder, forks, ledger)

            @contextmanager
            def fresh() -> Iterator[Trials]:
                yield Trials(database(), folder, forks, ledger, shared.expected)

            started = time.monotonic()
            shared.trial().start("usual").ended()
            usual_s = time.monotonic() - started
            comings = {each: shared.trial().start("usual", durability=each, **RENEWED) for each in DURABILITIES}
            reached = {each: child.ended()["reached"] for each, child in comings.items()}
            yield Place(shared, fresh, server.cluster, seed, usual_s), reached
    finally:
        server.release()


def _template(url: str) -> None:
    """A migrated database to be copied. The server waits for no disk: only processes are killed here."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE DATABASE chaos_0")
    made = in_database(url, "chaos_0")
    asyncio.run(migrate(made))
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(BOOKINGS)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
