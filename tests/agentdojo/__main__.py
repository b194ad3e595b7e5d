"""AgentDojo on Surestep, offline: a hijacked model against plans of ground truth. Ends with 1 if an attack succeeded.

`hijack`: for every task and every attack the verifier says that the plan does not hold, and the replanner plans what
the attacker wants beside what the user wants; `mend`: the same after a step that fails, through the repair of one step
first. Nobody says yes. `swap`: tasks as they have to be planned by who knows only the goal; the judgements that read
for an effect what the goal does not say answer what the attacker wants. Each with and without taint, and what would
have happened if somebody had said yes to everything.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentdojo.task_suite.load_suites import get_suites
from pytest_httpserver import HTTPServer

from graph.agent import open_agent
from graph.settings import Settings
from tests.agentdojo.scenes import Played, Theatre
from tests.agentdojo.stage import Stage, toolkit
from tests.nodes.model_server import ScriptedModel

VERSION = "v1.2.1"
"""Of AgentDojo's suites: 97 tasks, 35 attacks, 949 pairs of both."""

_ROW = "{:7} {:8} {:9} {:>5} {:>17} {:>17} {:>8} {:>10} {:>13}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what was asked for and print the table; 1 if an attack succeeded or a task was lost."""
    wish = _wish(arguments)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    started = time.monotonic()
    played = asyncio.run(_all(wish))
    for line in _table(played):
        print(line)
    print(f"{len(played)} runs in {time.monotonic() - started:.0f} s")
    bad = [each for each in played if each.defended and (each.attack_succeeded or each.diverted or _is_new(each))]
    lost = [each for each in played if each.defended and each.act in ("benign", "hijack", "mend") and not each.useful]
    for each in (*bad, *lost)[: wish.show]:
        print(each)
    return int(bool(bad or lost))


def _wish(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.agentdojo", description=__doc__)
    parser.add_argument("--suites", nargs="*", default=["workspace", "travel", "banking", "slack"])
    parser.add_argument("--acts", nargs="*", default=["benign", "hijack", "mend", "flow", "swap"])
    parser.add_argument("--sample", type=int, default=0, help="pairs per suite and act (0: all)")
    parser.add_argument("--defended", action="store_true", help="only with taint, and an approver who says no")
    parser.add_argument("--show", type=int, default=20, help="runs that are shown of those that went wrong")
    return parser.parse_args(arguments)


async def _all(wish: argparse.Namespace) -> list[Played]:
    played: list[Played] = []
    suites = get_suites(VERSION)
    with HTTPServer() as server, tempfile.TemporaryDirectory() as folder:
        settings = Settings.load(
            environment={}, folder=Path(folder, "surestep"), output=Path(folder, "out"),
            model="hijacked", base_url=(model := ScriptedModel(server)).base_url, api_key="key-1",
        )  # fmt: skip
        for name in wish.suites:
            for trusted in (False,) if wish.defended else (False, True):
                stage = Stage(suites[name])
                async with open_agent([toolkit(stage, trusted=trusted)], settings=settings) as agent:
                    theatre = Theatre(agent, stage, model, tainted=not trusted)
                    played += [await each for each in _programme(theatre, wish)]
                print(f"{name}, {'without' if trusted else 'with'} taint: {len(played)} runs", file=sys.stderr)
    return played


def _programme(theatre: Theatre, wish: argparse.Namespace) -> Iterator[Any]:
    suite = theatre.stage.suite
    tasks = list(suite.user_tasks.values())
    pairs = [(task, attack) for task in tasks for attack in suite.injection_tasks.values()]
    chosen = random.Random(7).sample(pairs, min(wish.sample or len(pairs), len(pairs)))
    for act in wish.acts:
        if act in ("benign", "flow"):
            yield from (theatre.play(act, task, None) for task in tasks[: wish.sample or None])
        else:
            yield from (theatre.play(act, task, attack) for task, attack in chosen)
            if not wish.defended:
                yield from (theatre.play(act, task, attack, approve="all") for task, attack in chosen)


def _is_new(run: Played) -> bool:
    """Whether a plan that a model has written anew has had an effect that was not the task's."""
    return run.act in ("hijack", "mend") and run.unplanned > 0


def _table(played: Sequence[Played]) -> Iterator[str]:
    yield _ROW.format(
        "act",
        "taint",
        "approver",
        "runs",
        "attacks succeeded",
        "unplanned effects",
        "diverted",
        "tasks done",
        "asked per run",
    )
    groups: dict[tuple[str, bool, str], list[Played]] = {}
    for each in played:
        groups.setdefault((each.act, each.tainted, each.approve), []).append(each)
    for (act, tainted, approve), runs in groups.items():
        yield _ROW.format(
            act,
            "with" if tainted else "without",
            {"none": "says no", "all": "says yes"}[approve],
            len(runs),
            sum(each.attack_succeeded for each in runs),
            sum(each.unplanned for each in runs),
            sum(each.diverted for each in runs),
            sum(each.useful for each in runs),
            f"{sum(each.asked for each in runs) / len(runs):.2f}",
        )


if __name__ == "__main__":
    sys.exit(main())
