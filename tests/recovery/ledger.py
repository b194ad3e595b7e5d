"""The world outside, a program of its own: it notes what reaches it over TCP, and knows nothing of who calls.

One JSON object per line, one line in answer. `{"book", "tool", "key", "unit", "args", "honour"}` is a call and gives a
receipt: where `honour` is true, a key that is known gets its first receipt again and nothing new happens. `{"book",
"probe"}` gives the receipt of a key, if there is one; `{"book"}` everything that was called, in order. Run as
`python ledger.py`; the port is the first line it prints, and it ends with its standard input.
"""

from __future__ import annotations

import json
import socket
import socketserver
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

Call = dict[str, Any]


class Books:
    """What has reached us, by book."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, list[Call]] = defaultdict(list)
        self._turn = threading.Lock()

    def answer(self, asked: Call) -> Any:
        """Note a call, or say what is known."""
        with self._turn:
            calls = self._calls[asked["book"]]
            if "probe" in asked:
                return next((call["receipt"] for call in calls if call["key"] == asked["probe"]), None)
            return self._noted(calls, asked) if "tool" in asked else calls

    @staticmethod
    def _noted(calls: list[Call], asked: Call) -> str:
        known = next((call["receipt"] for call in calls if asked["honour"] and call["key"] == asked["key"]), None)
        what = f"{asked['tool']} {json.dumps(asked['args'], sort_keys=True)}"
        times = sum(call["new"] and call["what"] == what for call in calls)
        receipt: str = known or f"{what} #{times + 1}"
        calls.append({**asked, "what": what, "receipt": receipt, "new": known is None})
        return receipt


class Ledger:
    """The ledger process, from the tests' side."""

    def __enter__(self) -> Self:
        self._program = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._program.stdout is not None
        self.port = int(self._program.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.communicate(timeout=10)

    def calls(self, book: str) -> list[Call]:
        """All that was called for this book, in order."""
        with socket.create_connection(("127.0.0.1", self.port)) as line, line.makefile("rw") as text:
            text.write(json.dumps({"book": book}) + "\n")
            text.flush()
            found: list[Call] = json.loads(text.readline())
        return found


def serve() -> None:
    """Answer until the standard input ends."""
    books = Books()

    class Line(socketserver.StreamRequestHandler):
        """One caller."""

        def handle(self) -> None:
            with suppress(ConnectionError):  # a caller that was killed
                for line in self.rfile:
                    self.wfile.write(json.dumps(books.answer(json.loads(line))).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        """One thread per caller."""

        daemon_threads = True

    with Server(("127.0.0.1", 0), Line) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    serve()
