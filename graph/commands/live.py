"""The live view of a run: a tree of its steps on a terminal, plain lines on stderr elsewhere, silence with --json."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graph.commands.shared import console, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.tree import Tree

    from nodes.events import Event

MARKS = {
    "pending": ("·", "dim"), "running": ("▸", "cyan"), "done": ("✓", "green"), "failed": ("✗", "red"),
    "skipped": ("-", "dim"), "in_doubt": ("?", "yellow"), "asking": ("!", "yellow"),
}  # fmt: skip
SHOWN_CHILDREN = 5
REFRESHES_PER_S = 8


@dataclass
class Line:
    """One step as the tree shows it."""

    title: str
    tool: str
    status: str = "pending"
    attempt: int = 0
    started: float | None = None
    elapsed_s: float | None = None
    message: str | None = None
    fraction: float | None = None


@dataclass
class View:
    """What is known of a run from its events. `interactive` says whether a person can be asked here."""

    registry: Mapping[str, Any]
    interactive: bool = False
    plain: bool = True
    quiet: bool = False
    heading: str = "planning …"
    lines: dict[str, Line] = field(default_factory=dict)
    live: Live | None = None

    def take(self, event: Event) -> None:
        """One event of the run."""
        if event.kind == "plan" and event.plan is not None:
            self._plan(event)
        elif event.kind == "notice":
            self.say(event.message or "")
        elif event.step_id is not None:
            self._step(event)
        if self.plain and not self.quiet and event.kind == "step":
            say(_plain(event))

    def say(self, message: str) -> None:
        """A remark beside the tree."""
        if self.live is not None:
            self.live.console.print(message, style="dim", markup=False)
        elif not self.quiet:
            say(message)

    def _plan(self, event: Event) -> None:
        plan = event.plan or {}
        source = plan.get("template") or plan["source"]
        self.heading = f"{plan['goal']}  [{source}, revision {plan['revision']}]"
        known = self.lines
        self.lines = {
            step["id"]: known.get(step["id"]) or Line(step.get("title") or "", step.get("tool") or step["action"])
            for step in plan["steps"]
        }
        if self.plain and not self.quiet:
            say(f"plan: {len(plan['steps'])} steps [{source}, revision {plan['revision']}]")

    def _step(self, event: Event) -> None:
        line = self.lines.setdefault(event.step_id or "", Line(event.title or "", event.tool or ""))
        line.tool = event.tool or line.tool
        line.message, line.fraction = event.message, event.fraction
        if event.kind == "approval":
            line.status = "asking" if event.status == "pending" else "pending"
        elif event.kind == "step" and event.status is not None:
            line.status, line.attempt, line.elapsed_s = event.status, event.attempt, event.elapsed_s
            line.started = time.monotonic() if event.status == "running" else None

    def __rich__(self) -> RenderableType:
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(self.heading, overflow="ellipsis", no_wrap=True), guide_style="dim")
        branches: dict[str, Tree] = {}
        for unit, line in self._shown():
            parent = branches.get(unit.partition("[")[0], tree) if "[" in unit else tree
            branches[unit] = parent.add(_row(unit, line))
        return tree

    def _shown(self) -> list[tuple[str, Line]]:
        """Every step; of a step's many children those that run or failed, and the first few."""
        shown, counted = [], dict[str, int]()
        for unit, line in self.lines.items():
            parent, bracket, _ = unit.partition("[")
            counted[parent] = counted.get(parent, 0) + bool(bracket)
            if not bracket or line.status in ("running", "failed", "asking") or counted[parent] <= SHOWN_CHILDREN:
                shown.append((unit, line))
        return shown


@asynccontextmanager
async def watch(registry: Mapping[str, Any], *, quiet: bool) -> AsyncIterator[View]:
    """A view of one command's run: the tree where stdout is a terminal, else lines on stderr."""
    out: Console = console()
    interactive = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
    view = View(registry, interactive=interactive, plain=not out.is_terminal, quiet=quiet)
    if quiet or view.plain:
        yield view
        return
    from rich.live import Live

    with Live(view, console=out, refresh_per_second=REFRESHES_PER_S) as live:
        view.live = live
        yield view


def _row(unit: str, line: Line) -> RenderableType:
    from rich.text import Text

    mark, style = MARKS.get(line.status, ("·", "dim"))
    elapsed = time.monotonic() - line.started if line.started is not None else line.elapsed_s
    parts = [f" {line.title or line.tool}"]
    if line.title:
        parts.append(f"  {line.tool}")
    if elapsed is not None and line.status not in ("pending", "asking"):
        parts.append(f"  {elapsed:.1f} s")
    if line.attempt > 1:
        parts.append(f"  attempt {line.attempt}")
    if line.fraction is not None:
        parts.append(f"  {line.fraction:.0%}")
    row = Text(f"{mark} {unit}", style=style, overflow="ellipsis", no_wrap=True)
    row.append(parts[0], style="default")
    row.append("".join(parts[1:]), style="dim")
    if line.message:
        row.append(f"  {line.message}", style="red" if line.status == "failed" else "dim")
    return row


def _plain(event: Event) -> str:
    parts = [f"{event.step_id} {event.tool or ''}: {event.status}"]
    if event.attempt > 1:
        parts.append(f"attempt {event.attempt}")
    if event.elapsed_s:
        parts.append(f"{event.elapsed_s:.2f} s")
    if event.message:
        parts.append(event.message)
    return " · ".join(parts)
