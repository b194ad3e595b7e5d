"""Tests of what exceptions and HTTP statuses mean: one row each, with the real exceptions of the libraries."""

from __future__ import annotations

import asyncio
import http.client
import json
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import botocore.exceptions  # type: ignore[import-untyped]
import grpc  # type: ignore[import-untyped]
import httpcore
import httpx
import httpx2
import openai
import psycopg
import psycopg_pool
import pytest
import requests
import urllib3

from plans.failure import CODES, ToolFailure
from tools.classify import EXCEPTIONS, STATUSES, meaning_of, retry_after

NOW = 1_700_000_000.0
REQUEST = httpx.Request("GET", "http://example.com/?token=secret")


def foreign(module: str, name: str, *bases: type[BaseException], **carried: Any) -> BaseException:
    """An exception as a library that is not installed here names it."""
    made: BaseException = type(name, bases or (Exception,), {"__module__": module, **carried})("secret")
    return made


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """Raised from another one."""
    error.__cause__ = cause
    return error


def raised(act: Callable[[], object]) -> BaseException:
    """What this raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 (whatever it is, the rows say what it means)
        act()
    return caught.value


def sql(statement: str) -> BaseException:
    """What SQLite says to this, as a tool of its own would meet it."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY CHECK (a > 0))")
    error = raised(lambda: connection.execute(statement))
    connection.close()
    return error


def locked(path: str) -> BaseException:
    """What SQLite says while another one writes."""
    one, other = sqlite3.connect(path), sqlite3.connect(path, timeout=0)
    one.execute("CREATE TABLE t (a)")
    one.execute("BEGIN EXCLUSIVE")
    error = raised(lambda: other.execute("INSERT INTO t VALUES (1)"))
    one.close()
    other.close()
    return error


def aws(code: str, status: int) -> BaseException:
    """An answer of AWS."""
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}}}
    made: BaseException = botocore.exceptions.ClientError(answer, "PutItem")
    return made


def mcp(code: int) -> BaseException:
    """An answer of an MCP server."""
    return foreign("mcp.shared.exceptions", "McpError", error=SimpleNamespace(code=code, message="secret"))


class Rpc(grpc.RpcError):  # type: ignore[misc]
    """A call's error, with its status."""

    def __init__(self, status: grpc.StatusCode) -> None:
        super().__init__("secret")
        self._status = status

    def code(self) -> grpc.StatusCode:
        return self._status


def sent(method: str, reason: Exception) -> BaseException:
    """requests' error about what urllib3 has met."""
    request = requests.Request(method, "http://example.com").prepare()
    tried = urllib3.exceptions.MaxRetryError(None, "/", reason)  # type: ignore[arg-type]
    return requests.ConnectionError(tried, request=request)


REFUSED = urllib3.exceptions.NewConnectionError(None, "secret")  # type: ignore[arg-type]
KEY: Any = SimpleNamespace(host="h", port=1, ssl=None, is_ssl=False)
PG = psycopg.errors
CLIENTS: list[tuple[Any, Any]] = [(httpx, REQUEST), (httpx2, httpx2.Request("GET", "http://example.com"))]

