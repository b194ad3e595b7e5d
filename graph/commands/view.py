"""What is known of a run from its events, and how it reads: a heading and one row per step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graph.commands.printing import harmless
from plans.wording import counted

if TYPE_CHECKING:
    from rich.text import Text

    from graph.result import RunResult
    from nodes.events import Event
    from plans.limits import Usage

MARKS = {
    "pending": ("·", "dim"), "running": ("▸", "cyan"), "done": ("✓", "green"), "failed": ("✗", "red"),
    "skipped": ("-", "dim"), "in_doubt": ("?", "yellow"), "asking": ("!", "yellow"),
}  # fmt: skip
BUSY = ("running", "failed", "asking", "in_doubt")
SHOWN_CHILDREN = 5
WIDEST_NAME = 16
_ELEMENTS = re.compile(r"(\d+) elements")
WITH_TOOL = 72
"""Columns from which a row has room for the tool beside the title."""


@dataclass
class Line:
    """One step, or one child of a `for_each` step, as its row shows it."""

    unit: str
    title: str = ""
    tool: str = ""
    depends_on: tuple[str, ...] = ()
    status: str = "pending"
    attempt: int = 0
    started: float | None = None
    elapsed_s: float | None = None
    message: str | None = None
    fraction: float | None = None
    total: int | None = None
    children: dict[str, Line] = field(default_factory=dict)

    def take(self, event: Event, now: float) -> None:
        """One event about this step."""
        self.tool = event.tool or self.tool
        self.title = harmless(event.title or self.title)
        self.message, self.fraction = _one_line(event.message), event.fraction
        if event.kind == "approval":
            self.status = "asking" if event.status == "pending" else "pending"
        elif event.kind == "step" and event.status is not None:
            self._move(event, event.status, now)

    def _move(self, event: Event, status: str, now: float) -> None:
        if elements := _ELEMENTS.fullmatch(event.message or ""):
            self.total = int(elements[1])
        took = now - self.started if self.children and self.started is not None else event.elapsed_s
        self.status, self.attempt, self.elapsed_s = status, event.attempt, took
        self.started = now if status == "running" else None


@dataclass
class View:
    """A run as its events tell it. `usage` gives what it has spent so far."""

    usage: Callable[[], Usage | None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    goal: str = ""
    source: str = ""
    phase: str = "starting …"
    stopping: bool = False
    lines: dict[str, Line] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def take(self, event: Event) -> None:
        """One event of the run."""
        if event.kind == "plan" and event.plan is not None:
            self._plan(event.plan)
        elif event.step_id is not None and event.kind != "notice":
            self._line(event.step_id).take(event, self.clock())

    def settle(self, result: RunResult) -> None:
        """Where every step stands in the end, which after a stop no event tells."""
        for step in result.steps:
            for each in (step, *step.children):
                line = self._line(each.id)
                line.status, line.started, line.elapsed_s, line.attempt = (
                    "in_doubt" if each.in_doubt else each.status,
                    None,
                    each.elapsed_s,
                    each.attempts,
                )
                said = [each.degraded, each.check.sentence if each.check else None]
                line.message, line.fraction = _one_line("; ".join(filter(None, said))), None

    def _plan(self, plan: dict[str, Any]) -> None:
        self.goal = harmless(" ".join(plan["goal"].split()))
        self.source = _source(plan)
        known = self.lines
        self.lines = {step["id"]: known.get(step["id"]) or Line(step["id"]) for step in plan["steps"]}
        for step in plan["steps"]:
            line = self.lines[step["id"]]
            line.title, line.tool = harmless(step.get("title") or ""), step.get("tool") or step["action"]
            line.depends_on = tuple(step.get("depends_on", ()))

    def _line(self, unit: str) -> Line:
        step_id, bracket, _ = unit.partition("[")
        step = self.lines.setdefault(step_id, Line(step_id))
        return step.children.setdefault(unit, Line(unit)) if bracket else step

    def heading(self) -> list[Text]:
        """What is pursued, and how far it is."""
        from rich.text import Text

        done = sum(line.status in ("done", "skipped") for line in self.lines.values())
        parts = [self.source, f"{done} of {counted(len(self.lines), 'step')}"] if self.lines else [self.phase]
        parts += [f"{self.clock() - self._began:.1f} s", *spent(self.usage())]
        parts += ["stopping …"] if self.stopping else []
        return [*([Text(self.goal, style="bold")] if self.goal else []), Text(" · ".join(parts), style="dim"), Text()]

    def rows(self, width: int) -> list[tuple[Line, Text]]:
        """A row for every step, and for those children of it that a person may want to see."""
        shown = list(self._shown())
        name = min(WIDEST_NAME, max((len(_label(line)) for line in shown), default=0))
        title = min(max((len(line.title or line.tool) for line in shown), default=0), max(12, width * 2 // 5))
        tool = max((len(line.tool) for line in shown if line.title), default=0) if width >= WITH_TOOL else 0
        return [(line, self._row(line, name, title, min(tool, 24))) for line in shown]

    def _shown(self) -> Iterator[Line]:
        for line in self.lines.values():
            yield line
            yield from [child for child in line.children.values() if child.status in BUSY][:SHOWN_CHILDREN]

    def _row(self, line: Line, name: int, title: int, tool: int) -> Text:
        from rich.text import Text

        mark, style = MARKS.get(line.status, MARKS["pending"])
        row = Text(f"{mark} {_fitted(_label(line), name)} ", style=style)
        row.append(f" {_fitted(line.title or line.tool, title)}", "dim" if line.status == "pending" else "default")
        if tool:
            row.append(f"  {_fitted(line.tool if line.title else '', tool)}", style="dim")
        row.append(f"  {self._time(line):>7}  ", style="dim")
        row.append(self._note(line), style=style if line.status in ("failed", "asking", "in_doubt") else "dim")
        return row

    def _time(self, line: Line) -> str:
        elapsed = self.clock() - line.started if line.started is not None else line.elapsed_s
        return "" if elapsed is None or line.status in ("pending", "asking") else f"{elapsed:.1f} s"

    def _note(self, line: Line) -> str:
        parts = []
        if line.status == "pending":
            waits = [name for name in line.depends_on if name in self.lines and not self._is_over(name)]
            return f"after {', '.join(waits)}" if waits else ""
        if line.attempt > 1 and not line.children:
            parts.append(f"attempt {line.attempt}")
        if line.fraction is not None and line.status == "running":
            parts.append(f"{line.fraction:.0%}")
        if line.total is not None and line.status == "running":
            parts.append(f"{sum(child.status == 'done' for child in line.children.values())} of {line.total}")
        elif remark := {"asking": "waits for you", "in_doubt": "may have happened"}.get(line.status, line.message):
            parts.append(remark)
        return " ".join(parts)

    def _is_over(self, name: str) -> bool:
        return self.lines[name].status in ("done", "skipped")


def spent(usage: Usage | None) -> list[str]:
    """What models have cost, for a line of figures; nothing where none was asked."""
    if usage is None or not usage.model_calls:
        return []
    calls = f"{counted(usage.model_calls, 'model call')}, {counted(usage.tokens, 'token')}"
    return [f"{calls}, {usage.cost:.4f} of cost" if usage.cost else calls]


def fitted(rows: list[tuple[Line, Text]], most: int) -> list[Text]:
    """At most so many rows: finished steps from the top, then waiting ones from the end, become one row that counts
    them; what runs, failed or asks stays longest."""
    from rich.text import Text

    if len(rows) <= most:
        return [row for _, row in rows]
    over = len(rows) - most + 2
    done = [index for index, (line, _) in enumerate(rows) if line.status in ("done", "skipped")][:over]
    waiting = [index for index, (line, _) in enumerate(rows) if line.status == "pending"]
    waiting = waiting[max(0, len(waiting) - over + len(done)) :] if len(done) < over else []
    kept = [row for index, (_, row) in enumerate(rows) if index not in {*done, *waiting}]
    first = [Text(f"✓ {counted(len(done), 'finished step')}", style="dim")] if done else []
    last = [Text(f"· {counted(len(waiting), 'more step')} to come", style="dim")] if waiting else []
    return [*first, *kept, *last][:most]


def _label(line: Line) -> str:
    return f"  {line.unit}" if "[" in line.unit else line.unit


def _fitted(text: str, width: int) -> str:
    """The text in exactly so many columns, as far as its characters are one column wide; wide ones count as two."""
    from rich.cells import cell_len, set_cell_size

    return text + " " * (width - cell_len(text)) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _source(plan: dict[str, Any]) -> str:
    template = plan.get("template")  # none where it has planned a sub-goal of somebody else's plan
    words = {
        "template": f"template {template}" if template else "a sub-goal by a template",
        "file": "your plan",
        "human": "edited by a person",
    }
    first = words.get(plan["source"], plan["source"].replace("_", " "))
    return f"{first}, revision {plan['revision']}" if plan["revision"] > 1 else first


def _one_line(message: str | None) -> str | None:
    return harmless(" ".join(message.split())) if message else None
