"""A peer's own process: `python -m bench.child PEER URL FOLDER [RECIPE]`, one JSON line per question and answer.

With a recipe it goes on with that recipe's run, which another process was killed in, and answers once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from bench.peers.peer import module_of, open_peer
from bench.recipes import Recipe
from bench.work import Work


def main(arguments: list[str]) -> None:
    """Serve until the questions end."""
    answers = _own_stdout()
    name, url, folder, *rest = arguments
    module_of(name)
    imported_at = time.monotonic()
    found = Work(Recipe(**json.loads(rest[0]))) if rest else None
    asyncio.run(_serve(answers, name, url, Path(folder), found, imported_at))


def _own_stdout() -> TextIO:
    """What a peer prints goes to stderr, and stdout is for answers only."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


async def _serve(answers: TextIO, name: str, url: str, folder: Path, found: Work | None, imported_at: float) -> None:
    async with open_peer(name, url, folder, found) as peer:
        if found is not None:
            _say(answers, {**await _timed(peer.resume, found), "imported_at": imported_at})
            return
        _say(answers, {"ready": name})
        while line := await asyncio.to_thread(sys.stdin.readline):
            work = Work(Recipe(**json.loads(line)))
            _say(answers, await _timed(peer.run, work))


async def _timed(run: Any, work: Work) -> dict[str, Any]:
    """How long the call took, in seconds, and when each step's work began and ended."""
    began, worked = time.monotonic(), time.process_time()
    await run(work)
    took = {"wall_s": time.monotonic() - began, "cpu_s": time.process_time() - worked}
    spans = work.spans if any(task.seconds for task in work.tasks) else []
    work.close()
    return {**took, "spans": spans}


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def in_json(recipe: Recipe) -> str:
    """A recipe as a child reads it."""
    return json.dumps(asdict(recipe))


if __name__ == "__main__":
    main(sys.argv[1:])