ROWS: list[tuple[BaseException, str, bool]] = [
    # builtin, asyncio, sockets, ssl
    (TimeoutError(), "TIMEOUT", False),
    (ConnectionRefusedError(), "UNAVAILABLE", True),
    (socket.gaierror(), "UNAVAILABLE", True),
    (ConnectionResetError(), "UNAVAILABLE", False),
    (ConnectionAbortedError(), "UNAVAILABLE", False),
    (BrokenPipeError(), "UNAVAILABLE", False),
    (asyncio.IncompleteReadError(b"", 3), "UNAVAILABLE", False),
    (asyncio.LimitOverrunError("secret", 3), "TOOL_ERROR", False),
    (ssl.SSLCertVerificationError(), "UNAVAILABLE", True),
    (ssl.SSLEOFError(), "UNAVAILABLE", False),
    (OSError(28, "No space left on device"), "UNAVAILABLE", False),
    (OSError(113, "No route to host"), "UNAVAILABLE", False),
    (FileNotFoundError("secret"), "NOT_FOUND", False),
    (PermissionError("secret"), "NOT_PERMITTED", False),
    (IsADirectoryError("secret"), "INVALID_INPUT", False),
    (FileExistsError("secret"), "INVALID_INPUT", False),
    (KeyError("secret"), "TOOL_ERROR", False),
    (ValueError("secret"), "TOOL_ERROR", False),
    (RecursionError(), "TOOL_ERROR", False),
    (MemoryError(), "TOOL_ERROR", False),
    # json, subprocess, smtplib, http.client, urllib
    (json.JSONDecodeError("secret", "secret", 0), "OUTPUT_INVALID", False),
    (subprocess.TimeoutExpired("secret", 3), "TIMEOUT", False),
    (subprocess.CalledProcessError(1, "secret"), "TOOL_ERROR", False),
    (smtplib.SMTPServerDisconnected("secret"), "UNAVAILABLE", False),
    (smtplib.SMTPConnectError(421, "secret"), "UNAVAILABLE", True),
    (smtplib.SMTPAuthenticationError(535, "secret"), "NOT_PERMITTED", True),
    (smtplib.SMTPRecipientsRefused({}), "INVALID_ARGS", True),
    (smtplib.SMTPDataError(554, "secret"), "TOOL_ERROR", True),
    (http.client.RemoteDisconnected("x"), "UNAVAILABLE", False),
    (http.client.IncompleteRead(b""), "UNAVAILABLE", False),
    (http.client.BadStatusLine("secret"), "UNAVAILABLE", False),
    (http.client.InvalidURL("secret"), "INVALID_ARGS", True),
    (urllib.error.URLError(ConnectionRefusedError()), "UNAVAILABLE", True),
    (urllib.error.URLError(TimeoutError()), "TIMEOUT", False),
    (urllib.error.URLError("secret"), "UNAVAILABLE", False),
    (urllib.error.ContentTooShortError("secret", (b"", None)), "UNAVAILABLE", False),  # type: ignore[arg-type]
    # httpx, and httpx2, which openai uses
    *(
        row
        for library, request in CLIENTS
        for row in [
            (library.ReadTimeout("x", request=request), "TIMEOUT", False),
            (library.WriteTimeout("x", request=request), "TIMEOUT", False),
            (library.ConnectTimeout("x", request=request), "UNAVAILABLE", True),
            (library.PoolTimeout("x", request=request), "UNAVAILABLE", True),
            (library.ConnectError("x", request=request), "UNAVAILABLE", True),
            (library.ReadError("x", request=request), "UNAVAILABLE", False),
            (library.WriteError("x", request=request), "UNAVAILABLE", False),
            (library.RemoteProtocolError("x", request=request), "UNAVAILABLE", False),
            (library.ProxyError("x", request=request), "UNAVAILABLE", False),
            (library.UnsupportedProtocol("secret", request=request), "INVALID_ARGS", True),
            (library.DecodingError("secret", request=request), "OUTPUT_INVALID", False),
            (library.TooManyRedirects("secret", request=request), "TOOL_ERROR", False),
            (library.InvalidURL("secret"), "INVALID_ARGS", True),
        ]
    ),
    (httpcore.ReadTimeout("x"), "TIMEOUT", False),
    (httpcore.ReadError("x"), "UNAVAILABLE", False),
    (httpcore.RemoteProtocolError("x"), "UNAVAILABLE", False),
    (httpcore.ConnectError("x"), "UNAVAILABLE", True),
    # urllib3 and requests
    (REFUSED, "UNAVAILABLE", True),
    (urllib3.exceptions.ConnectTimeoutError(), "UNAVAILABLE", True),
    (urllib3.exceptions.ReadTimeoutError(None, "/", "secret"), "TIMEOUT", False),  # type: ignore[arg-type]
    (urllib3.exceptions.ProtocolError(), "UNAVAILABLE", False),
    (urllib3.exceptions.MaxRetryError(None, "/", REFUSED), "UNAVAILABLE", False),  # type: ignore[arg-type]
    (urllib3.exceptions.LocationParseError("secret"), "INVALID_ARGS", True),
    (requests.ConnectTimeout(), "UNAVAILABLE", True),
    (requests.ReadTimeout(), "TIMEOUT", False),
    (requests.ConnectionError(), "UNAVAILABLE", False),
    (sent("POST", REFUSED), "UNAVAILABLE", True),
    (sent("PUT", REFUSED), "UNAVAILABLE", False),
    (sent("POST", urllib3.exceptions.ProtocolError("secret")), "UNAVAILABLE", False),
    (requests.exceptions.SSLError(), "UNAVAILABLE", False),
    (requests.exceptions.ChunkedEncodingError(), "UNAVAILABLE", False),
    (requests.exceptions.ContentDecodingError(), "OUTPUT_INVALID", False),
    (requests.exceptions.JSONDecodeError("secret", "secret", 0), "OUTPUT_INVALID", False),
    (requests.exceptions.MissingSchema("secret"), "INVALID_ARGS", True),
    # aiohttp
    (aiohttp.ClientConnectorError(KEY, OSError("secret")), "UNAVAILABLE", True),
    (aiohttp.ConnectionTimeoutError(), "UNAVAILABLE", True),
    (aiohttp.SocketTimeoutError(), "TIMEOUT", False),
    (aiohttp.ServerDisconnectedError(), "UNAVAILABLE", False),
    (aiohttp.ClientOSError(), "UNAVAILABLE", False),
    (aiohttp.ClientPayloadError(), "UNAVAILABLE", False),
    (aiohttp.ContentTypeError(SimpleNamespace(real_url="u"), (), status=200), "OUTPUT_INVALID", False),  # type: ignore[arg-type]
    (aiohttp.ClientResponseError(SimpleNamespace(real_url="u"), (), status=409), "CONFLICT", True),  # type: ignore[arg-type]
    (aiohttp.InvalidURL("secret"), "INVALID_ARGS", True),
    # psycopg, by SQLSTATE; without one the connection is gone
    (psycopg.OperationalError(), "UNAVAILABLE", False),
    (psycopg.InterfaceError(), "UNAVAILABLE", False),
    (PG.SqlclientUnableToEstablishSqlconnection(), "UNAVAILABLE", True),
    (PG.ConnectionFailure(), "UNAVAILABLE", False),
    (PG.AdminShutdown(), "UNAVAILABLE", False),
    (PG.CannotConnectNow(), "UNAVAILABLE", True),
    (PG.TooManyConnections(), "UNAVAILABLE", True),
    (PG.DiskFull(), "UNAVAILABLE", True),
    (PG.QueryCanceled(), "TIMEOUT", False),
    (PG.IdleInTransactionSessionTimeout(), "TIMEOUT", True),
    (PG.SerializationFailure(), "CONFLICT", True),
    (PG.DeadlockDetected(), "CONFLICT", True),
    (PG.LockNotAvailable(), "CONFLICT", True),
    (PG.StatementCompletionUnknown(), "UNAVAILABLE", False),
    (PG.UniqueViolation(), "RULE_VIOLATED", True),
    (PG.CheckViolation(), "RULE_VIOLATED", True),
    (PG.RaiseException(), "RULE_VIOLATED", True),
    (PG.UndefinedTable(), "TOOL_ERROR", True),
    (PG.SyntaxError(), "TOOL_ERROR", True),
    (PG.InsufficientPrivilege(), "NOT_PERMITTED", True),
    (PG.ReadOnlySqlTransaction(), "NOT_PERMITTED", True),
    (PG.InvalidPassword(), "NOT_PERMITTED", True),
    (PG.NumericValueOutOfRange(), "INVALID_ARGS", True),
    (PG.InternalError_(), "TOOL_ERROR", False),
    (PG.IoError(), "UNAVAILABLE", False),
    (psycopg.ProgrammingError("secret"), "TOOL_ERROR", True),
    (psycopg_pool.PoolTimeout(), "UNAVAILABLE", True),
    (psycopg_pool.PoolClosed(), "UNAVAILABLE", True),
    (psycopg_pool.TooManyRequests(), "UNAVAILABLE", True),
    # psycopg2, asyncpg, SQLite, SQLAlchemy
    (foreign("psycopg2", "OperationalError", pgcode="42P01"), "TOOL_ERROR", True),
    (foreign("psycopg2", "OperationalError", pgcode=None), "UNAVAILABLE", False),
    (foreign("asyncpg.exceptions", "UniqueViolationError", sqlstate="23505"), "RULE_VIOLATED", True),
    (foreign("asyncpg.exceptions", "ConnectionDoesNotExistError", sqlstate="08003"), "UNAVAILABLE", False),
    (foreign("asyncpg.exceptions", "InterfaceError"), "UNAVAILABLE", False),
    (sql("SELECT * FROM secret"), "TOOL_ERROR", True),
    (sql("INSERT INTO t VALUES (-1)"), "RULE_VIOLATED", True),
    (raised(lambda: sqlite3.connect("/dev/null/secret")), "NOT_FOUND", True),
    (sqlite3.OperationalError("no such table: secret"), "TOOL_ERROR", True),
    (foreign("sqlalchemy.exc", "OperationalError", orig=PG.UndefinedTable()), "TOOL_ERROR", True),
    (foreign("sqlalchemy.exc", "OperationalError", orig=psycopg.OperationalError()), "UNAVAILABLE", False),
    (foreign("sqlalchemy.exc", "IntegrityError", orig=PG.UniqueViolation()), "RULE_VIOLATED", True),
    (foreign("sqlalchemy.exc", "DBAPIError", orig=PG.DeadlockDetected()), "CONFLICT", True),
    (foreign("sqlalchemy.exc", "TimeoutError"), "UNAVAILABLE", True),
    (foreign("sqlalchemy.exc", "NoResultFound"), "NOT_FOUND", True),
    # redis
    (foreign("redis.exceptions", "ConnectionError"), "UNAVAILABLE", False),
    (foreign("redis.exceptions", "TimeoutError"), "TIMEOUT", False),
    (foreign("redis.exceptions", "BusyLoadingError"), "UNAVAILABLE", True),
    (foreign("redis.exceptions", "AuthenticationError"), "NOT_PERMITTED", True),
    (foreign("redis.exceptions", "WatchError"), "CONFLICT", True),
    (foreign("redis.exceptions", "ResponseError"), "TOOL_ERROR", True),
    # botocore sends again by itself: what is known of its last try is not known of the others
    (botocore.exceptions.EndpointConnectionError(endpoint_url="secret"), "UNAVAILABLE", False),
    (botocore.exceptions.ConnectTimeoutError(endpoint_url="secret"), "UNAVAILABLE", False),
    (botocore.exceptions.ReadTimeoutError(endpoint_url="secret"), "TIMEOUT", False),
    (botocore.exceptions.NoCredentialsError(), "NOT_PERMITTED", True),
    (botocore.exceptions.ParamValidationError(report="secret"), "INVALID_ARGS", True),
    (aws("ThrottlingException", 400), "RATE_LIMITED", True),
    (aws("ConditionalCheckFailedException", 400), "PRECONDITION_FAILED", True),
    (aws("AccessDenied", 403), "NOT_PERMITTED", True),
    (aws("ValidationException", 400), "INVALID_ARGS", True),
    (aws("InternalError", 500), "UNAVAILABLE", False),
    # gRPC, MCP, openai
    (Rpc(grpc.StatusCode.UNAVAILABLE), "UNAVAILABLE", False),
    (Rpc(grpc.StatusCode.DEADLINE_EXCEEDED), "TIMEOUT", False),
    (Rpc(grpc.StatusCode.NOT_FOUND), "NOT_FOUND", True),
    (Rpc(grpc.StatusCode.ALREADY_EXISTS), "CONFLICT", True),
    (Rpc(grpc.StatusCode.ABORTED), "CONFLICT", True),
    (Rpc(grpc.StatusCode.UNAUTHENTICATED), "NOT_PERMITTED", True),
    (Rpc(grpc.StatusCode.RESOURCE_EXHAUSTED), "RATE_LIMITED", False),
    (Rpc(grpc.StatusCode.FAILED_PRECONDITION), "PRECONDITION_FAILED", True),
    (Rpc(grpc.StatusCode.INVALID_ARGUMENT), "INVALID_ARGS", True),
    (Rpc(grpc.StatusCode.INTERNAL), "TOOL_ERROR", False),
    (mcp(-32602), "INVALID_ARGS", True),
    (mcp(-32601), "NOT_FOUND", True),
    (mcp(-32603), "TOOL_ERROR", False),
    (mcp(408), "TIMEOUT", False),
    (mcp(-32000), "UNAVAILABLE", False),
    (mcp(7), "TOOL_ERROR", False),
    (openai.APITimeoutError(httpx2.Request("POST", "http://example.com")), "TIMEOUT", False),
    (openai.APIConnectionError(request=httpx2.Request("POST", "http://example.com")), "UNAVAILABLE", False),
    # raised from another one, and several at once
    (caused(ValueError("secret"), ConnectionRefusedError()), "UNAVAILABLE", True),
    (caused(foreign("tenacity", "RetryError"), ConnectionRefusedError()), "UNAVAILABLE", False),
    (caused(ValueError("secret"), caused(KeyError("secret"), PG.DeadlockDetected())), "CONFLICT", True),
    (caused(FileNotFoundError("secret"), ConnectionRefusedError()), "NOT_FOUND", False),
    (caused(ValueError("secret"), ToolFailure("RATE_LIMITED", "secret")), "RATE_LIMITED", True),
    (ExceptionGroup("secret", [ConnectionRefusedError(), TimeoutError()]), "TIMEOUT", False),
    (ExceptionGroup("secret", [ConnectionRefusedError(), PG.DeadlockDetected()]), "UNAVAILABLE", True),
    (ExceptionGroup("secret", [TimeoutError(), KeyError("secret")]), "TOOL_ERROR", False),
    (ExceptionGroup("secret", [ExceptionGroup("secret", [KeyError("secret")])]), "TOOL_ERROR", False),
]


