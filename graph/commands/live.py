"""Showing a run while it goes on: a tree of its steps on a terminal, plain lines elsewhere, silence with --json."""

from __future__ import annotations

import io
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO

from typing_extensions import override

from graph.commands.painter import Painter
from graph.commands.printing import console, counted, harmless, say, written
from graph.commands.view import View, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from graph.commands.stopping import Stopping
    from nodes.events import Event

REFRESH_S = 0.2
LONG_TREE = 200
"""Rows of a finished run's tree that are printed in full."""
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
    return _Screen(view, stopping) if _can_paint() else _Lines(view)


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
    if event.message:
        parts.append(" ".join(event.message.split()))
    return " · ".join(parts)


class _Screen(Watch):
    """The tree at the end of the terminal. A thread of its own repaints it, whatever the event loop is busy with."""

    def __init__(self, view: View, stopping: Stopping) -> None:
        super().__init__(view)
        self.can_ask = sys.stdin.isatty()
        self._stopping = stopping
        self._terminal: TextIO = sys.stderr
        self._painter = Painter()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._painting = True
        self._keys = ExitStack()

    @override
    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep the tree up to date until the block ends; what is printed meanwhile stands above it."""
        thread = threading.Thread(target=self._keep_painting, name="surestep-tree", daemon=True)
        above = _Above(self.above)
        with self._keys, _after_a_pause(self._painter), redirect_stdout(above), redirect_stderr(above):
            self._keys.enter_context(_keys_unseen(self._stopping))
            thread.start()
            try:
                yield
            finally:
                self._ended.set()
                thread.join()
                self._write(self._painter.rest())
                self._paint(LONG_TREE)

    @override
    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the tree as it stands and the keys to whoever types; with the next event a new one begins below."""
        with self._lock:
            self._paint(LONG_TREE)
            self._painter.forget()
            self._painting = False
            self._keys.close()
        try:
            yield
        finally:
            self._keys.enter_context(_keys_unseen(self._stopping))

    @override
    def take(self, event: Event) -> None:
        if event.kind == "notice":
            self.above(f"{event.message or ''}\n")
        with self._lock:
            self._painting = True
            super().take(event)

    def above(self, text: str) -> None:
        """Text of others, over the tree; straight to the terminal while there is none."""
        with self._lock:
            shown = written(harmless(text), self._terminal)
            self._write(self._painter.above(shown) if self._painting else shown)

    def _keep_painting(self) -> None:
        while not self._ended.wait(REFRESH_S):
            self._paint(None)

    def _paint(self, most: int | None) -> None:
        with self._lock:
            if self._painting:
                self._write(self._frame(most))

    def _frame(self, most: int | None) -> str:
        out, columns, height = self._size()
        width = max(20, min(out.width, columns)) - 1
        heading = self._view.heading()
        if self._ended.is_set() and not self._view.lines:  # nothing has come of it: whatever is said next says why
            return self._painter.frame([], columns)
        rows = fitted(self._view.rows(width), most or max(3, height - len(heading) - 1))
        return self._painter.frame(_rendered(out, [*heading, *rows], width), columns)

    def _size(self) -> tuple[Console, int, int]:
        out = console(stderr=True)
        out.file = self._terminal
        try:
            size = os.get_terminal_size(self._terminal.fileno())
        except OSError:
            return out, out.width, 24
        return out, size.columns or out.width, size.lines or 24

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone: the run goes on
            self._terminal.write(text)
            self._terminal.flush()


@contextmanager
def _after_a_pause(painter: Painter) -> Iterator[None]:
    """After Ctrl-Z and `fg` the shell's own lines stand below the tree: a new one begins under them."""
    before = signal.signal(signal.SIGCONT, lambda *_: painter.forget())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def _rendered(out: Console, texts: Sequence[Text], width: int) -> list[tuple[str, int]]:
    from rich.cells import cell_len

    lines = []
    for text in texts:
        text.truncate(width, overflow="ellipsis")
        with out.capture() as captured:
            out.print(text, end="", no_wrap=True, crop=False, width=width + 1)
        lines.append((written(captured.get().rstrip(), out.file), cell_len(text.plain.rstrip())))
    return lines


class _Above(io.TextIOBase):
    """What others print while the tree is shown."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    @property
    def encoding(self) -> str:  # type: ignore[override]  # TextIOBase declares an attribute
        return "utf-8"

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, text: str) -> int:
        self._show(text)
        return len(text)


@contextmanager
def _keys_unseen(stopping: Stopping) -> Iterator[None]:
    """Keys that are pressed while the tree is shown do not write into it, and answer nothing that is asked later."""
    before = _terminal_modes()
    if before is None:
        yield
        return
    unseen = [*before]
    unseen[3] &= ~termios.ECHO

    def put_back() -> None:
        if _in_foreground():
            termios.tcsetattr(0, termios.TCSADRAIN, before)

    stopping.leave.append(put_back)
    termios.tcsetattr(0, termios.TCSADRAIN, unseen)
    try:
        yield
    finally:
        stopping.leave.remove(put_back)
        put_back()


def _terminal_modes() -> list[Any] | None:
    """The modes of the terminal that we read from, if there is one and it is ours to change."""
    try:
        return termios.tcgetattr(0) if _in_foreground() else None
    except termios.error:
        return None


def _in_foreground() -> bool:
    """A program in the background that changes the terminal is stopped by the kernel."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def forget_typed() -> None:
    """What was typed before a question is no answer to it."""
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)
