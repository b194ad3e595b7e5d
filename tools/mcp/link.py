"""A connection to an MCP server, in a task of its own: anyio wants it opened and closed by the same one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS
from mcp.types import LATEST_PROTOCOL_VERSION

from tools.mcp.config import Server
from tools.mcp.http import StatusError, remote
from tools.mcp.peer import Answered, Lost, Peer
from tools.mcp.stdio import Words, child
from tools.normalise import catching
from tools.redaction import value_without, without

CLOSE_S = 6.0
"""How long an end may take: a child gets 2 s to leave by itself, and 2 more when it is asked to."""
PING_S = 5.0
"""How long a server that works on nothing may take to say that it is there."""
QUIET_S = 1.0
"""How long a server that was heard counts as being there."""
MAX_TOOLS = 2_000
OURSELVES = {"name": "surestep", "version": version("surestep")}
_MAX_PAGES = 200


class NotOpened(Exception):
    """Why there is no connection, as a clause for people; `raw` is what the server has said beside it."""

    def __init__(self, why: str, raw: str = "") -> None:
        super().__init__(why)
        self.raw = raw


class Link:
    """Opened when it is made, and over once the server is gone or `close` was called; a new one is made then."""

    def __init__(self, server: Server, verify: Any) -> None:
        self._server = server
        self._verify = verify
        self._words = Words()
        self._stop = asyncio.Event()
        self._retired = asyncio.Event()
        self._ready: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()
        self._listed: list[Any] | None = None
        self._turn = asyncio.Lock()
        self._peer: Peer | None = None
        self._task = asyncio.create_task(self._live(), name=f"MCP server {server.shown}")

    @property
    def over(self) -> bool:
        """Whether nothing can be asked any more."""
        ended = self._task.done() or self._stop.is_set() or self._retired.is_set()
        return ended or (self._peer is not None and self._peer.over.is_set())

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._task.done()

    @property
    def raw(self) -> str:
        """What the server has said that was no answer, without its secrets."""
        noise = list(self._peer.noise) if self._peer else []
        parts = [f"not MCP, on stdout: {line}" for line in noise]
        return self.scrubbed("\n".join([*parts, *([f"on stderr: {self._words.last}"] if self._words.last else [])]))

    def scrubbed(self, text: str) -> str:
        """A text of the server's without the secrets that it was given."""
        return without(text, self._server.secrets)

    def without_secrets(self, value: Any) -> Any:
        """What the server has sent, without the secrets that it was given."""
        return value_without(value, self._server.secrets)

    async def peer(self, until: float) -> Peer:
        """The conversation, once the server has greeted; `until` is an instant of time.monotonic(). Raises NotOpened:
        nothing was asked."""
        await asyncio.wait({self._ready}, timeout=max(0.0, until - time.monotonic()))
        if not self._ready.done():
            raise NotOpened(f"{self._server.shown} was not ready in time", self.raw)
        return self._ready.result()

    async def listed(self, until: float) -> list[Any]:
        """The server's tools as it lists them now: asked once, and again when it has said that they changed. Raises
        NotOpened, Lost, Answered."""
        peer = await self.peer(until)
        async with self._turn:
            if self._listed is None or peer.changed:
                peer.changed = False
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    self._listed = self.without_secrets(await _all_tools(peer))
            return self._listed

    async def is_there(self, until: float) -> bool:
        """Whether the server still listens: asked, save where it works on something or has just been heard over HTTP,
        where a request to nobody fails by itself."""
        peer = self._ready.result()
        quiet = time.monotonic() - peer.heard
        if not peer.idle.is_set() or (self._server.command is None and quiet < QUIET_S):
            return not peer.over.is_set()
        try:
            async with asyncio.timeout(min(PING_S, max(0.0, until - time.monotonic()))):
                await peer.request("ping")
        except Answered:
            return True  # it is there, and does not know the word
        except (Lost, StatusError, TimeoutError):
            return False
        return True

    def retire(self) -> None:
        """Take no new request; the connection ends when those that wait have their answers."""
        self._retired.set()

    async def close(self) -> None:
        """End the connection, and with it a child, however that may cling to life."""
        self._stop.set()
        await asyncio.wait({self._task}, timeout=CLOSE_S)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    async def _live(self) -> None:
        with catching() as caught:
            async with self._opened() as peer:
                await self._greet(peer)
                await _either(self._stop, peer.over, self._retired)
                await _either(self._stop, peer.over, peer.idle)
        if not self._ready.done():
            self._ready.set_exception(self._not_opened(caught.error))
        if not self._ready.cancelled():
            self._ready.exception()  # whoever asks is told; nobody need have

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Peer]:
        """A conversation on open streams, listened to until the block ends."""
        if self._server.command is not None:
            streams = child(self._server, self._words)
        else:
            streams = remote(self._server, self._failed, self._verify)
        with ExitStack() as at_the_end:  # what may not wait: where the task is cancelled, anyio lets nothing wait
            async with streams as (read, write):
                self._peer = peer = Peer(write)
                at_the_end.callback(read.close)
                listening = asyncio.create_task(peer.listen(read))
                at_the_end.callback(listening.cancel)  # until then, so that a child which says goodbye is heard
                try:
                    yield peer
                finally:
                    peer.close()
                    write.close()

    def _failed(self, number: object, error: Exception) -> None:
        if self._peer is not None:
            self._peer.failed(number, error)

    async def _greet(self, peer: Peer) -> None:
        asked = {
            "protocolVersion": LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": OURSELVES,
        }
        greeting = asyncio.ensure_future(peer.request("initialize", asked))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            wanted = self._server.start_timeout_s
            await asyncio.wait({greeting, stopped}, timeout=wanted, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not greeting.done():
                greeting.cancel()
        if greeting.cancelled() or not greeting.done():
            raise TimeoutError
        spoken = greeting.result().get("protocolVersion")
        if spoken not in SUPPORTED_PROTOCOL_VERSIONS:
            raise NotOpened(f"{self._server.shown} speaks a version of MCP that is not known here")
        await peer.notify("notifications/initialized")
        if not self._ready.done():
            self._ready.set_result(peer)

    def _not_opened(self, error: BaseException | None) -> NotOpened:
        """Why it did not come so far that something could be asked."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raw = f"{type(error).__name__}: {self.scrubbed(str(error))}\n{self.raw}" if error else self.raw
        return NotOpened(self._why_not(error), raw)

    def _why_not(self, error: BaseException | None) -> str:
        shown = self._server.shown
        match error:
            case NotOpened():
                return str(error)
            case TimeoutError():
                chatter = "; what it prints on stdout is not MCP" if self._peer and self._peer.noise else ""
                return f"{shown} did not answer within {self._server.start_timeout_s:g} s{chatter}"
            case Lost() if self._server.command is None:
                return f"no connection to {shown} could be made"
            case Lost() | None:
                return f"{shown} ended before it had answered"
            case OSError():
                return f"its program {shown} cannot be started ({error.strerror or 'see the raw text'})"
            case StatusError():
                return f"{shown} answered {error.status_code}"
            case Answered():
                return f"{shown} refused to begin (JSON-RPC error {error.code})"
        return f"{shown} could not be opened ({type(error).__name__})"


async def _all_tools(peer: Peer) -> list[Any]:
    """Every page of the list, up to a bound that no honest server reaches."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await peer.request("tools/list", {"cursor": cursor} if cursor else {})
        tools = page.get("tools")
        found += tools if isinstance(tools, list) else []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(found) > MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


async def _either(*events: asyncio.Event) -> None:
    """Until one of them is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
