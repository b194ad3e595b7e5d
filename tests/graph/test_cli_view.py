"""The tree of a run: what its rows say, how they fit, and that a finished row is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from graph.commands.painter import Painter
from graph.commands.view import MARKS, Line, View, fitted
from graph.result import RunResult, StepResult
from nodes.events import Event
from plans.limits import Usage
from tests.graph.terminal import Terminal


class Clock:
    """A clock that is moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def seen(view: View, width: int = 80) -> list[str]:
    """The rows as text."""
    return [row.plain.rstrip() for _, row in view.rows(width)]


def planned(*steps: dict[str, Any], **more: Any) -> Event:
    """A plan as the stream tells it."""
    whole = [{"action": "tool", "tool": "count", **step} for step in steps]
    return Event(kind="plan", plan={"goal": "g", "source": "file", "revision": 1, "steps": whole, **more})


def moved(unit: str, status: str, **more: Any) -> Event:
    """A step run that has moved."""
    return Event(kind="step", step_id=unit, status=status, **more)


@pytest.fixture
def view() -> View:
    """Three steps in a row, at a clock that stands."""
    found = View(clock=Clock())
    found.take(planned({"id": "s1", "title": "Count it"}, {"id": "s2", "depends_on": ["s1"]}, {"id": "s3"}))
    return found


def test_rows_say_status_time_attempts_and_progress(view: View) -> None:
    """What waits says for whom, what runs how long and how far, what has ended how it did."""
    assert seen(view)[:2] == ["· s1  Count it  count", "· s2  count                     after s1"]
    view.take(moved("s1", "running", attempt=2))
    view.take(Event(kind="progress", step_id="s1", fraction=0.4, message="reading row 4"))
    assert isinstance(view.clock, Clock)
    view.clock.now += 2.5
    assert seen(view)[0] == "▸ s1  Count it  count    2.5 s  attempt 2 40% reading row 4"
    view.take(moved("s1", "done", attempt=2, elapsed_s=2.6))
    assert seen(view)[:2] == ["✓ s1  Count it  count    2.6 s  attempt 2", "· s2  count"]
    view.take(moved("s2", "failed", elapsed_s=0.1, message="no\nball"))
    view.take(Event(kind="approval", step_id="s3", status="pending", message="why"))
    assert seen(view)[1:] == [
        "✗ s2  count              0.1 s  no ball",
        "! s3  count                     waits for you",
    ]
    view.take(Event(kind="approval", step_id="s3", status="approve"))
    assert seen(view)[2].startswith("· s3")


def test_children_stand_under_their_step_while_they_matter(view: View) -> None:
    """Those that run, failed or ask, five at most; the step itself counts those that are done."""
    view.take(moved("s3", "running", message="40 elements"))
    for index in range(40):
        view.take(moved(f"s3[{index}]", "running"))
    view.take(moved("s3[0]", "done", elapsed_s=0.1))
    rows = seen(view)
    assert rows[2].endswith("1 of 40")
    assert [row.split()[1] for row in rows[3:]] == [f"s3[{index}]" for index in range(1, 6)]
    assert isinstance(view.clock, Clock)
    view.clock.now += 4
    view.take(moved("s3", "done", elapsed_s=0.0))
    assert "4.0 s" in seen(view)[2], "a step takes as long as its children"


def test_the_heading_says_goal_progress_and_cost(view: View) -> None:
    """Goal, where the plan is from, how far it is, how long it took, what models have cost."""
    view.take(moved("s1", "done"))
    view.usage = lambda: Usage(model_calls=2, prompt_tokens=1_000, completion_tokens=234, cost=0.5)
    assert [text.plain for text in view.heading()] == [
        "g",
        "your plan · 1 of 3 steps · 0.0 s · 2 model calls, 1,234 tokens, 0.5000 of cost",
        "",
    ]
    view.take(planned({"id": "s1"}, revision=2, source="template", template="late_order"))
    view.stopping = True
    assert view.heading()[1].plain.startswith("template late_order, revision 2 · 1 of 1 step · ")
    assert view.heading()[1].plain.endswith("stopping …")
    view.take(planned({"id": "s1"}, revision=3, source="template"))
    assert view.heading()[1].plain.startswith("a sub-goal by a template, revision 3 · ")


def test_a_new_revision_keeps_what_is_known_of_a_step(view: View) -> None:
    """A step that stays keeps its row; one that is gone loses it."""
    view.take(moved("s1", "done", elapsed_s=1.0))
    view.take(planned({"id": "s1", "title": "Count it"}, {"id": "n1"}, revision=2))
    assert [row.split()[:2] for row in seen(view)] == [["✓", "s1"], ["·", "n1"]]


def test_nothing_from_a_plan_or_a_tool_acts_on_the_terminal() -> None:
    """Escapes, bells and turned text in goals, titles and messages are shown, not done."""
    view = View(clock=Clock())
    view.take(planned({"id": "s1", "title": "a\x1b[2Jb"}, goal="g\x07\u202e\nh"))
    view.take(moved("s1", "failed", title="t\x1b]0;x", message="m\x9b1m"))
    shown = [*(text.plain for text in view.heading()), *seen(view)]
    assert not [line for line in shown for character in line if not character.isprintable()]


