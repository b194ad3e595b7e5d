"""A request and its answer as values, and the error that a status makes of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.http.urls import Target

_MAX_SHOWN = 2_000
CONNECTION = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that are the connection's own, in lower case."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")


def is_header(name: str) -> bool:
    """Whether this is the name of a header that a request of ours can have."""
    return _HEADER.fullmatch(name) is not None and name.lower() not in CONNECTION


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. `headers` are those of the caller, by name in any case."""

    method: str
    target: Target
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers` are by name in lower case, repeated ones joined by commas; `body` is decoded, and
    `truncated` where there was more than was allowed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool = False


class StatusError(Exception):
    """An answer whose status says that it is no result. The text is for the artifact with raw errors only."""

    def __init__(self, answer: Answer, target: Target) -> None:
        shown = answer.body[:_MAX_SHOWN].decode("utf-8", "replace")
        super().__init__(f"{target.shown} answered {answer.status}\n{shown}")
        self.status_code = answer.status
        self.headers = answer.headers
