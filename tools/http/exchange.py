"""One request and its answer, over a connection of its own, with limits on everything that comes back."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import cast

import httpcore

from tools.http.connect import GuardedNetwork
from tools.http.inflate import TAKEN, decoder_for
from tools.http.messages import Answer, Request
from tools.output import BadOutput

CONNECT_S = 10.0
"""Most time for look-up, connection and TLS; the call's own deadline may come first."""
USER_AGENT = "surestep"


async def exchange(
    request: Request, network: GuardedNetwork, *, most_bytes: int, certificates: Path | None = None
) -> Answer:
    """Send once and read the answer. There is no cookie, no retry, no redirect and no deadline here.

    Raises httpcore's errors of the connection, ToolFailure from the guard, BadOutput for a body that cannot be decoded.
    """
    target = request.target
    origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
    url = httpcore.URL(scheme=origin.scheme, host=origin.host, port=target.port, target=target.path.encode())
    context = _tls(certificates) if target.scheme == "https" else None
    async with (
        httpcore.AsyncHTTPConnection(origin, ssl_context=context, network_backend=network) as connection,
        connection.stream(
            request.method,
            url,
            headers=_headers(request),
            content=request.content,
            extensions={"timeout": {"connect": CONNECT_S}},
        ) as response,
    ):
        headers = _lowered(response.headers)
        if request.method == "HEAD":
            return Answer(response.status, headers, b"")
        try:
            body, truncated = await _read(response, headers, most_bytes)
        except BadOutput:
            if 200 <= response.status < 300:
                raise
            body, truncated = b"", False  # that it failed is what its status says, whatever stands in the body
        return Answer(response.status, headers, body, truncated)


async def _read(response: httpcore.Response, headers: Mapping[str, str], most: int) -> tuple[bytes, bool]:
    """The decoded body up to `most` bytes, and whether there was more; reading stops there."""
    decoder = decoder_for([name.strip().lower() for name in headers.get("content-encoding", "").split(",")])
    body, received = bytearray(), 0
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_stream())) as pieces:
        async for piece in pieces:
            received += len(piece)
            body += decoder.decoded(piece, most + 1 - len(body))
            if len(body) > most or received > 2 * most + 65_536:
                return bytes(body[:most]), True
    if not decoder.ended:
        raise BadOutput("OUTPUT_INVALID", "the answer ends before its compressed body does")
    return bytes(body), False


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    given = {name.lower(): value for name, value in request.headers.items()}
    own = {"user-agent": USER_AGENT, "accept-encoding": TAKEN, "connection": "close"}
    if request.content is not None:
        own["content-length"] = str(len(request.content))
    merged = {**own, **given, "host": request.target.authority}
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in merged.items()]


def _lowered(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


@cache
def _tls(certificates: Path | None) -> ssl.SSLContext:
    """Verification of name and chain by the usual authorities, and those in a file of the operator's."""
    import certifi

    context = ssl.create_default_context(cafile=certifi.where())
    if certificates is not None:
        context.load_verify_locations(certificates)
    return context
