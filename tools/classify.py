"""What an exception of a tool means: one table over exceptions, one over HTTP statuses.

Exceptions are recognised by the names of their classes, so that no library has to be imported to know its errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

MAX_DELAY_S = 86_400.0


class Meaning(NamedTuple):
    """`certain` is True where the other side is known not to have acted. `said` completes "the tool ..."."""

    code: str
    said: str
    certain: bool = False
    delay_s: float | None = None


_NEVER_SENT = Meaning("UNAVAILABLE", "could not connect to the service behind it", certain=True)
_LOST = Meaning("UNAVAILABLE", "lost the connection to the service behind it")
_LATE = Meaning("TIMEOUT", "got no answer in time")
_CONTENDED = Meaning("CONFLICT", "met another transaction on the same rows", certain=True)
_NO_FILE = Meaning("INVALID_INPUT", "met a folder where a file should be, or the other way round")

EXCEPTIONS: Mapping[str, Meaning] = {
    # nothing was sent: builtin, httpx, requests, urllib3, aiohttp, psycopg_pool
    **dict.fromkeys(
        ("ConnectionRefusedError", "gaierror", "ConnectError", "ConnectTimeout", "PoolTimeout"), _NEVER_SENT
    ),
    **dict.fromkeys(("NewConnectionError", "ConnectTimeoutError", "ClientConnectorError"), _NEVER_SENT),
    # the transaction was rolled back: psycopg
    **dict.fromkeys(("SerializationFailure", "DeadlockDetected", "LockNotAvailable"), _CONTENDED),
    # no answer: builtin, httpx, requests, aiohttp, psycopg, openai
    **dict.fromkeys(("TimeoutError", "TimeoutException", "Timeout", "ServerTimeoutError", "QueryCanceled"), _LATE),
    "APITimeoutError": _LATE,
    # cut off: builtin and requests, httpx, aiohttp, psycopg, http.client, asyncio, urllib3, openai, httpcore
    **dict.fromkeys(("ConnectionError", "TransportError", "ClientConnectionError", "ClientPayloadError"), _LOST),
    **dict.fromkeys(("OperationalError", "InterfaceError", "RemoteDisconnected", "IncompleteRead"), _LOST),
    **dict.fromkeys(("IncompleteReadError", "ProtocolError", "APIConnectionError"), _LOST),
    "NetworkError": _LOST,
    "FileNotFoundError": Meaning("NOT_FOUND", "did not find a file it needs"),
    "PermissionError": Meaning("NOT_PERMITTED", "may not open a file it needs"),
    **dict.fromkeys(("IsADirectoryError", "NotADirectoryError", "FileExistsError"), _NO_FILE),
    "OSError": Meaning("UNAVAILABLE", "met an error of the operating system"),
}
"""By the name of the exception's class, or else of the nearest class that it derives from."""

STATUSES: Mapping[int, str] = {
    401: "NOT_PERMITTED", 402: "NOT_PERMITTED", 403: "NOT_PERMITTED", 404: "NOT_FOUND", 407: "NOT_PERMITTED",
    408: "TIMEOUT", 409: "CONFLICT", 410: "NOT_FOUND", 412: "PRECONDITION_FAILED", 423: "CONFLICT", 425: "CONFLICT",
    429: "RATE_LIMITED", 451: "NOT_PERMITTED", 500: "UNAVAILABLE", 502: "UNAVAILABLE", 503: "UNAVAILABLE",
    504: "TIMEOUT",
}  # fmt: skip
"""Statuses that mean something of their own; other 4xx are INVALID_ARGS, everything else TOOL_ERROR."""


def meaning_of(error: BaseException, now: float) -> Meaning:
    """What an exception means. `now` is wall time, for a Retry-After that is a date."""
    response = getattr(error, "response", None)
    status = _status(error, response)
    if status is not None:
        return _of_status(status, response if response is not None else error, now)
    known = (EXCEPTIONS[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in EXCEPTIONS)
    return next(known, Meaning("TOOL_ERROR", f"failed with {type(error).__name__}"))


def _status(error: BaseException, response: Any) -> int | None:
    """The HTTP status of an error, as httpx, requests, aiohttp, urllib and the SDKs built on them carry it."""
    found = [
        getattr(response, "status_code", None),
        getattr(error, "status_code", None),
        getattr(error, "status", None),
    ]
    if type(error).__name__ == "HTTPError":
        found.append(getattr(error, "code", None))
    return next((s for s in found if isinstance(s, int) and not isinstance(s, bool) and 100 <= s <= 599), None)


def _of_status(status: int, response: Any, now: float) -> Meaning:
    code = STATUSES.get(status) or ("INVALID_ARGS" if 400 <= status < 500 else "TOOL_ERROR")
    return Meaning(
        code,
        f"was answered {status} {_phrase(status)}".rstrip(),
        certain=400 <= status < 500 and status != 408,
        delay_s=retry_after(getattr(response, "headers", None), now),
    )


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else ""


def retry_after(headers: Any, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, given as seconds or as a date; None where it says neither."""
    if not hasattr(headers, "get"):
        return None
    text = headers.get("Retry-After") or headers.get("retry-after")
    if not isinstance(text, str):
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text, now)
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), MAX_DELAY_S)


def _until(date: str, now: float) -> float:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return math.nan
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now
