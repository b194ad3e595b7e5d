"""A process that has imported everything and forks a child per order: so a trial costs milliseconds, not imports.

It has no event loop, no thread and no connection, so that a fork of it is as good as a process of its own. Run as
`python -m tests.recovery.forks`: orders come as JSON lines on its standard input; it says when a child has started, was
stopped and has ended.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.recovery.child import Order, run

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 60.0
"""How long a child may take before the test gives it up."""


class Child:
    """One forked process, from the tests' side."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.said: queue.Queue[dict[str, Any]] = queue.Queue()
        self.pid = 0
        self.code: int | None = None

    def until(self, event: str) -> Any:
        """Wait for "pid", "stopped" or "code"; an AssertionError tells what its log says when that does not come."""
        while True:
            try:
                said = self.said.get(timeout=LONGEST_S)
            except queue.Empty:
                raise AssertionError(f"{self.order} did not come to {event}: {self.log()}") from None
            if event in said:
                return said[event]
            if "code" in said:
                raise AssertionError(f"{self.order} ended with {said['code']}, before {event}: {self.log()}")

    def ends(self) -> int:
        """The exit code, or minus the signal that ended it."""
        if self.code is None:
            self.code = int(self.until("code"))
        return self.code

    def ended(self) -> dict[str, Any]:
        """What it has written down, when it ended by itself and without an error."""
        assert self.ends() == 0, f"{self.order} ended with {self.code}: {self.log()}"
        written: dict[str, Any] = json.loads(self.order.report.read_text("utf-8"))
        return written

    def signal(self, number: int) -> None:
        """Send it a signal; none, if it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def log(self) -> str:
        """The end of what it has written to its output."""
        path = self.order.report.with_suffix(".log")
        return path.read_text("utf-8")[-3_000:] if path.exists() else "nothing"


class Forks:
    """The forking process, from the tests' side. May be used from several threads."""

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.recovery.forks"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._children: dict[str, Child] = {}
        self._turn = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=10)
        self._listener.join(timeout=10)
        if self._server.stdout is not None:
            self._server.stdout.close()

    def start(self, order: Order) -> Child:
        """A child that does what the order says."""
        child = Child(order)
        with self._turn:
            token = str(len(self._children))
            self._children[token] = child
            self._tell({"token": token, "order": asdict(order)})
        child.pid = child.until("pid")
        return child

    def load(self, modules: list[str]) -> None:
        """Import more before the next fork: what a child has found to be missing."""
        with self._turn:
            self._tell({"modules": modules})

    def _tell(self, command: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(command) + "\n")
        self._server.stdin.flush()

    def _listen(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            said = json.loads(line)
            self._children[said.pop("token")].said.put(said)


class _Parent:
    """The forking process itself."""

    def __init__(self) -> None:
        self._tokens: dict[int, str] = {}
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(waker)

    def serve(self) -> None:
        """Fork and tell until the standard input ends; then end what is left."""
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_of_children()
            if 0 in ready:
                if not (chunk := os.read(0, 65536)):
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        for pid in self._tokens:
            os.kill(pid, signal.SIGKILL)

    def _obey(self, command: dict[str, Any]) -> None:
        for name in command.get("modules", ()):
            with suppress(ImportError):
                importlib.import_module(name)
        if "order" in command:
            order = Order(**command["order"])
            if not (pid := os.fork()):
                _be_a_child(order)
            self._tokens[pid] = command["token"]
            self._say(pid, {"pid": pid})

    def _tell_of_children(self) -> None:
        while self._tokens:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._say(pid, {"stopped": True})
            else:
                self._say(pid, {"code": os.waitstatus_to_exitcode(status)})
                del self._tokens[pid]

    def _say(self, pid: int, what: dict[str, Any]) -> None:
        os.write(1, json.dumps({"token": self._tokens[pid], **what}).encode() + b"\n")


def _be_a_child(order: Order) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    log = os.open(order.report.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    code = 1
    try:
        run(order)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _Parent().serve()
