"""The tree of a run at the end of a terminal, repainted a few times a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from graph.commands.live import Watch
from graph.commands.painter import Painter
from graph.commands.printing import console, harmless, written
from graph.commands.terminal import continued, keys_unseen, stderr_into
from graph.commands.view import View, fitted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from graph.commands.stopping import Stopping
    from nodes.events import Event

REFRESH_S = 0.2
LONG_TREE = 200
"""Rows of a finished run's tree that are printed in full."""


class Screen(Watch):
    """A thread of its own repaints the tree, whatever the event loop is busy with; what others print stands above."""

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
        """Keep the tree up to date until the block ends, however it does."""
        try:
            with self._repainted():
                yield
        finally:
            self._terminal = sys.stderr
            self._write(self._painter.rest())
            self._paint(LONG_TREE)

    @contextmanager
    def _repainted(self) -> Iterator[None]:
        thread = threading.Thread(target=self._keep_painting, name="surestep-tree", daemon=True)
        with (
            stderr_into(self.above, self._stopping) as self._terminal,
            self._keys,
            continued(self._painter.forget),
        ):
            self._keys.enter_context(keys_unseen(self._stopping))
            thread.start()
            try:
                yield
            finally:
                self._ended.set()
                thread.join()

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
            self._keys.enter_context(keys_unseen(self._stopping))

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
        out = console(file=self._terminal)
        try:
            size = os.get_terminal_size(self._terminal.fileno())
        except OSError:
            return out, out.width, 24
        return out, size.columns or out.width, size.lines or 24

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone: the run goes on
            self._terminal.write(text)
            self._terminal.flush()


def _rendered(out: Console, texts: Sequence[Text], width: int) -> list[tuple[str, int]]:
    from rich.cells import cell_len

    lines = []
    for text in texts:
        text.truncate(width, overflow="ellipsis")
        with out.capture() as captured:
            out.print(text, end="", no_wrap=True, crop=False, width=width + 1)
        lines.append((written(captured.get().rstrip(), out.file), cell_len(text.plain.rstrip())))
    return lines
