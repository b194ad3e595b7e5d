"""What can go wrong between us and a model's endpoint, as one exception with a code of `plans.failure`.

ModelFailed codes
├── MODEL_NOT_CONFIGURED   the endpoint refuses the key, does not know the model, or the account is empty
├── MODEL_REFUSED          the model declined, or the endpoint refuses the request as it stands (HTTP 4xx)
├── MODEL_ANSWER_INVALID   an answer that is no chat completion, or not what was asked for
├── RATE_LIMITED           HTTP 429; `delay_s` is what Retry-After says
├── UNAVAILABLE            no connection, or HTTP 5xx
└── TIMEOUT                no whole answer in time
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodes.models import ModelAnswer

MAX_RAW = 100_000
"""Longest raw error text that is kept, in characters."""

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 500, 502, 503, 504, 529})


class ModelFailed(Exception):
    """A model call that gave no usable answer. `message` is a plain sentence; `raw` is for an artifact only.

    `requests` counts the HTTP requests made; `answer`, where there is one, carries the tokens that were spent.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        delay_s: float | None = None,
        raw: str = "",
        requests: int = 1,
        answer: ModelAnswer | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.delay_s = delay_s
        self.raw = raw[:MAX_RAW]
        self.requests = requests
        self.answer = answer
        self.transient = transient


def timed_out(endpoint: str, timeout_s: float) -> ModelFailed:
    """No whole answer within the time a model call has."""
    return ModelFailed("TIMEOUT", f"the model at {endpoint} gave no whole answer within {timeout_s:g} s")


def unreachable(endpoint: str, raw: str) -> ModelFailed:
    """No connection to the endpoint."""
    message = f"the model endpoint {endpoint} cannot be reached; check OPENAI_BASE_URL and whether the server runs"
    return ModelFailed("UNAVAILABLE", message, raw=raw, transient=True)


def no_completion(endpoint: str, raw: str) -> ModelFailed:
    """HTTP said yes, but the body is no chat completion."""
    message = f"{endpoint} answered with something that is no chat completion; check OPENAI_BASE_URL (often …/v1)"
    return ModelFailed("MODEL_ANSWER_INVALID", message, raw=raw)


def refused_by_status(
    status: int, *, endpoint: str, model: str, headers: Mapping[str, str], raw: str, code: Any = None
) -> ModelFailed:
    """The failure that an HTTP status other than 2xx stands for."""
    if code == "insufficient_quota":
        message = f"{endpoint} says that the account behind OPENAI_API_KEY has no quota left"
        return ModelFailed("MODEL_NOT_CONFIGURED", message, raw=raw)
    if status == 429:
        message = f"the model at {endpoint} limits the rate of requests (HTTP 429)"
        return ModelFailed("RATE_LIMITED", message, delay_s=retry_after_s(headers), raw=raw, transient=True)
    if status in _TRANSIENT_STATUSES or status >= 500:
        message = f"the model at {endpoint} is not available (HTTP {status})"
        return ModelFailed("UNAVAILABLE", message, delay_s=retry_after_s(headers), raw=raw, transient=True)
    if status in (401, 403):
        message = f"{endpoint} refuses the API key (HTTP {status}); check OPENAI_API_KEY"
        return ModelFailed("MODEL_NOT_CONFIGURED", message, raw=raw)
    if status == 404:
        message = f"{endpoint} does not know the model {model!r} (HTTP 404); check SURESTEP_MODEL and OPENAI_BASE_URL"
        return ModelFailed("MODEL_NOT_CONFIGURED", message, raw=raw)
    message = f"the model at {endpoint} refuses the request (HTTP {status}); it may be longer than the model reads"
    return ModelFailed("MODEL_REFUSED", message, raw=raw)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks us to wait; a date counts from the response's own Date. None if it does not say."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if (seconds := _number(text)) is not None or text is None:
        return seconds
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


def shown(base_url: str) -> str:
    """An endpoint as it may stand in a message: without user, password and query."""
    parts = urlsplit(base_url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else "the configured endpoint"


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
