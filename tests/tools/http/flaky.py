"""A real HTTP server on this machine whose faults are scripted request by request, and which keeps what it was sent.

It speaks over plain sockets: what it says may be wrong in ways that no library for servers lets one say.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus

HOST = "localhost"
ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class Received:
    """One request as it came over the wire; `headers` by name in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Speaker:
    """One connection, as a script uses it."""

    def __init__(self, connection: socket.socket, request: Received, closing: threading.Event) -> None:
        self.request = request
        self._connection = connection
        self._closing = closing

    def say(self, raw: bytes) -> None:
        """Send these bytes."""
        self._connection.sendall(raw)

    def wait(self, seconds: float) -> None:
        """Let time pass; the server's end cuts it short."""
        self._closing.wait(seconds)

    def wait_for_the_end(self) -> None:
        """Return when the client has ended the connection."""
        while self._connection.recv(4_096):
            pass

    def cut(self) -> None:
        """End the connection without a farewell: a reset."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()


Script = Callable[[Speaker], None]


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """A status line and headers."""
    phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def says(body: bytes | str = "", status: int = 200, media: str = "application/json", **more: str) -> Script:
    """A whole answer. Headers are given with underscores."""
    content = body.encode() if isinstance(body, str) else body
    extra = {name.replace("_", "-"): value for name, value in more.items()}

    def script(speaker: Speaker) -> None:
        speaker.say(head(status, {"Content-Type": media, "Content-Length": str(len(content)), **extra}))
        if speaker.request.method != "HEAD":
            speaker.say(content)

    return script


def busy(seconds: float, *, as_date: bool = False) -> Script:
    """429 with a Retry-After."""
    after = formatdate(time.time() + seconds, usegmt=True) if as_date else f"{seconds:g}"
    return says('{"error": "slow down"}', 429, Retry_After=after)


def redirects(location: str, status: int = 302) -> Script:
    """A redirect."""
    return says("", status, Location=location)


def late(seconds: float, then: Script) -> Script:
    """Says nothing for a while."""

    def script(speaker: Speaker) -> None:
        speaker.wait(seconds)
        then(speaker)

    return script


def slow_headers(seconds: float) -> Script:
    """Begins to answer, and goes on with a letter at a time."""

    def script(speaker: Speaker) -> None:
        text = head(200, {"Content-Type": "application/json", "Content-Length": "2"})
        for index in range(len(text)):
            speaker.say(text[index : index + 1])
            speaker.wait(seconds / len(text))
        speaker.say(b"{}")

    return script


def trickle(seconds: float, every: float = 0.05) -> Script:
    """Sends headers at once and then a body that drips."""

    def script(speaker: Speaker) -> None:
        count = int(seconds / every)
        speaker.say(head(200, {"Content-Type": "text/plain", "Content-Length": str(count)}))
        for _ in range(count):
            speaker.say(b".")
            speaker.wait(every)

    return script


def cut(after: bytes = b"") -> Script:
    """Sends these bytes and resets the connection."""

    def script(speaker: Speaker) -> None:
        speaker.say(after)
        if after:
            speaker.wait(0.05)  # else the reset overtakes what was said
        speaker.cut()

    return script


CUT_IN_BODY = cut(head(200, {"Content-Type": "application/json", "Content-Length": "1000"}) + b'{"a": ')
CUT_BEFORE_HEADERS = cut()


def raw(whole: bytes) -> Script:
    """Exactly these bytes, then an orderly end."""
    return lambda speaker: speaker.say(whole)


@dataclass
class FlakyServer:
    """`scripts` hold what each path says, request by request; the last one is said for ever."""

    port: int
    scheme: str = "http"
    scripts: dict[str, list[Script]] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    _closing: threading.Event = field(default_factory=threading.Event)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def on(self, path: str, *scripts: Script) -> str:
        """What a path says, and its URL."""
        self.scripts[path] = list(scripts)
        return self.url(path)

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"{self.scheme}://{HOST}:{self.port}{path}"

    def calls(self, path: str) -> list[Received]:
        """The requests that came for a path, whatever their query."""
        return [request for request in self.requests if request.path.partition("?")[0] == path]

    def serve(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._speak, args=(connection, tls), daemon=True).start()

    def close(self) -> None:
        """Wake all who wait."""
        self._closing.set()

    def _speak(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        with suppress(OSError):  # the client may leave at any moment
            connection.settimeout(10)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            with connection:
                if (request := _read(connection)) is not None:
                    self._answer(Speaker(connection, request, self._closing))

    def _answer(self, speaker: Speaker) -> None:
        path = speaker.request.path.partition("?")[0]
        with self._counting:
            before = len(self.calls(path))
            self.requests.append(speaker.request)
        scripts: Sequence[Script] = self.scripts.get(path) or [says('{"error": "nothing here"}', 404)]
        scripts[min(before, len(scripts) - 1)](speaker)


@contextmanager
def flaky_server(tls: ssl.SSLContext | None = None) -> Iterator[FlakyServer]:
    """A server on a free port of this machine, gone afterwards."""
    with socket.create_server((ADDRESS, 0), backlog=64) as listener:
        server = FlakyServer(listener.getsockname()[1], "https" if tls else "http")
        accepting = threading.Thread(target=server.serve, args=(listener, tls), daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            server.close()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # else the thread stays in accept
            accepting.join(5)


def _read(connection: socket.socket) -> Received | None:
    """One request with its body; None if the client left before it had said it."""
    text = b""
    while b"\r\n\r\n" not in text:
        if not (piece := connection.recv(65_536)):
            return None
        text += piece
    top, _, body = text.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        if not (piece := connection.recv(65_536)):
            return None
        body += piece
    return Received(method, path, headers, body)
