"""W4: a plan of a thousand steps whose process is killed in the middle. What runs again, and how soon does it go on?"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.crew import ROOT, member
from bench.figures import Line, Series, side_by_side
from bench.recipes import Recipe
from bench.server import Server, fetched

STEPS = (1_000,)
OTHERS = ("task", "dbos", "send")
SHARES = (0.5, 0.35, 0.65, 0.42, 0.58)
"""Where in the plan the process is killed, round by round: after this share of the steps."""
TAIL = 64
"""Rows that may wait for their commit; a step may have ended and not be among the finished."""
PATIENCE_S = 120.0

ACCEPTED = "SELECT step_id FROM surestep.journal WHERE kind = 'outcome'"
OTHER_SESSIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""

OURS = "import graph.agent, graph.gateway, graph.settings, tools.registry"
LANGGRAPH = "import langgraph.graph, langgraph.checkpoint.postgres.aio, psycopg_pool"
"""What a program on LangGraph's own graph and Postgres saver imports."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What one kill has led to: counts of steps, and seconds from the new process's imports to its first step."""

    finished_again: int
    unfinished: int
    ended_again: int
    first_step_s: float


def measure(server: Server, rounds: int, sizes: Sequence[int] = STEPS, others: Sequence[str] = OTHERS) -> list[Line]:
    """Ours once per round, the others once; then the imports, in turn."""
    steps = max(sizes)
    ours = [killed(server, "surestep", steps, round_) for round_ in range(rounds)]
    beside = {name: killed(server, name, steps, 0) for name in others}
    again = side_by_side({name: str(found.ended_again) for name, found in beside.items()})
    soon = side_by_side({name: f"{found.first_step_s:.2f} s" for name, found in beside.items()})
    twice, open_ = max(each.finished_again for each in ours), max(each.unfinished for each in ours)
    first, bound = Series.of(each.first_step_s for each in ours), 8 + TAIL
    kills = f"{steps:,} steps, killed in the middle ({rounds} ×)"
    ended = Series.of(each.ended_again for each in ours)
    return [
        Line("W4", f"{kills}: finished steps that ran again", f"{twice}", twice, 0),
        Line("W4", "begun and not finished at the kill: 8 in flight and the tail", f"{open_}", open_, bound),
        Line("W4", "steps that had ended and ran again", ended.told("", 0), beside=again),
        Line("W4", "first step after the imports", first.told(" s"), first.median, 0.3, unit=" s", beside=soon),
        _imports(rounds),
    ]


def killed(server: Server, name: str, steps: int, round_: int) -> Killed:
    """Run, kill, look, resume, and count."""
    ledger = server.folder / f"ledger-{name}-{round_}"
    recipe = Recipe(f"w4-{round_}", "layers", steps, seed=round_, payload_bytes=256, ledger=str(ledger))
    url = server.database()
    with member(server, name, url=url) as peer:
        peer.begin(recipe)
        _until_ended(ledger, round(steps * SHARES[round_ % len(SHARES)]))
    # The block has killed the process. What it had sent may still be committed: only then is it known what is finished.
    _until_alone(url)
    finished = _finished(url) if name == "surestep" else set()
    begun, ended = _noted(ledger)
    with member(server, name, url=url, found=recipe) as peer:
        imported_at = peer.answer()["imported_at"]
    begun_later = {number for number, times in _noted(ledger)[0].items() if len(times) > len(begun.get(number, ()))}
    first = min(at for times in _noted(ledger)[0].values() for at in times if at > imported_at)
    everything = Counter(_noted(ledger)[1].keys())
    if len(everything) != steps:
        raise RuntimeError(f"{name} has done {len(everything)} of {steps} steps after its resume")
    return Killed(
        finished_again=len(finished & begun_later),
        unfinished=len(begun.keys() - finished),
        ended_again=len(ended.keys() & begun_later),
        first_step_s=first - imported_at,
    )


def _noted(ledger: Path) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """When each step's work began and ended, call by call; the last line may have been cut off by the kill."""
    found: dict[str, dict[int, list[float]]] = {"begin": {}, "end": {}}
    for line in ledger.read_text("utf-8").splitlines() if ledger.exists() else ():
        word, number, at = line.split()
        found[word].setdefault(int(number), []).append(float(at))
    return found["begin"], found["end"]


def _until_ended(ledger: Path, count: int) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while len(_noted(ledger)[1]) < count:
        if time.monotonic() > give_up:
            raise RuntimeError(f"{len(_noted(ledger)[1])} of {count} steps had ended after {PATIENCE_S:.0f} s")
        time.sleep(0.005)


def _until_alone(url: str) -> None:
    while fetched(url, OTHER_SESSIONS) != [(0,)]:
        time.sleep(0.05)


def _finished(url: str) -> set[int]:
    return {int(str(step_id).removeprefix("s")) for (step_id,) in fetched(url, ACCEPTED)}


def _imports(rounds: int) -> Line:
    """Both in turn, each in a new process, once to warm the disk's cache and then as often as there are rounds."""
    for code in (OURS, LANGGRAPH):
        _import_s(code)
    pairs = [(_import_s(OURS), _import_s(LANGGRAPH)) for _ in range(rounds)]
    more = Series.of(ours - theirs for ours, theirs in pairs)
    told = Series.of(theirs for _, theirs in pairs).told(" s")
    return Line("W4", "our imports − LangGraph's own", more.told(" s"), more.median, 0.5, unit=" s", beside=told)


def _import_s(code: str) -> float:
    timed = f"import time; began = time.perf_counter(); {code}; print(time.perf_counter() - began)"
    command = [sys.executable, "-c", timed]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 (our own code)
    return float(ended.stdout)
