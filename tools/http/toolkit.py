"""The toolkit `http` as it is declared; nothing of the network is imported before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.http.fetch import Reach, fetch
from tools.http.hosts import Hosts, patterns, private_addresses
from tools.http.results import Fetched
from tools.http.urls import parse
from tools.registry import Toolkit

if TYPE_CHECKING:
    from tools.http.connect import Resolver

MOST_BYTES = 2_000_000
TO_CONFIGURE = (
    "set http_hosts in surestep.toml, or SURESTEP_HTTP_HOSTS, to the hosts that it may reach, "
    "for example api.example.com,*.example.org"
)
SENDABLE = ("accept", "accept-language", "if-modified-since", "if-none-match", "user-agent")
"""Headers that a plan may set: none of them carries a credential, and none changes what the request is."""

Text = Annotated[str, Field(max_length=8_000)]
Scalar = Text | int | float | bool


def http_toolkit(
    hosts: Sequence[str] = (),
    private_hosts: Sequence[str] = (),
    *,
    most_bytes: int = MOST_BYTES,
    certificates: Path | None = None,
    resolve: Resolver | None = None,
) -> Toolkit:
    """A toolkit with the tool `http`, which reads from these hosts: `api.example.com`, `*.example.com`, with `:port`
    for one that is not usual. `private_hosts` are `name=address` for those whose address is not public.
    `certificates` is a file of authorities beside the usual ones, `resolve` a look-up of names other than the system's.

    ValueError for a host or address that cannot be used.
    """
    allowed = Hosts(patterns(hosts), private_addresses(private_hosts))
    reach = Reach(allowed, most_bytes, certificates, resolve)
    kit = Toolkit("http", description="Read JSON and text from hosts that a person has allowed.")

    @kit.tool(
        effect="read",
        timeout_s=15,
        sensitive_args=("url", "params"),
        to_configure=None if hosts else TO_CONFIGURE,
    )
    async def http(
        ctx: ToolContext,
        url: Annotated[str, Field(min_length=8, max_length=8_000)],
        params: dict[str, Scalar | list[Scalar]] | None = None,
        headers: dict[str, Text] | None = None,
        method: Literal["GET", "HEAD"] = "GET",
    ) -> Fetched:
        """Fetch JSON or text from an http or https URL on an allowed host. `params` are added to the query. `headers`
        may be Accept, Accept-Language, If-Modified-Since, If-None-Match and User-Agent. Redirects are followed."""
        target = parse(url, params)
        allowed.check(target)
        sent = _sendable(headers or {})
        async with asyncio.timeout(ctx.seconds_left):
            return await fetch(method, target, sent, reach)

    return kit


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() not in SENDABLE:
            raise ToolFailure("NOT_PERMITTED", f"a plan may not send the header {name[:80]!r}; {_may_send()}")
        if not value.isascii() or not value.isprintable():
            raise ToolFailure("INVALID_ARGS", f"the header {name} holds what a header cannot hold")
    return dict(headers)


def _may_send() -> str:
    return f"it may send {', '.join(SENDABLE)}; what needs a credential is declared as an OpenAPI toolkit"
