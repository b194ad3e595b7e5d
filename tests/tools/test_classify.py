"""Tests of what exceptions and HTTP statuses mean: one row each, with the real exceptions of the libraries."""

from __future__ import annotations

import asyncio
import http.client
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpcore
import httpx
import psycopg
import psycopg_pool
import pytest

from plans.failure import CODES
from tools.classify import EXCEPTIONS, STATUSES, meaning_of, retry_after

NOW = 1_700_000_000.0
REQUEST = httpx.Request("GET", "http://example.com/?token=secret")


class ConnectTimeout(OSError):
    """As requests names it."""


@pytest.mark.parametrize(
    ("error", "code", "certain"),
    [
        (TimeoutError(), "TIMEOUT", False),
        (httpx.ReadTimeout("x", request=REQUEST), "TIMEOUT", False),
        (httpcore.ReadTimeout("x"), "TIMEOUT", False),
        (httpcore.ReadError("x"), "UNAVAILABLE", False),
        (httpcore.RemoteProtocolError("x"), "UNAVAILABLE", False),
        (httpcore.ConnectError("x"), "UNAVAILABLE", True),
        (httpx.WriteTimeout("x", request=REQUEST), "TIMEOUT", False),
        (httpx.ConnectTimeout("x", request=REQUEST), "UNAVAILABLE", True),
        (httpx.PoolTimeout("x", request=REQUEST), "UNAVAILABLE", True),
        (httpx.ConnectError("x", request=REQUEST), "UNAVAILABLE", True),
        (httpx.ReadError("x", request=REQUEST), "UNAVAILABLE", False),
        (httpx.RemoteProtocolError("x", request=REQUEST), "UNAVAILABLE", False),
        (ConnectTimeout(), "UNAVAILABLE", True),
        (ConnectionRefusedError(), "UNAVAILABLE", True),
        (socket.gaierror(), "UNAVAILABLE", True),
        (ConnectionResetError(), "UNAVAILABLE", False),
        (BrokenPipeError(), "UNAVAILABLE", False),
        (http.client.RemoteDisconnected("x"), "UNAVAILABLE", False),
        (http.client.IncompleteRead(b""), "UNAVAILABLE", False),
        (asyncio.IncompleteReadError(b"", 3), "UNAVAILABLE", False),
        (psycopg.OperationalError(), "UNAVAILABLE", False),
        (psycopg.InterfaceError(), "UNAVAILABLE", False),
        (psycopg_pool.PoolTimeout(), "UNAVAILABLE", True),
        (psycopg.errors.QueryCanceled(), "TIMEOUT", False),
        (psycopg.errors.SerializationFailure(), "CONFLICT", True),
        (psycopg.errors.DeadlockDetected(), "CONFLICT", True),
        (psycopg.errors.UniqueViolation(), "TOOL_ERROR", False),
        (FileNotFoundError("secret"), "NOT_FOUND", False),
        (PermissionError("secret"), "NOT_PERMITTED", False),
        (IsADirectoryError("secret"), "INVALID_INPUT", False),
        (OSError(28, "No space left on device"), "UNAVAILABLE", False),
        (KeyError("secret"), "TOOL_ERROR", False),
        (ValueError("secret"), "TOOL_ERROR", False),
        (RecursionError(), "TOOL_ERROR", False),
        (MemoryError(), "TOOL_ERROR", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_exception_has_its_code(error: BaseException, code: str, certain: bool) -> None:
    """The code of an exception, and whether the other side is known not to have acted."""
    meaning = meaning_of(error, NOW)
    assert (meaning.code, meaning.certain) == (code, certain)
    assert "secret" not in meaning.said


@pytest.mark.parametrize(
    ("status", "code", "certain"),
    [
        (400, "INVALID_ARGS", True), (401, "NOT_PERMITTED", True), (402, "NOT_PERMITTED", True),
        (403, "NOT_PERMITTED", True), (404, "NOT_FOUND", True), (405, "INVALID_ARGS", True),
        (407, "NOT_PERMITTED", True), (408, "TIMEOUT", False), (409, "CONFLICT", True), (410, "NOT_FOUND", True),
        (412, "PRECONDITION_FAILED", True), (413, "INVALID_ARGS", True), (422, "INVALID_ARGS", True),
        (423, "CONFLICT", True), (425, "CONFLICT", True), (429, "RATE_LIMITED", True), (451, "NOT_PERMITTED", True),
        (500, "UNAVAILABLE", False), (501, "TOOL_ERROR", False), (502, "UNAVAILABLE", False),
        (503, "UNAVAILABLE", False), (504, "TIMEOUT", False), (302, "TOOL_ERROR", False), (599, "TOOL_ERROR", False),
    ],
)  # fmt: skip
def test_each_status_has_its_code(status: int, code: str, certain: bool) -> None:
    """The code of an HTTP status, and whether it says that nothing was done; the sentence names the status only."""
    response = httpx.Response(status, request=REQUEST, text="secret")
    meaning = meaning_of(httpx.HTTPStatusError("secret", request=REQUEST, response=response), NOW)
    assert (meaning.code, meaning.certain) == (code, certain)
    assert str(status) in meaning.said
    assert "secret" not in meaning.said


class Carrying(Exception):
    """An error that carries its status as some SDK does."""

    def __init__(self, **carried: Any) -> None:
        super().__init__()
        vars(self).update(carried)


class HTTPError(Carrying):
    """As urllib names it."""


@pytest.mark.parametrize(
    "error",
    [
        Carrying(status_code=429),
        Carrying(status=429),
        HTTPError(code=429),
        Carrying(response=Carrying(status_code=429)),
    ],
)
def test_a_status_is_found_wherever_a_library_puts_it(error: Exception) -> None:
    """aiohttp, urllib, requests and the SDKs built on httpx each carry the status in their own place."""
    assert meaning_of(error, NOW).code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "error", [Carrying(status=True), Carrying(status_code="429"), Carrying(code=429), Carrying(status=7)]
)
def test_what_only_looks_like_a_status_is_none(error: Exception) -> None:
    """A flag, a text or a code of another kind is no HTTP status."""
    assert meaning_of(error, NOW).code == "TOOL_ERROR"


def dated(seconds: float) -> str:
    """A date as HTTP writes it, this long from NOW."""
    return format_datetime(datetime.fromtimestamp(NOW, UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0), ("1.5", 1.5), ("0", 0.0), ("-3", 0.0), (dated(30), 30.0), (dated(-30), 0.0), ("soon", None),
        ("", None), ("nan", None), ("inf", None), ("1e9", 86_400.0), ("Sun, 99 Foo 2026", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_as_seconds_or_a_date(header: str, expected: float | None) -> None:
    """Both forms of the header count, nonsense does not, and nobody can ask us to wait for more than a day."""
    for headers in (httpx.Headers({"retry-after": header}), {"Retry-After": header}):
        assert retry_after(headers, NOW) == expected
    response = httpx.Response(503, request=REQUEST, headers={"Retry-After": header})
    assert meaning_of(httpx.HTTPStatusError("x", request=REQUEST, response=response), NOW).delay_s == expected


@pytest.mark.parametrize("headers", [None, {}, "text", httpx.Headers()])
def test_without_the_header_there_is_no_wish(headers: Any) -> None:
    """No header, no delay."""
    assert retry_after(headers, NOW) is None


def test_every_code_of_the_tables_is_known() -> None:
    """The tables speak the one vocabulary of failures."""
    assert {meaning.code for meaning in EXCEPTIONS.values()} | set(STATUSES.values()) <= set(CODES)