@pytest.mark.parametrize(
    ("error", "code", "certain"),
    ROWS,
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_exception_has_its_code(error: BaseException, code: str, certain: bool) -> None:
    """The code of an exception, and whether the other side is known not to have acted."""
    meaning = meaning_of(error, NOW)
    assert (meaning.code, meaning.certain) == (code, certain)
    assert "secret" not in meaning.said


def test_a_file_that_another_one_writes_is_contended(tmp_path: Path) -> None:
    """SQLite's lock is no lost connection: nothing was written, and a moment later it may be free."""
    assert meaning_of(locked(str(tmp_path / "db")), NOW)[:3:2] == ("CONFLICT", True)


def test_an_error_that_causes_itself_is_read_to_an_end() -> None:
    """A ring of causes says no more than its names."""
    one, other = ValueError("one"), KeyError("other")
    one.__cause__, other.__cause__ = other, one
    assert meaning_of(one, NOW).code == "TOOL_ERROR"
    group = ExceptionGroup("g", [one])
    one.__cause__ = group
    assert meaning_of(group, NOW).code == "TOOL_ERROR"


@pytest.mark.parametrize(
    ("status", "code", "certain"),
    [
        (400, "INVALID_ARGS", True), (401, "NOT_PERMITTED", True), (402, "NOT_PERMITTED", True),
        (403, "NOT_PERMITTED", True), (404, "NOT_FOUND", True), (405, "INVALID_ARGS", True),
        (407, "NOT_PERMITTED", True), (408, "TIMEOUT", False), (409, "CONFLICT", True), (410, "NOT_FOUND", True),
        (412, "PRECONDITION_FAILED", True), (413, "INVALID_ARGS", True), (422, "INVALID_ARGS", True),
        (423, "CONFLICT", True), (428, "PRECONDITION_FAILED", True), (499, "TIMEOUT", False), (460, "TIMEOUT", False),
        (507, "UNAVAILABLE", False), (520, "UNAVAILABLE", False), (524, "TIMEOUT", False), (529, "UNAVAILABLE", False),
        (425, "CONFLICT", True), (429, "RATE_LIMITED", True), (451, "NOT_PERMITTED", True),
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


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
        ({"x-ratelimit-reset": "1700000030"}, None),
    ],
)
def test_milliseconds_come_before_seconds(headers: Any, expected: float | None) -> None:
    """The finer of two wishes counts; a window's end, which some give as seconds and some as an instant, does not."""
    assert retry_after(headers, NOW) == expected


def test_of_several_failures_the_longest_wait_counts() -> None:
    """Whoever comes back after a group of failures comes back to none of them too early."""
    group = ExceptionGroup("g", [ToolFailure("RATE_LIMITED", "x", delay_s=3), ToolFailure("CONFLICT", "x", delay_s=8)])
    assert meaning_of(group, NOW).delay_s == 8


@pytest.mark.parametrize("headers", [None, {}, "text", httpx.Headers()])
def test_without_the_header_there_is_no_wish(headers: Any) -> None:
    """No header, no delay."""
    assert retry_after(headers, NOW) is None


def test_every_code_of_the_tables_is_known() -> None:
    """The tables speak the one vocabulary of failures."""
    assert {meaning.code for meaning in EXCEPTIONS.values()} | set(STATUSES.values()) <= set(CODES)