@given(
    st.lists(st.sampled_from(sorted(MARKS)), max_size=60),
    st.integers(min_value=3, max_value=40),
)
def test_rows_are_fitted_with_what_matters_kept(statuses: list[str], most: int) -> None:
    """Never more rows than there is room for, and what runs is shown before what is finished or waits."""
    view = View(clock=Clock())
    view.lines = {f"s{index}": Line(f"s{index}", tool="t", status=status) for index, status in enumerate(statuses)}
    rows = [row.plain for row in fitted(view.rows(80), most)]
    assert len(rows) <= most
    busy = [
        f"s{index} " for index, status in enumerate(statuses) if status in ("running", "failed", "asking", "in_doubt")
    ]
    if len(busy) <= most - 2:
        assert all(any(name in row for row in rows) for name in busy)


@given(st.integers(min_value=30, max_value=200), st.text(max_size=80), st.text(max_size=30), st.text(max_size=60))
def test_columns_stand_under_each_other(width: int, title: str, tool: str, message: str) -> None:
    """Whatever is in them, wide characters included, the time of every row begins in the same column."""
    view = View(clock=Clock())
    view.lines = {
        "s1": Line("s1", title="Count", tool="count", status="done", elapsed_s=1.0),
        "s2": Line("s2", title=" ".join(title.split()), tool=tool, status="done", elapsed_s=1.0, message=message),
    }
    first, second = (row.plain for _, row in view.rows(width))
    assert cell_len(first[: first.index("1.0 s")]) == cell_len(
        second[: second.rindex("1.0 s", 0, len(second) - len(message))]
    )


def lines(*texts: str) -> list[tuple[str, int]]:
    """Lines as the painter takes them."""
    return [(text, cell_len(text)) for text in texts]


def test_only_what_changed_is_written() -> None:
    """A finished row is written once, however often the block is painted; nothing at all where nothing changed."""
    painter, terminal = Painter(), Terminal()
    for tick in range(10):
        terminal.feed(painter.frame(lines("heading", "✓ s1 done", f"▸ s2 {tick} s"), 80))
    assert terminal.screen == ["heading", "✓ s1 done", "▸ s2 9 s"]
    assert terminal.written == [1, 1, 10, 0]
    assert painter.frame(lines("heading", "✓ s1 done", "▸ s2 9 s"), 80) == ""


def test_a_shorter_block_leaves_nothing_behind() -> None:
    """Rows and ends of rows that are gone are cleared."""
    painter, terminal = Painter(), Terminal()
    terminal.feed("$ surestep run\n")
    terminal.feed(painter.frame(lines("a long heading", "one", "two", "three"), 80))
    terminal.feed(painter.frame(lines("short", "one"), 80))
    terminal.feed("answer\n")
    assert terminal.screen == ["$ surestep run", "short", "one", "answer"]


def test_what_others_print_stands_above_the_block() -> None:
    """A remark comes over the tree, whole lines only; the last one, unfinished, before the last frame."""
    painter, terminal = Painter(), Terminal()
    terminal.feed(painter.frame(lines("tree", "s1"), 80))
    for text in ("hel", "lo\nwor", "ld"):
        terminal.feed(painter.above(text))
    assert terminal.screen == ["hello", "tree", "s1"]
    terminal.feed(painter.rest())
    terminal.feed(painter.frame(lines("tree", "s1 done"), 80))
    assert terminal.screen == ["hello", "world", "tree", "s1 done"]
    assert painter.rest() == ""


def test_the_block_scrolls_with_the_terminal() -> None:
    """At the bottom of a small screen the block is still rewritten in place."""
    painter, terminal = Painter(), Terminal(height=5)
    terminal.feed("one\ntwo\nthree\nfour\n")
    for tick in range(3):
        terminal.feed(painter.frame(lines("tree", f"s1 {tick}", "s2"), 80))
    terminal.feed("answer\n")
    assert terminal.history == ["one", "two", "three", "four", "tree", "s1 2", "s2", "answer", ""]


def test_a_narrower_terminal_gets_the_whole_block_anew() -> None:
    """After a resize nothing is taken for granted: every row is written again, from where the block began."""
    painter, terminal = Painter(), Terminal(width=40)
    terminal.feed("$\n")
    terminal.feed(painter.frame(lines("x" * 30, "y"), 40))
    reflowed = Terminal(width=20)
    reflowed.feed(f"$\n{'x' * 30}\ny\n")
    reflowed.feed(painter.frame(lines("x" * 19, "y"), 20))
    assert reflowed.screen == ["$", "x" * 19, "y"]


def test_a_forgotten_block_stays_and_the_next_is_below() -> None:
    """A question stands between the tree before it and the one after it."""
    painter, terminal = Painter(), Terminal()
    terminal.feed(painter.frame(lines("tree", "s1"), 80))
    painter.forget()
    terminal.feed("question: a\n")
    terminal.feed(painter.frame(lines("tree", "s1 done"), 80))
    assert terminal.screen == ["tree", "s1", "question: a", "tree", "s1 done"]


def test_a_degraded_result_stays_marked_at_the_end(view: View) -> None:
    """What was a mock while it ran is one in the last picture too; nothing of it acts on the terminal."""
    view.take(moved("s1", "done", elapsed_s=0.1, message="answered by a mock"))
    assert "answered by a mock" in seen(view, 120)[0]
    step = StepResult(id="s1", tool="count", status="done", attempts=1, degraded="answered by a mock\x1b[2J", mock=True)
    view.settle(RunResult(run_id="r", thread_id="t", status="done", goal="g", steps=(step,)))
    assert "answered by a mock\\x1b[2J" in seen(view, 120)[0]
