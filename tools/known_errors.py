"""What each known error means: exceptions by name, HTTP statuses, SQLSTATEs, and the codes of SQLite, gRPC and AWS.

`certain` in a row says that the other side has not acted: nothing was sent, or it has refused. Where a library repeats
requests by itself (botocore, openai), its last error says nothing about the tries before it, and no row is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Meaning(NamedTuple):
    """`certain` is True where the other side is known not to have acted. `said` completes "the tool ..."."""

    code: str
    said: str
    certain: bool = False
    delay_s: float | None = None


NEVER_SENT = Meaning("UNAVAILABLE", "could not connect to the service behind it", certain=True)
NOT_NOW = Meaning("UNAVAILABLE", "was turned away by the service behind it, which is not ready", certain=True)
LOST = Meaning("UNAVAILABLE", "lost the connection to the service behind it")
LATE = Meaning("TIMEOUT", "got no answer in time")
CONTENDED = Meaning("CONFLICT", "met another transaction on the same rows", certain=True)
_NO_FILE = Meaning("INVALID_INPUT", "met a folder where a file should be, or the other way round")
_UNTRUSTED = Meaning("UNAVAILABLE", "does not trust the certificate of the service behind it", certain=True)
_BAD_URL = Meaning("INVALID_ARGS", "was given an address that is none", certain=True)
_UNREADABLE = Meaning("OUTPUT_INVALID", "got an answer that cannot be read")
_FORBIDDEN = Meaning("NOT_PERMITTED", "may not do this with the access that it has", certain=True)
_RULE = Meaning("RULE_VIOLATED", "breaks a rule of the database", certain=True)
_BAD_VALUE = Meaning("INVALID_ARGS", "sent values that the service behind it does not take", certain=True)
_REFUSED = Meaning("TOOL_ERROR", "sent what the service behind it refuses", certain=True)
_ABSENT = Meaning("NOT_FOUND", "did not find what it looked for", certain=True)
_FULL = Meaning("UNAVAILABLE", "met a service that has no room left", certain=True)
_TOO_OFTEN = Meaning("RATE_LIMITED", "asked more often than the service behind it allows", certain=True)
_BROKEN = Meaning("UNAVAILABLE", "met an error inside of the service behind it")
_OTHER_STATE = Meaning("PRECONDITION_FAILED", "met another state than it expects", certain=True)
_FAILED = Meaning("TOOL_ERROR", "met an error inside of the service behind it")

EXCEPTIONS: Mapping[str, Meaning] = {
    # nothing was sent: builtin, httpx, requests, urllib3, aiohttp, psycopg_pool
    **dict.fromkeys(("ConnectionRefusedError", "gaierror", "ConnectError", "ConnectTimeout"), NEVER_SENT),
    **dict.fromkeys(("PoolTimeout", "NewConnectionError", "ConnectTimeoutError", "ClientConnectorError"), NEVER_SENT),
    **dict.fromkeys(("ConnectionTimeoutError", "EmptyPoolError", "ClosedPoolError", "PoolClosed"), NEVER_SENT),
    **dict.fromkeys(("psycopg_pool.TooManyRequests", "sqlalchemy.TimeoutError", "SMTPConnectError"), NEVER_SENT),
    **dict.fromkeys(("SSLCertVerificationError", "ClientConnectorCertificateError"), _UNTRUSTED),
    **dict.fromkeys(("InvalidURL", "InvalidSchema", "MissingSchema", "UnsupportedProtocol"), _BAD_URL),
    **dict.fromkeys(("LocationValueError", "InvalidUrlClientError", "NonHttpUrlClientError"), _BAD_URL),
    # no answer: builtin, httpx, requests, aiohttp, openai, subprocess
    **dict.fromkeys(("TimeoutError", "TimeoutException", "Timeout", "ServerTimeoutError", "APITimeoutError"), LATE),
    "ReadTimeoutError": LATE,
    "TimeoutExpired": Meaning("TIMEOUT", "runs a program that did not end in time"),
    # cut off: builtin and requests, httpx and httpcore, aiohttp, http.client, asyncio, urllib3, openai, smtplib
    **dict.fromkeys(("ConnectionError", "TransportError", "ClientConnectionError", "ClientPayloadError"), LOST),
    **dict.fromkeys(("RemoteDisconnected", "IncompleteRead", "BadStatusLine", "IncompleteReadError"), LOST),
    **dict.fromkeys(("ProtocolError", "APIConnectionError", "SSLError", "MaxRetryError", "ProxyError"), LOST),
    **dict.fromkeys(("ClientSSLError", "ChunkedEncodingError", "ContentTooShortError", "HTTPException"), LOST),
    **dict.fromkeys(("SMTPServerDisconnected", "HTTPClientError", "EndpointConnectionError", "NetworkError"), LOST),
    **dict.fromkeys(("botocore.ConnectTimeoutError", "botocore.ConnectionClosedError", "BrokenResourceError"), LOST),
    # an answer that says nothing: json, httpx, requests, urllib3, aiohttp, openai
    **dict.fromkeys(("JSONDecodeError", "InvalidJSONError", "DecodingError", "DecodeError"), _UNREADABLE),
    **dict.fromkeys(("ContentTypeError", "ContentDecodingError", "APIResponseValidationError"), _UNREADABLE),
    **dict.fromkeys(("LengthFinishReasonError", "ContentFilterFinishReasonError"), _UNREADABLE),
    # databases without a SQLSTATE: the connection is lost, or the driver itself refuses
    **dict.fromkeys(("OperationalError", "InterfaceError"), LOST),
    **dict.fromkeys(("ProgrammingError", "NotSupportedError", "sqlite3.OperationalError"), _REFUSED),
    "IntegrityError": _RULE,
    "DataError": _BAD_VALUE,
    "NoResultFound": _ABSENT,
    "StaleDataError": CONTENDED,
    # redis: what it answers with an error it has not done
    **dict.fromkeys(("redis.BusyLoadingError", "redis.ReadOnlyError", "redis.ClusterDownError"), NOT_NOW),
    "redis.MaxConnectionsError": NEVER_SENT,
    **dict.fromkeys(("redis.AuthenticationError", "redis.NoPermissionError"), _FORBIDDEN),
    **dict.fromkeys(("redis.WatchError", "redis.TryAgainError"), CONTENDED),
    "redis.ResponseError": _REFUSED,
    # botocore, before anything is sent
    **dict.fromkeys(("NoCredentialsError", "PartialCredentialsError"), _FORBIDDEN),
    "ParamValidationError": _BAD_VALUE,
    # smtplib: the letter was refused
    "SMTPAuthenticationError": _FORBIDDEN,
    **dict.fromkeys(("SMTPRecipientsRefused", "SMTPSenderRefused"), _BAD_VALUE),
    "SMTPDataError": _REFUSED,
    # files and programs
    "FileNotFoundError": Meaning("NOT_FOUND", "did not find a file it needs"),
    "PermissionError": Meaning("NOT_PERMITTED", "may not open a file it needs"),
    **dict.fromkeys(("IsADirectoryError", "NotADirectoryError", "FileExistsError"), _NO_FILE),
    "CalledProcessError": Meaning("TOOL_ERROR", "runs a program that failed"),
    "OSError": Meaning("UNAVAILABLE", "met an error of the operating system"),
}
"""By the name of the exception's class, where two libraries share one with the library's before it; or else of the
nearest class that it derives from."""

STATUSES: Mapping[int, str] = {
    401: "NOT_PERMITTED", 402: "NOT_PERMITTED", 403: "NOT_PERMITTED", 404: "NOT_FOUND", 407: "NOT_PERMITTED",
    408: "TIMEOUT", 409: "CONFLICT", 410: "NOT_FOUND", 412: "PRECONDITION_FAILED", 423: "CONFLICT", 425: "CONFLICT",
    428: "PRECONDITION_FAILED", 429: "RATE_LIMITED", 451: "NOT_PERMITTED", 460: "TIMEOUT", 499: "TIMEOUT",
    500: "UNAVAILABLE", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "TIMEOUT", 507: "UNAVAILABLE",
    511: "NOT_PERMITTED", 520: "UNAVAILABLE", 521: "UNAVAILABLE", 522: "TIMEOUT", 523: "UNAVAILABLE", 524: "TIMEOUT",
    529: "UNAVAILABLE",
}  # fmt: skip
"""Statuses that mean something of their own; other 4xx are INVALID_ARGS, everything else TOOL_ERROR. Beyond the
standard: 460 of AWS and 499 of nginx (the client went away), 520 to 524 of Cloudflare, 529 (overloaded)."""

DOUBTFUL_4XX = frozenset({408, 460, 499})
"""What a proxy says of a request that the service behind it may have taken."""

SQLSTATES: Mapping[str, Meaning] = {
    "08001": NEVER_SENT, "08004": NEVER_SENT, "08": LOST, "22": _BAD_VALUE, "23": _RULE,
    "25006": _FORBIDDEN, "25P03": Meaning("TIMEOUT", "left its transaction idle for too long", certain=True),
    "28": _FORBIDDEN, "3D": _REFUSED, "3F": _REFUSED, "40003": LOST, "40002": _RULE, "40": CONTENDED,
    "42501": _FORBIDDEN, "42": _REFUSED, "44": _RULE, "53300": NEVER_SENT, "53": _FULL, "54": _BAD_VALUE,
    "55": CONTENDED, "57014": LATE, "57P03": NEVER_SENT, "57": LOST, "58": _BROKEN, "P0": _RULE, "XX": _FAILED,
    "0A": _REFUSED,
}  # fmt: skip
"""PostgreSQL's, by the whole state or else by its class, the first two letters."""

