"""What can go wrong between us and a model: one class per way, each with a code of `plans.failure` and its next move.

ModelFailed
├── NotUsable                MODEL_NOT_CONFIGURED   give_up    the endpoint will not serve us as we are set up
│   ├── KeyRefused                                             HTTP 401 or 403
│   ├── ModelUnknown                                           HTTP 404
│   └── QuotaSpent                                             HTTP 402, or 429 that no waiting helps
├── RequestRefused           MODEL_REFUSED          give_up    any other HTTP 4xx
│   └── PromptTooLong                               shorten    more than the model reads
├── RateLimited              RATE_LIMITED           wait       HTTP 429; `delay_s` is what Retry-After says
├── Unreachable              UNAVAILABLE            ask_again  no connection
├── ServerFailed             UNAVAILABLE            ask_again  HTTP 5xx, or an error in the middle of an answer
├── NoFirstToken             TIMEOUT                ask_again  the answer did not begin in time
├── NotInTime                TIMEOUT                give_up    the question's whole time is over
├── StreamCut                UNAVAILABLE            ask_again  the stream ended before the answer did
├── StreamCorrupt            UNAVAILABLE            ask_again  a part of the stream cannot be read
├── BodyCorrupt              MODEL_ANSWER_INVALID   ask_again  HTTP 200 whose JSON cannot be read
├── NoCompletion             MODEL_ANSWER_INVALID   give_up    HTTP 200 that is no chat completion
├── AnswerTooLong            MODEL_ANSWER_INVALID   give_up    more than is read of any answer
└── AnswerUnusable           MODEL_ANSWER_INVALID   redraft    a whole answer that is not what was asked for
    ├── AnswerCut                                              at the length limit
    ├── AnswerEmpty
    ├── MalformedCall                                          the call of a function that was not offered
    ├── SeveralCalls                                           more than one answer
    ├── AnswerRefused        MODEL_REFUSED          give_up    the model declines
    └── AnswerFiltered       MODEL_REFUSED          give_up    a content filter stopped it

`ask_again` and `wait` are what the door to the model does itself (`nodes/models.py`); `redraft` and `give_up` are told
to whoever asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from plans.faults import FaultCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodes.models import ModelAnswer

NextMove = Literal["ask_again", "wait", "shorten", "redraft", "give_up"]

MAX_RAW = 100_000
"""Longest raw error text that is kept, in characters."""

_TRANSIENT_STATUSES = frozenset({408, 409, 425})
_FORMAT_STATUSES = frozenset({400, 422, 501})
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too (long|many tokens)|exceeds? .{0,40}(context|token)|n_ctx"
    r"|ContextWindowExceeded|Input tokens exceed|`inputs` tokens",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one question has cost, its failed requests included. `estimated_tokens` of the tokens nobody has reported;
    `cost` is in the currency of the configured prices."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    cost: float = 0.0


class ModelFailed(Exception):
    """A model call that gave no usable answer. The message is a plain sentence; `raw` is for an artifact only.

    `spent` is what the question has cost all the same; `answer`, where a whole one came, is what cannot be used.
    """

    code: ClassVar[str] = "MODEL_ANSWER_INVALID"
    next_move: ClassVar[NextMove] = "give_up"

    def __init__(
        self, message: str, *, delay_s: float | None = None, raw: str = "", answer: ModelAnswer | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.delay_s = delay_s
        self.raw = raw[:MAX_RAW]
        self.answer = answer
        self.spent = Spent()

    @property
    def transient(self) -> bool:
        """Whether the same question may be answered a little later."""
        return self.next_move in ("ask_again", "wait")


class NotUsable(ModelFailed):
    """The endpoint will not serve us as we are set up."""

    code = "MODEL_NOT_CONFIGURED"


class KeyRefused(NotUsable):
    """HTTP 401 or 403."""


class ModelUnknown(NotUsable):
    """HTTP 404."""


class QuotaSpent(NotUsable):
    """HTTP 402, or 429 that no waiting helps."""


class RequestRefused(ModelFailed):
    """HTTP 4xx. `may_be_the_format`: it may be how the answer's shape was asked for that is refused."""

    code = "MODEL_REFUSED"

    def __init__(self, message: str, *, raw: str = "", may_be_the_format: bool = False) -> None:
        super().__init__(message, raw=raw)
        self.may_be_the_format = may_be_the_format


