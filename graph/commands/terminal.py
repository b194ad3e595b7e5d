"""The terminal beneath the tree: its keys, what others write to it, and a pause of the whole program."""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from graph.commands.stopping import Stopping

LATE_S = 0.1
"""How long the last words of others are waited for: a program that still runs may hold its end open for ever."""


@contextmanager
def stderr_into(take: Callable[[str], None], stopping: Stopping) -> Iterator[TextIO]:
    """Hand on what anybody writes to stderr: this program, its libraries, and the programs that they start. Gives the
    terminal itself."""
    sys.stderr.flush()
    words, into = os.pipe()
    with os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="backslashreplace") as terminal:

        def put_back() -> None:
            os.dup2(terminal.fileno(), 2)

        os.dup2(into, 2)
        os.close(into)
        ended = threading.Event()
        reading = threading.Thread(target=_hand_on, args=(words, take, ended), name="surestep-words", daemon=True)
        reading.start()
        stopping.leave.append(put_back)
        try:
            yield terminal
        finally:
            stopping.leave.remove(put_back)
            sys.stderr.flush()
            put_back()
            ended.set()
            reading.join()
            os.close(words)


def _hand_on(words: int, take: Callable[[str], None], ended: threading.Event) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while select.select([words], [], [], LATE_S)[0] or not ended.is_set():
        if select.select([words], [], [], 0)[0]:
            body = os.read(words, 65_536)
            take(decoder.decode(body, final=not body))
            if not body:
                return


@contextmanager
def keys_unseen(stopping: Stopping) -> Iterator[None]:
    """Keys that are pressed while the tree is shown do not write into it."""
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


@contextmanager
def continued(anew: Callable[[], None]) -> Iterator[None]:
    """After Ctrl-Z and `fg` the shell's own lines stand below the tree: a new one begins under them."""
    before = signal.signal(signal.SIGCONT, lambda *_: anew())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)