SQLITE: Mapping[str, Meaning] = {
    "BUSY": CONTENDED, "LOCKED": CONTENDED, "CONSTRAINT": _RULE, "READONLY": _FORBIDDEN, "AUTH": _FORBIDDEN,
    "PERM": _FORBIDDEN, "FULL": _FULL, "IOERR": _BROKEN, "CORRUPT": _FAILED, "NOTADB": _FAILED, "NOMEM": _FULL,
    "CANTOPEN": Meaning("NOT_FOUND", "did not find a file it needs", certain=True), "INTERRUPT": LATE,
    "TOOBIG": _BAD_VALUE, "MISMATCH": _BAD_VALUE, "ERROR": _REFUSED,
}  # fmt: skip
"""By SQLite's name of the error, without what stands before and behind it."""

GRPC: Mapping[str, Meaning] = {
    "CANCELLED": LOST, "INVALID_ARGUMENT": _BAD_VALUE, "OUT_OF_RANGE": _BAD_VALUE, "DEADLINE_EXCEEDED": LATE,
    "NOT_FOUND": _ABSENT, "ALREADY_EXISTS": Meaning("CONFLICT", "met what is there already", certain=True),
    "PERMISSION_DENIED": _FORBIDDEN, "UNAUTHENTICATED": _FORBIDDEN,
    # also what the client says of an answer that is too large for it
    "RESOURCE_EXHAUSTED": Meaning("RATE_LIMITED", "used more than the service behind it allows"),
    "FAILED_PRECONDITION": _OTHER_STATE,
    "ABORTED": CONTENDED, "UNIMPLEMENTED": _REFUSED, "UNAVAILABLE": LOST, "INTERNAL": _FAILED, "UNKNOWN": _FAILED,
    "DATA_LOSS": _FAILED,
}  # fmt: skip
"""By the name of gRPC's status."""

AWS: Mapping[str, Meaning] = {
    **dict.fromkeys(("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"), _TOO_OFTEN),
    **dict.fromkeys(("TooManyRequestsException", "RequestLimitExceeded", "SlowDown"), _TOO_OFTEN),
    **dict.fromkeys(("ProvisionedThroughputExceededException", "BandwidthLimitExceeded"), _TOO_OFTEN),
    **dict.fromkeys(("AccessDenied", "AccessDeniedException", "UnauthorizedOperation"), _FORBIDDEN),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException"), _FORBIDDEN),
    **dict.fromkeys(("ResourceNotFoundException", "NoSuchKey", "NoSuchBucket", "NotFoundException"), _ABSENT),
    "ConditionalCheckFailedException": _OTHER_STATE,
    "TransactionConflictException": CONTENDED,
}
"""Codes that AWS sends with a status that says less."""

JSON_RPC: Mapping[int, Meaning] = {
    -32700: _REFUSED, -32600: _REFUSED, -32601: _ABSENT, -32602: _BAD_VALUE, -32603: _FAILED,
    -32000: LOST, -32001: LATE, 408: LATE,
}  # fmt: skip
"""Codes of JSON-RPC; the last three as MCP's SDKs use them: the connection was closed, and no answer in time."""
