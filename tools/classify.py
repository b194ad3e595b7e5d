"""What an exception of a tool means: which of the tables in `tools/known_errors.py` knows it, and what they say.

Exceptions are recognised by the names of their classes and what they carry, so that no library has to be imported to
know its errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from plans.failure import CODES, ToolFailure
from tools.known_errors import (
    AWS,
    DOUBTFUL_4XX,
    EXCEPTIONS,
    GRPC,
    JSON_RPC,
    SQLITE,
    SQLSTATES,
    STATUSES,
    Meaning,
)

__all__ = ["EXCEPTIONS", "STATUSES", "Meaning", "meaning_of", "retry_after"]

MAX_DELAY_S = 86_400.0
_DEEPEST = 10
_RESENDS = frozenset({"RetryError", "MaxRetryError"})
"""Raised after several tries: what is known of the last one is not known of those before it."""
_NEVER_REPEATED = frozenset({"POST", "PATCH"})
"""Methods that urllib3 sends once more only where nothing was sent."""


def meaning_of(error: BaseException, now: float) -> Meaning:
    """What an exception means. `now` is wall time, for a Retry-After that is a date."""
    return _meaning(error, now, _DEEPEST)


def _meaning(error: BaseException, now: float, depth: int) -> Meaning:
    return _known(error, now, depth) or Meaning("TOOL_ERROR", f"failed with {type(error).__name__}")


def _known(error: BaseException, now: float, depth: int) -> Meaning | None:
    """What the tables know of it; None where they do not know it."""
    if isinstance(error, ToolFailure):
        return Meaning(error.code, f"failed with {error.code}", True, error.delay_s)
    if isinstance(error, BaseExceptionGroup):
        return _of_several([_meaning(each, now, depth - 1) for each in error.exceptions if depth > 0])
    for ask in (_of_answer, _of_sql, _of_sqlite, _of_grpc, _of_json_rpc):
        if (said := ask(error, now)) is not None:
            return said
    return _by_name(error, now, depth)


def _of_several(meanings: list[Meaning]) -> Meaning | None:
    """Of things that failed at once: what may have happened is told before what has certainly not, and what would fail
    again before what may be over in a moment."""
    if not meanings:
        return None
    told = min(meanings, key=lambda meaning: (meaning.certain, CODES[meaning.code].class_ == "soft"))
    delays = [meaning.delay_s for meaning in meanings if meaning.delay_s is not None]
    return told._replace(delay_s=max(delays, default=None))


def _by_name(error: BaseException, now: float, depth: int) -> Meaning | None:
    """By its class; what a wrapper says is known better by what it wraps."""
    known = next((EXCEPTIONS[name] for name in _names(error) if name in EXCEPTIONS), None)
    inner = _wrapped(error) or (error.__cause__ if known is None else None)
    if inner is None or depth == 0:
        return known
    meaning = _known(inner, now, depth - 1)
    return known if meaning is None else meaning._replace(certain=meaning.certain and not _was_resent(error))


def _names(error: BaseException) -> Iterator[str]:
    for cls in type(error).__mro__:
        yield f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
        yield cls.__name__


def _wrapped(error: BaseException) -> BaseException | None:
    """What a library's error is about: SQLAlchemy's `orig`, `reason` of urllib and urllib3, requests' argument."""
    found = [getattr(error, "orig", None), getattr(error, "reason", None)]
    if type(error).__module__.startswith("requests."):
        found += [getattr(each, "reason", None) or each for each in error.args[:1]]
    return next((each for each in found if isinstance(each, BaseException) and each is not error), None)


def _was_resent(error: BaseException) -> bool:
    """Whether there may have been tries before the last one."""
    if type(error).__module__.startswith("requests."):
        return getattr(getattr(error, "request", None), "method", None) not in _NEVER_REPEATED
    return type(error).__name__ in _RESENDS


def _of_answer(error: BaseException, now: float) -> Meaning | None:
    """By the HTTP status that it carries; one that says that all was well says nothing."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return _of_aws(response, now)
    status = _status(error, response)
    if status is None or status < 300:
        return None
    return _of_status(status, getattr(response if response is not None else error, "headers", None), now)


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


def _of_status(status: int, headers: Any, now: float) -> Meaning:
    code = STATUSES.get(status) or ("INVALID_ARGS" if 400 <= status < 500 else "TOOL_ERROR")
    return Meaning(
        code,
        f"was answered {status} {_phrase(status)}".rstrip(),
        certain=400 <= status < 500 and status not in DOUBTFUL_4XX,
        delay_s=retry_after(headers, now),
    )


def _of_aws(response: Mapping[str, Any], now: float) -> Meaning | None:
    """botocore's ClientError has the answer as a dict."""
    about = response.get("ResponseMetadata")
    about = about if isinstance(about, Mapping) else {}
    headers, status = about.get("HTTPHeaders"), about.get("HTTPStatusCode")
    known = AWS.get(str((response.get("Error") or {}).get("Code")))
    if known is not None:
        return known._replace(delay_s=retry_after(headers, now))
    return _of_status(status, headers, now) if isinstance(status, int) and 300 <= status <= 599 else None


def _of_sql(error: BaseException, _: float) -> Meaning | None:
    """By the SQLSTATE, as psycopg, asyncpg and psycopg2 carry it."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if not isinstance(state, str):
        return None
    return SQLSTATES.get(state) or SQLSTATES.get(state[:2])


def _of_sqlite(error: BaseException, _: float) -> Meaning | None:
    name = getattr(error, "sqlite_errorname", None)
    return SQLITE.get(name.split("_")[1]) if isinstance(name, str) and name.startswith("SQLITE_") else None


def _of_grpc(error: BaseException, _: float) -> Meaning | None:
    if not any(cls.__module__.partition(".")[0] == "grpc" for cls in type(error).__mro__):
        return None
    code = getattr(error, "code", None)
    return GRPC.get(str(getattr(code(), "name", ""))) if callable(code) else None


def _of_json_rpc(error: BaseException, _: float) -> Meaning | None:
    code = getattr(getattr(error, "error", None), "code", None)
    return JSON_RPC.get(code) if type(error).__name__ in ("McpError", "MCPError") and isinstance(code, int) else None


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else ""


def retry_after(headers: Any, now: float) -> float | None:
    """The seconds that an answer asks to wait: `retry-after-ms`, else Retry-After as seconds or as a date; None where
    it says neither. What is left of a rate's window is not read: some give seconds, some an instant."""
    if not hasattr(headers, "get"):
        return None
    text = headers.get("retry-after-ms")
    seconds = _number(text) / 1_000 if isinstance(text, str) else math.nan
    if not math.isfinite(seconds):
        text = headers.get("Retry-After") or headers.get("retry-after")
        if not isinstance(text, str):
            return None
        seconds = _number(text)
        seconds = _until(text, now) if math.isnan(seconds) else seconds
    return min(max(seconds, 0.0), MAX_DELAY_S) if math.isfinite(seconds) else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _until(date: str, now: float) -> float:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return math.nan
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now
