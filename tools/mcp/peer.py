"""A conversation with an MCP server over two streams: requests with their answers, notifications, and its end.

The transports are the SDK's; this stands where its ClientSession would, to know three things that it does not tell:
whether a request was handed over, whether the server is gone, and what of a list of tools can be read when one cannot.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from anyio import BrokenResourceError, ClosedResourceError
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

Progress = Callable[[float | None, str], None]
METHOD_NOT_FOUND = -32601
_KEPT_NOISE = 5
_REPLIES = 16
"""Most answers to the server that wait to be sent; it is not owed more."""


class Lost(ConnectionError):
    """The connection ended before the answer came. `sent` False: the request never left."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("the connection to the MCP server was lost")
        self.sent = sent


class Forgotten(Lost):
    """The server knows our session no more, as it says; so it has done nothing with the request."""

    def __init__(self) -> None:
        super().__init__(sent=False)


class Answered(Exception):
    """The server answered with a JSON-RPC error; its text is a foreign one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Sending(Protocol):
    """Where messages to the server go."""

    async def send(self, item: SessionMessage, /) -> None:
        """Hand one over."""
        ...


class Peer:
    """The other end of a connection. It belongs to the event loop that it was made on; anybody there may ask.

    `over` is set once the server has said its last, `idle` while nobody waits for an answer; `changed` when it says
    that its tools are others now; `noise` are lines that were no messages; `heard` is the instant of its last message,
    by time.monotonic().
    """

    def __init__(self, write: Sending) -> None:
        self._write = write
        self._waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Progress | None]] = {}
        self._number = 0
        self._sending: set[asyncio.Task[None]] = set()
        self.over = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
        self.changed = False
        self.noise: deque[str] = deque(maxlen=_KEPT_NOISE)
        self.heard = 0.0

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The result. Who is cancelled while waiting has the server told so. Raises Lost, Answered."""
        if self.over.is_set():
            raise Lost(sent=False)
        number, self._number = self._number, self._number + 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (answer, progress)
        self.idle.clear()
        told = dict(params or {})
        if progress is not None:
            told["_meta"] = {**told.get("_meta", {}), "progressToken": number}
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=told or None)
        try:
            await self._send(JSONRPCMessage(message))
            return await answer
        except asyncio.CancelledError:
            self._soon("notifications/cancelled", {"requestId": number})
            raise
        finally:
            del self._waiting[number]
            if not self._waiting:
                self.idle.set()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something. Raises Lost."""
        notification = JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params) if params else None)
        await self._send(JSONRPCMessage(notification))

    async def listen(self, read: AsyncIterator[SessionMessage | Exception]) -> None:
        """Take what the server says, until it says no more; whoever waits then has lost it."""
        try:
            with suppress(ClosedResourceError, BrokenResourceError):
                async for item in read:
                    if isinstance(item, Exception):
                        self.noise.append(str(item)[:500])
                    else:
                        self._take(item.message.root)
        finally:
            self.over.set()
            for number in list(self._waiting):
                self.failed(number, Lost(sent=True))

    def failed(self, number: object, error: Exception) -> None:
        """There will be no answer to this request."""
        answer, _ = self._waiting.get(number, (None, None)) if isinstance(number, int) else (None, None)
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _take(self, message: JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> None:
        self.heard = time.monotonic()
        match message:
            case JSONRPCResponse(id=number, result=result):
                answer, _ = self._waiting.get(_numbered(number), (None, None))
                if answer is not None and not answer.done():
                    answer.set_result(result)
            case JSONRPCError(id=number, error=error):
                self.failed(_numbered(number), Answered(error.code, error.message))
            case JSONRPCNotification():
                self._note(message)
            case JSONRPCRequest():
                self._reply(message)

    def _note(self, notification: JSONRPCNotification) -> None:
        params = notification.params or {}
        if notification.method == "notifications/tools/list_changed":
            self.changed = True
        elif notification.method == "notifications/progress":
            _, progress = self._waiting.get(_numbered(params.get("progressToken")), (None, None))
            if progress is not None:
                progress(*_fraction(params))

    def _reply(self, request: JSONRPCRequest) -> None:
        """A ping is answered; nothing else that a server may ask for (files, models, people) is offered to it."""
        if request.method == "ping":
            self._later(JSONRPCResponse(jsonrpc="2.0", id=request.id, result={}))
        else:
            error = ErrorData(code=METHOD_NOT_FOUND, message="not offered by this client")
            self._later(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))

    def _soon(self, method: str, params: dict[str, Any]) -> None:
        self._later(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))

    def _later(self, message: JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> None:
        """Send without waiting: a server that does not read must not keep us from listening."""
        if len(self._sending) < _REPLIES and not self.over.is_set():
            task = asyncio.get_running_loop().create_task(self._quietly(JSONRPCMessage(message)))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _quietly(self, message: JSONRPCMessage) -> None:
        with suppress(Lost):
            await self._send(message)

    async def _send(self, message: JSONRPCMessage) -> None:
        try:
            await self._write.send(SessionMessage(message))
        except (ClosedResourceError, BrokenResourceError):
            raise Lost(sent=False) from None

    def close(self) -> None:
        """Say no more."""
        for task in self._sending:
            task.cancel()


def _numbered(number: object) -> int:
    """The number of a request, which some servers give back as text; -1 where it is none."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 16:
        return int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else -1


def _fraction(params: Mapping[str, Any]) -> tuple[float | None, str]:
    """Progress as ours: a share between 0 and 1 where a total is said, and the server's words, cut and printable."""
    done, total, words = params.get("progress"), params.get("total"), params.get("message")
    shown = "".join(c if c.isprintable() else " " for c in words[:200]) if isinstance(words, str) else ""
    return (_share(done, total) if isinstance(done, int | float) and isinstance(total, int | float) else None), shown


def _share(done: float, total: float) -> float | None:
    """A share between 0 and 1; None where the two numbers are none, or too large for one."""
    try:
        share = done / total
    except (OverflowError, ZeroDivisionError):
        return None
    return min(1.0, max(0.0, share)) if total > 0 and math.isfinite(share) else None
