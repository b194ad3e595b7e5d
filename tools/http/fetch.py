"""A GET or HEAD with its redirects, each hop of which is guarded like the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from plans.failure import ToolFailure
from tools.http.content import json_of, media_type, text_of
from tools.http.hosts import Hosts
from tools.http.messages import Answer, Request, StatusError
from tools.http.results import Fetched
from tools.http.urls import Target, redirected
from tools.output import BadOutput

if TYPE_CHECKING:
    from tools.http.connect import GuardedNetwork, Resolver

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SHOWN = ("content-language", "content-length", "etag", "last-modified", "link", "retry-after")
# What says nothing about the caller, and so may follow to another server.
_FOLLOWING = frozenset({"accept", "accept-language", "user-agent"})


@dataclass(frozen=True)
class Reach:
    """Where requests may go, and how much may come back: decoded bytes of one body. `certificates` is a file of
    authorities beside the usual ones."""

    hosts: Hosts
    most_bytes: int
    certificates: Path | None = None
    resolve: Resolver | None = None

    @cached_property
    def network(self) -> GuardedNetwork:
        """The door to the network for these hosts, with the system's look-up of names unless another is given."""
        from tools.http.connect import GuardedNetwork, system_resolver

        return GuardedNetwork(self.hosts, self.resolve or system_resolver)


async def fetch(method: str, target: Target, headers: Mapping[str, str], reach: Reach) -> Fetched:
    """The answer behind the redirects, as JSON or text. Raises as `follow`, StatusError for a status that is no result,
    and BadOutput for a body that is neither."""
    target, answer = await follow(Request(method, target, headers), reach)
    if not (200 <= answer.status < 300 or answer.status == 304):
        raise StatusError(answer, target)
    return _fetched(method, target, answer)


async def sent(request: Request, reach: Reach) -> Answer:
    """Send once, if the host is allowed; what comes back may be a redirect. ToolFailure NOT_PERMITTED from the guard,
    BadOutput for a body that cannot be decoded, and httpcore's errors of the connection."""
    from tools.http.exchange import exchange

    reach.hosts.check(request.target)
    return await exchange(request, reach.network, most_bytes=reach.most_bytes, certificates=reach.certificates)


async def follow(request: Request, reach: Reach, *, stay: bool = False) -> tuple[Target, Answer]:
    """The answer behind at most MAX_REDIRECTS redirects, each of them guarded like the first URL, and where it came
    from. `stay` refuses those to another server. Raises as `sent`."""
    seen: list[Target] = []
    while True:
        answer = await sent(request, reach)
        seen.append(request.target)
        location = answer.headers.get("location")
        if answer.status not in _REDIRECTS or location is None:
            return request.target, answer
        request = replace(request, target=_next(seen, location))
        if request.target.origin != seen[-1].origin:
            if stay:
                said = f"{seen[-1].shown} redirects to another server, where nothing of this service is sent"
                raise ToolFailure("NOT_PERMITTED", said)
            following = {name: value for name, value in request.headers.items() if name.lower() in _FOLLOWING}
            request = replace(request, headers=following)


def _next(seen: list[Target], location: str) -> Target:
    target = redirected(seen[-1], location)
    if target in seen:
        raise ToolFailure("INVALID_INPUT", f"{seen[0].shown} redirects in a circle")
    if len(seen) > MAX_REDIRECTS:
        raise ToolFailure("INVALID_INPUT", f"{seen[0].shown} redirects more than {MAX_REDIRECTS} times")
    return target


def _fetched(method: str, target: Target, answer: Answer) -> Fetched:
    media = media_type(answer.headers.get("content-type"))
    value, text = None, None
    if method == "GET" and answer.body:
        if media.is_json:
            if answer.truncated:
                raise BadOutput("OUTPUT_INVALID", f"the answer is JSON of more than {len(answer.body):,} bytes")
            value = json_of(answer.body)
        elif media.is_text:
            text = text_of(answer.body, media, truncated=answer.truncated)
        else:
            raise BadOutput("OUTPUT_INVALID", f"the answer is {media.name[:80]}; only JSON and text can be given")
    return Fetched(
        status=answer.status,
        url=target.url,
        media_type=media.name,
        headers={name: answer.headers[name] for name in _SHOWN if name in answer.headers},
        value=value,
        text=text,
        truncated=answer.truncated,
    )
