"""A command on a real terminal: a pseudo terminal that it controls, keys to press, and a screen to look at."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.graph.program import COMMAND, PATIENCE_S, Project
from tests.graph.terminal import Terminal

# The child becomes the leader of a session whose terminal is its stdin: so a typed Ctrl-C reaches it as a signal.
LEADER = (
    "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass
class Desk:
    """A child and the terminal that it runs on."""

    child: subprocess.Popen[bytes]
    keys: int
    terminal: Terminal
    _decode: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))

    def press(self, keys: str) -> None:
        """Type these keys."""
        os.write(self.keys, keys.encode())

    def until(self, seen: str | Callable[[Terminal], bool]) -> list[str]:
        """Read until the screen shows this; gives the screen."""
        until = time.monotonic() + PATIENCE_S
        shows = seen if callable(seen) else lambda terminal: seen in "".join(terminal.screen)
        while not shows(self.terminal):
            assert time.monotonic() < until, (seen, self.terminal.screen)
            assert self.read(), (seen, self.terminal.history)
        return self.terminal.screen

    def read(self) -> bool:
        """Take in what has been written; False at the end."""
        if select.select([self.keys], [], [], 0.2)[0]:
            try:
                body = os.read(self.keys, 65_536)
            except OSError:  # the other side has been closed
                return False
            self.terminal.feed(self._decode.decode(body))
            return bool(body)
        return True

    def ended(self) -> int:
        """Read to the end; the exit code."""
        until = time.monotonic() + PATIENCE_S
        while self.read():
            assert time.monotonic() < until, self.terminal.screen
        return self.child.wait(PATIENCE_S)

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self.keys)[3] & termios.ECHO)


@contextmanager
def at_desk(project: Project, *arguments: str, width: int = 80, height: int = 24) -> Iterator[Desk]:
    """The command on a terminal of this size."""
    keys, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-c", LEADER, *COMMAND, *arguments],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        cwd=project.folder,
        env={**project.environment, "TERM": "xterm-256color"},
    )
    os.close(screen)
    try:
        yield Desk(child, keys, Terminal(width, height))
    finally:
        child.kill()
        child.wait()
        os.close(keys)
