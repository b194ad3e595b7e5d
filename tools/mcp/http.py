"""A server at a URL, by streamable HTTP. What goes wrong with one request is that request's failure and no other's.

The SDK's transport lets an HTTP error of one request end the whole connection, and a stream that ends without an answer
wait for ever. So each is caught below it, where HTTP is spoken, and told to whoever waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp.client.streamable_http import streamable_http_client

from tools.mcp.config import Server
from tools.mcp.peer import Forgotten, Lost

GRACE_S = 0.25
"""How long after the end of a stream its answer may still be on its way to whoever waits."""
RESUME_S = 5.0
"""The same where the server numbers its events: the transport asks again for what came after the last one."""
MAX_ANSWER = 128 * 1024 * 1024
"""Most bytes of one answer, its events included: what the largest file takes that a result may hold, and some more."""
_TIMEOUT = httpx.Timeout(30.0, read=300.0)

Failed = Callable[[object, Exception], None]


class StatusError(Exception):
    """The server answered a request with an HTTP status that is an error; `status_code` and `headers` are its."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"the MCP server answered {response.status_code}")
        self.status_code = response.status_code
        self.headers = response.headers


@asynccontextmanager
async def remote(server: Server, failed: Failed, verify: Any) -> AsyncIterator[Any]:
    """The streams of a server at a URL; nothing is connected until something is sent. `failed` is told the number of a
    request that will not be answered, and why. Redirects are followed only within the server's origin."""
    transport = _Watched(httpx.AsyncHTTPTransport(verify=verify), failed)
    headers = {"Accept-Encoding": "identity", **server.headers}  # what is packed may be larger than any memory
    client = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT, transport=transport)
    async with client, streamable_http_client(server.url or "", http_client=client) as (read, write, _):
        yield read, write


class _Watched(httpx.AsyncBaseTransport):
    """Passes requests on, and tells of those that fail. To the SDK a request that failed looks accepted (202)."""

    def __init__(self, inner: httpx.AsyncBaseTransport, failed: Failed) -> None:
        self._inner = inner
        self._failed = failed

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        asked, number = _asked(request)
        if not asked:
            return await self._inner.handle_async_request(request)
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return self._accepted(request, number, Lost(sent=False))
        except httpx.TransportError:
            return self._accepted(request, number, Lost(sent=True))
        if response.status_code == httpx.codes.NOT_FOUND and number is not None and "mcp-session-id" in request.headers:
            await response.aclose()
            return self._accepted(request, number, Forgotten())
        if response.status_code >= httpx.codes.BAD_REQUEST:
            await response.aclose()
            return self._accepted(request, number, StatusError(response))
        if number is not None and response.is_success and not _is_answer(response):
            await response.aclose()
            return self._accepted(request, number, Lost(sent=True))
        if number is not None:
            response.stream = _Heard(response.stream, lambda resumable: self._ended(number, resumable=resumable))
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    def _accepted(self, request: httpx.Request, number: object, error: Exception) -> httpx.Response:
        self._failed(number, error)
        return httpx.Response(202, request=request)

    def _ended(self, number: object, *, resumable: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(RESUME_S if resumable else GRACE_S, self._failed, number, Lost(sent=True))


class _Heard(httpx.AsyncByteStream):
    """A response's body, whose end is told however it comes."""

    def __init__(self, inner: Any, ended: Callable[[bool], None]) -> None:
        self._inner = inner
        self._ended = ended
        self._resumable = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            heard = 0
            async for chunk in self._inner:
                heard += len(chunk)
                if heard > MAX_ANSWER:
                    raise httpx.ReadError("the answer has no end")
                self._resumable = self._resumable or chunk.startswith(b"id:") or b"\nid:" in chunk
                yield chunk
        finally:
            self._ended(self._resumable)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_answer(response: httpx.Response) -> bool:
    """Whether the transport can read an answer from it: it would wait for ever for one in another form."""
    media = response.headers.get("content-type", "").lower()
    plain = response.headers.get("content-encoding", "identity") == "identity"
    return (
        plain and response.status_code == httpx.codes.OK and media.startswith(("application/json", "text/event-stream"))
    )


def _asked(request: httpx.Request) -> tuple[bool, object]:
    """Whether a request carries a message of ours, and the number of that where it wants an answer."""
    if request.method != "POST":
        return False, None
    message = json.loads(request.content)
    return True, message.get("id") if "method" in message else None
