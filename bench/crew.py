"""The peers' processes: started once per workload, asked in turn, so that all of them meet the same minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.child import in_json
from bench.recipes import Recipe
from bench.server import Server
from bench.work import Span


@dataclass(frozen=True, slots=True)
class Timed:
    """One run as its process saw it: the whole call, its processor time, and each step's work, in seconds."""

    wall_s: float
    cpu_s: float
    spans: tuple[Span, ...]

    @property
    def makespan_s(self) -> float:
        """From the start of the first step's work to the end of the last one's."""
        return max(end for _, _, end in self.spans) - min(begin for _, begin, _ in self.spans)


class PeerFailed(RuntimeError):
    """A peer's process ended where an answer was expected; what it said stands above."""


@dataclass(frozen=True)
class Member:
    """A peer in its process, on its database."""

    name: str
    url: str
    child: subprocess.Popen[str]

    def run(self, recipe: Recipe) -> Timed:
        """Ask for one run, and wait for it. Raises PeerFailed."""
        self.begin(recipe)
        answer = self.answer()
        return Timed(answer["wall_s"], answer["cpu_s"], tuple(map(tuple, answer["spans"])))

    def begin(self, recipe: Recipe) -> None:
        """Ask for one run."""
        assert self.child.stdin is not None  # noqa: S101 (opened as a pipe)
        self.child.stdin.write(in_json(recipe) + "\n")
        self.child.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer. Raises PeerFailed."""
        assert self.child.stdout is not None  # noqa: S101 (opened as a pipe)
        line = self.child.stdout.readline()
        if not line:
            raise PeerFailed(f"the process of {self.name} ended with {self.child.wait()} and no answer")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def member(server: Server, name: str, *, url: str | None = None, found: Recipe | None = None) -> Iterator[Member]:
    """A peer that is ready to be asked; with `found`, one that goes on with that run by itself. Ends with the block."""
    url = server.database() if url is None else url
    folder = server.folder / name
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "bench.child", name, url, str(folder), *([in_json(found)] if found else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:  # noqa: S603 (ours)
        try:
            made = Member(name, url, child)
            if found is None:
                made.answer()
            yield made
        finally:
            child.kill()


ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def crew(server: Server, names: Iterable[str]) -> Iterator[dict[str, Member]]:
    """All of these peers, each on a database of its own."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(member(server, name)) for name in names}