class PromptTooLong(RequestRefused):
    """More than the model reads."""

    next_move = "shorten"


class RateLimited(ModelFailed):
    """HTTP 429."""

    code = "RATE_LIMITED"
    next_move = "wait"


class _Passing(ModelFailed):
    code = "UNAVAILABLE"
    next_move = "ask_again"


class Unreachable(_Passing):
    """No connection."""


class ServerFailed(_Passing):
    """HTTP 5xx, or an error in the middle of an answer."""


class StreamCut(_Passing):
    """The stream ended without saying why: nobody knows what is missing."""


class StreamCorrupt(_Passing):
    """A part of the stream cannot be read."""


class NoFirstToken(_Passing):
    """The answer did not begin in time."""

    code = "TIMEOUT"


class NotInTime(ModelFailed):
    """The question's whole time is over."""

    code = "TIMEOUT"


class BodyCorrupt(ModelFailed):
    """HTTP 200 whose JSON cannot be read."""

    next_move = "ask_again"


class NoCompletion(ModelFailed):
    """HTTP 200 that is no chat completion."""


class AnswerTooLong(ModelFailed):
    """More than is read of any answer."""


class AnswerUnusable(ModelFailed):
    """A whole answer that is not what was asked for; `fault` is what it is where a plan was asked for."""

    next_move: ClassVar[NextMove] = "redraft"
    fault: ClassVar[FaultCode] = "PLAN_SYNTAX"


class AnswerCut(AnswerUnusable):
    """Cut off at its length limit."""

    fault = "PLAN_TRUNCATED"


class AnswerEmpty(AnswerUnusable):
    """Nothing but white space."""


class MalformedCall(AnswerUnusable):
    """The call of a function that was not offered."""


class SeveralCalls(AnswerUnusable):
    """More than one answer, of which none is chosen."""

    fault = "PLAN_AMBIGUOUS"


class AnswerRefused(AnswerUnusable):
    """The model declines."""

    code = "MODEL_REFUSED"
    next_move = "give_up"
    fault = "PLAN_REFUSED"


class AnswerFiltered(AnswerRefused):
    """A content filter stopped the answer."""


def refused_by_status(
    status: int, *, endpoint: str, model: str, headers: Mapping[str, str], raw: str, code: Any = None
) -> ModelFailed:
    """The failure that an HTTP status other than 2xx stands for."""
    if code == "insufficient_quota" or status == 402:
        return QuotaSpent(f"{endpoint} says that the account behind OPENAI_API_KEY has no quota left", raw=raw)
    if status == 429:
        message = f"the model at {endpoint} limits the rate of requests (HTTP 429)"
        return RateLimited(message, delay_s=retry_after_s(headers), raw=raw)
    if status in (401, 403):
        return KeyRefused(f"{endpoint} refuses the API key (HTTP {status}); check OPENAI_API_KEY", raw=raw)
    if status == 404:
        message = f"{endpoint} does not know the model {model!r} (HTTP 404); check SURESTEP_MODEL and OPENAI_BASE_URL"
        return ModelUnknown(message, raw=raw)
    if status == 413 or (status in (*_FORMAT_STATUSES, 500) and _TOO_LONG.search(raw)):
        message = f"the model at {endpoint} cannot read a prompt of this length (HTTP {status})"
        return PromptTooLong(message, raw=raw)
    if status in _TRANSIENT_STATUSES or (status >= 500 and status not in _FORMAT_STATUSES):
        message = f"the model at {endpoint} is not available (HTTP {status})"
        return ServerFailed(message, delay_s=retry_after_s(headers), raw=raw)
    if code == "content_filter":
        return RequestRefused(f"a content filter of {endpoint} refuses the prompt (HTTP {status})", raw=raw)
    message = f"the model at {endpoint} refuses the request (HTTP {status})"
    return RequestRefused(message, raw=raw, may_be_the_format=status in _FORMAT_STATUSES)


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
