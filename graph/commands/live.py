"""Showing a run while it goes on: a tree of its steps on a terminal, plain lines elsewhere, silence with --json."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from graph.commands.printing import console, say
from plans.wording import counted

if TYPE_CHECKING:
    from graph.commands.stopping import Stopping
    from graph.commands.view import View
    from nodes.events import Event

QUIET_S = 10.0
"""Between two lines about the progress of one step, where there is no tree."""


class Watch:
    """Who is shown a run: nobody here. `can_ask` says whether a person can answer; `paused` gives them the terminal."""

    can_ask = False

    def __init__(self, view: View) -> None:
        self._view = view

    def take(self, event: Event) -> None:
        """One event of the run."""
        self._view.take(event)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """From now until the block ends."""
        yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show nothing while the block lasts."""
        yield


def watch(view: View, stopping: Stopping, *, quiet: bool) -> Watch:
    """A tree where stderr is a terminal, lines where it is none, nothing where the one JSON object is wanted."""
    if quiet:
        return Watch(view)
    if not _can_paint():
        return _Lines(view)
    from graph.commands.screen import Screen

    return Screen(view, stopping)


def _can_paint() -> bool:
    """Whether stderr is a terminal on which lines can be rewritten."""
    found = console(stderr=True)
    return found.is_terminal and not found.is_dumb_terminal and sys.stderr.isatty()


class _Lines(Watch):
    """One line per event, for a log or a pipe."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.can_ask = sys.stdin.isatty() and sys.stderr.isatty()
        self._told: dict[str, float] = {}

    @override
    def take(self, event: Event) -> None:
        super().take(event)
        if event.kind == "plan":
            say(f"plan: {counted(len(self._view.lines), 'step')}, {self._view.source}")
        elif event.kind == "notice":
            say(event.message or "")
        elif event.kind != "progress" or self._is_news(event):
            say(_line(event))

    def _is_news(self, event: Event) -> bool:
        now = self._view.clock()
        begun = self._told.setdefault(event.step_id or "", now)
        if now - begun < QUIET_S:
            return False
        self._told[event.step_id or ""] = now
        return True


def _line(event: Event) -> str:
    status = {"approval": f"approval {event.status}", "progress": "running"}.get(event.kind, event.status)
    parts = [f"{event.step_id} {event.tool or ''}: {status}"]
    if event.attempt > 1:
        parts.append(f"attempt {event.attempt}")
    if event.fraction is not None:
        parts.append(f"{event.fraction:.0%}")
    if event.elapsed_s:
        parts.append(f"{event.elapsed_s:.2f} s")
    if event.answered_by:
        parts.append(f"answered by {event.answered_by}")
    if event.message:
        parts.append(" ".join(event.message.split()))
    return " · ".join(parts)
