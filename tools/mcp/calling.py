"""One call of a server's tool: on a connection that is there, of the tool that was listed, and told in our words."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plans.failure import ToolFailure
from plans.values import JSON
from tools.context import Progress, ToolContext
from tools.mcp.content import error_text, value_of
from tools.mcp.definition import Definition, Faulty, read
from tools.mcp.http import StatusError
from tools.mcp.link import Link, NotOpened
from tools.mcp.peer import Answered, Forgotten, Lost
from tools.output import BadOutput

KEY = "surestep/idempotency-key"
"""Under this name in `_meta` a tool with an effect is handed the key that stays the same when the call is repeated."""
PACE_S = 0.05
"""Least time between two words of progress."""
MARGIN_S = 0.1
"""How long before its deadline a call that has not been sent says so, so that nobody takes it for sent."""
_CODES: Mapping[int, tuple[str, str, bool]] = {
    -32602: ("INVALID_ARGS", "did not take these arguments", True),
    -32601: ("NOT_FOUND", "is not known to its server", True),
    -32600: ("TOOL_ERROR", "was asked in a way that its server does not understand", True),
    -32700: ("TOOL_ERROR", "was asked in a way that its server does not understand", True),
    -32002: ("NOT_FOUND", "did not find what it was asked for", False),
    -32042: ("NOT_PERMITTED", "wants a person to open a page first, which cannot be done from here", True),
}
"""JSON-RPC errors that mean something of their own: our code, the sentence, and whether the tool is known not to have
acted."""


@dataclass(frozen=True)
class Pinned:
    """A tool as it was when the registry was made. `tool` is our name of it, `described` whether its description is the
    server's; `certain` whether an error that it reports means that it has not acted."""

    tool: str
    definition: Definition
    digest: str
    described: bool
    reads: bool
    certain: bool


Links = Callable[[], Link]


async def call(links: Links, pinned: Pinned, args: Mapping[str, JSON], ctx: ToolContext) -> JSON:
    """The tool's result. `links` gives the connection, or a new one where that is over. Sent once more only where it is
    certain that it was not sent before. Raises ToolFailure, BadOutput, Lost, StatusError."""
    raw, forgotten = "", False
    for _ in range(2):
        link = links()
        try:
            return await _on(link, pinned, args, ctx)
        except Lost as lost:
            if lost.sent:
                lost.add_note(link.raw)
                raise
            link.retire()  # whatever ails it, it takes no request
            raw = link.raw
            forgotten = isinstance(lost, Forgotten)
    if forgotten:
        raise ToolFailure("NOT_FOUND", f"{pinned.tool} cannot be reached: its server answers 404, in a new session too")
    raise _unreachable(pinned.tool, "the connection was lost before the call", raw)


async def _on(link: Link, pinned: Pinned, args: Mapping[str, JSON], ctx: ToolContext) -> JSON:
    until = ctx.deadline - MARGIN_S
    await _before_sending(_checked(link, pinned, until), link, pinned)
    if not pinned.reads and not await link.is_there(until):
        raise Lost(sent=False)
    peer = await link.peer(until)
    asked: dict[str, Any] = {"name": pinned.definition.name, "arguments": dict(args)}
    if not pinned.reads:
        asked["_meta"] = {KEY: ctx.idempotency_key}
    try:
        result = link.without_secrets(await peer.request("tools/call", asked, _paced(link, ctx.progress)))
    except Answered as error:
        raise _refusal(pinned, error, link) from None
    if result.get("isError") is True:
        said = f"{pinned.tool} reported an error"
        failed = ToolFailure("TOOL_ERROR", said) if pinned.certain else BadOutput("TOOL_ERROR", said)
        failed.add_note(_raw(error_text(result), link))
        raise failed
    return await value_of(result, ctx, structured=pinned.definition.output_schema is not None)


async def _before_sending(work: Awaitable[None], link: Link, pinned: Pinned) -> None:
    """What goes wrong before the call is sent is certain not to have had an effect."""
    try:
        await work
    except NotOpened as why:
        raise _unreachable(pinned.tool, str(why), why.raw) from None
    except TimeoutError:
        raise _unreachable(pinned.tool, "its server did not answer in time", link.raw) from None
    except Answered as error:
        said = f"its server no longer lists its tools (JSON-RPC error {error.code})"
        raise _unreachable(pinned.tool, said, _raw(str(error), link)) from None
    except StatusError as error:
        raise _unreachable(pinned.tool, f"its server answered {error.status_code}", link.raw) from None
    except Lost:
        raise Lost(sent=False) from None


async def _checked(link: Link, pinned: Pinned, until: float) -> None:
    """The tool must be the one that plans and policy were made for: a server may have become another since."""
    for listed in await link.listed(until):
        if not isinstance(listed, dict) or listed.get("name") != pinned.definition.name:
            continue
        try:
            same = read(listed).digest(described=pinned.described) == pinned.digest
        except Faulty:
            same = False
        if same:
            return
        raise ToolFailure(
            "TOOL_DISABLED",
            f"{pinned.tool} is another tool now: its server has changed its description or schema since it was listed "
            "here. Look at it (surestep tools show) and start again to use it",
        )
    raise ToolFailure("NOT_FOUND", f"{pinned.tool} is gone: its server lists it no more")


def _paced(link: Link, progress: Progress) -> Progress:
    """Tells no more often than a person can see, however fast the server counts."""
    told = -math.inf

    def tell(fraction: float | None, words: str) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= PACE_S:
            told = now
            progress(fraction, link.scrubbed(words))

    return tell


def _refusal(pinned: Pinned, error: Answered, link: Link) -> ToolFailure:
    code, said, certain = _CODES.get(error.code, ("TOOL_ERROR", f"ended with JSON-RPC error {error.code}", False))
    message = f"{pinned.tool} {said}"
    refusal = ToolFailure(code, message) if certain or pinned.certain else BadOutput(code, message)
    refusal.add_note(_raw(str(error), link))
    return refusal


def _unreachable(tool: str, why: str, raw: str) -> ToolFailure:
    failure = ToolFailure("UNAVAILABLE", f"{tool} cannot be reached: {why}")
    failure.add_note(raw)
    return failure


def _raw(text: str, link: Link) -> str:
    return "\n".join(part for part in (f"the server said: {link.scrubbed(text[:16_000])}", link.raw) if part)
