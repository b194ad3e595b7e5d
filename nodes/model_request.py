"""One HTTP request to a model: what came of it, or which of our failures it is; and what it has cost either way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodes import model_errors as errors
from nodes.model_bodies import RECEIVED, BodyRefused, Received
from nodes.model_errors import ModelFailed, Spent
from nodes.model_modes import Mode, parameters
from nodes.model_settings import BYTES_PER_TOKEN, ModelSettings, estimated
from nodes.model_stream import Arrived, receive, whole
from plans.endings import FAILED

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI
    from openai import APIStatusError

    from nodes.prompts import Rendered
    from plans.values import JSON

_FOREIGN = (ValueError, LookupError, TypeError, AttributeError)
"""What the libraries raise over a body that is no completion: each in its own way."""


@dataclass
class Question:
    """A question on its way, and what its requests have cost so far."""

    prompt: Rendered
    schema: Mapping[str, JSON] | None
    max_tokens: int | None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0

    def count(self, arrived: Arrived) -> None:
        """Add a request that the model has worked on: by its own count, else by an estimate."""
        if arrived.tokens is None:
            asked = estimated(self.prompt.rules + self.prompt.task)
            written = arrived.written
            answered = (estimated(written) if written else 0) + arrived.thoughts // BYTES_PER_TOKEN
            self.estimated_tokens += asked + answered
        else:
            asked, answered = arrived.tokens
        self.prompt_tokens += asked
        self.completion_tokens += answered

    def spent(self, settings: ModelSettings) -> Spent:
        """What it has cost, at the model's price."""
        cost = settings.price.of(self.prompt_tokens, self.completion_tokens) if settings.price else 0.0
        return Spent(self.requests, self.prompt_tokens, self.completion_tokens, self.estimated_tokens, cost)

    def sent(self, mode: Mode, *, with_usage: bool) -> dict[str, Any]:
        """What a request says beside its messages."""
        more = {**parameters(mode, self.schema), "stream_usage": with_usage}
        return more if self.max_tokens is None else {**more, "max_tokens": self.max_tokens}


async def request(
    chat: ChatOpenAI, settings: ModelSettings, question: Question, mode: Mode, *, with_usage: bool = True
) -> Arrived:
    """The answer to one request, which is counted in the question. Raises ModelFailed; AnswerUnusable never."""
    question.requests += 1
    arrived, received = Arrived(mode=mode), Received()
    try:
        await _receive(chat, settings, question.sent(mode, with_usage=with_usage), question, arrived, received)
        _check_end(arrived, settings, received)
    except asyncio.CancelledError:  # the question's time is over, or nobody wants to know any more
        question.count(arrived)
        raise
    except ModelFailed as failed:
        if arrived.pieces or isinstance(failed, errors.NoFirstToken):
            question.count(arrived)
        raise
    question.count(arrived)
    return arrived


async def _receive(
    chat: ChatOpenAI,
    settings: ModelSettings,
    more: Mapping[str, Any],
    question: Question,
    arrived: Arrived,
    received: Received,
) -> None:
    import openai

    messages = [("system", question.prompt.rules), ("user", question.prompt.task)]
    token = RECEIVED.set(received)
    try:
        await receive(chat, messages, more, settings.first_token_s, arrived)
    except TimeoutError:
        raise errors.NoFirstToken(
            f"the model at {settings.endpoint} did not begin to answer within {settings.first_token_s:g} s; a slow one "
            "needs a larger SURESTEP_MODEL_FIRST_TOKEN_S"
        ) from None
    except openai.APIStatusError as error:
        raise _refused(error, settings) from None
    except (openai.APIConnectionError, BodyRefused) as error:
        raise _lost(error, settings, arrived, received) from None
    except openai.APIError as error:
        message = f"the model at {settings.endpoint} failed in the middle of its answer"
        raise errors.ServerFailed(message, raw=f"{error.message}\n{error.body}\n{arrived.written}") from None
    except (openai.OpenAIError, *_FOREIGN) as error:
        if received.whole is None:
            raise _unreadable(error, settings, arrived, received) from None
    finally:
        RECEIVED.reset(token)
    if received.whole is not None and not arrived.pieces:  # a stream may come under another name
        _take_whole(received.whole, settings, arrived)


def _check_end(arrived: Arrived, settings: ModelSettings, received: Received) -> None:
    """Whether the answer has come to an end of its own, and is text."""
    raw = arrived.written or received.begins
    if arrived.finish_reason is None:
        raise errors.StreamCut(f"the answer of {settings.endpoint} broke off", raw=raw)
    if arrived.finish_reason == FAILED:
        raise errors.ServerFailed(f"the model at {settings.endpoint} failed in the middle of its answer", raw=raw)
    if not arrived.pair():
        raise errors.StreamCorrupt(f"the answer of {settings.endpoint} holds half a character", raw=raw)


def _take_whole(body: str, settings: ModelSettings, arrived: Arrived) -> None:
    """What came instead of a stream."""
    try:
        whole(body, arrived)
    except _FOREIGN as error:
        if isinstance(error, json.JSONDecodeError) and body.lstrip().startswith("{"):
            raise errors.BodyCorrupt(f"the answer of {settings.endpoint} is broken JSON", raw=body) from None
        if _tells_an_error(body):
            raise errors.ServerFailed(f"{settings.endpoint} tells of an error with HTTP 200", raw=body) from None
        message = f"{settings.endpoint} answers with what is no chat completion; check OPENAI_BASE_URL (often …/v1)"
        raise errors.NoCompletion(message, raw=body) from None


def _tells_an_error(body: str) -> bool:
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return isinstance(said, dict) and bool(said.get("error")) and not said.get("choices")


def _unreadable(error: BaseException, settings: ModelSettings, arrived: Arrived, received: Received) -> ModelFailed:
    if isinstance(error, json.JSONDecodeError | UnicodeError):
        broken = error.doc if isinstance(error, json.JSONDecodeError) else received.begins
        message = f"a part of the answer of {settings.endpoint} is broken"
        return errors.StreamCorrupt(message, raw=f"{arrived.written}\n{broken}")
    begins = received.begins.lstrip()
    if arrived.pieces == 0 and type(error) is ValueError and not begins.startswith(("{", "<")):  # a stream of nothing
        return errors.StreamCut(f"the answer of {settings.endpoint} broke off before it began", raw=received.begins)
    message = f"{settings.endpoint} streams what is no chat completion; check OPENAI_BASE_URL (often …/v1)"
    return errors.NoCompletion(message, raw=f"{received.begins}\n{error!r}")


def not_in_time(settings: ModelSettings) -> str:
    """That an answer has taken too long, and what to do about it."""
    return (
        f"the model at {settings.endpoint} gave no whole answer within {settings.timeout_s:g} s; a slow one needs a "
        "larger SURESTEP_MODEL_TIMEOUT_S"
    )


def _lost(error: Exception, settings: ModelSettings, arrived: Arrived, received: Received) -> ModelFailed:
    import openai

    endpoint, raw = settings.endpoint, repr(error.__cause__ or error)
    if received.too_large:
        return errors.AnswerTooLong(f"{endpoint} sends more than is read of any answer", raw=received.begins)
    if received.undecodable:
        return errors.StreamCorrupt(f"the answer of {endpoint} is not encoded as it says", raw=received.begins)
    if isinstance(error, openai.APITimeoutError):
        return errors.NotInTime(not_in_time(settings), raw=raw)
    if arrived.pieces:
        return errors.StreamCut(f"the connection to {endpoint} broke in the middle of an answer", raw=arrived.written)
    message = f"the model endpoint {endpoint} cannot be reached; check OPENAI_BASE_URL and whether the server runs"
    return errors.Unreachable(message, raw=raw)


def _refused(error: APIStatusError, settings: ModelSettings) -> ModelFailed:
    return errors.refused_by_status(
        error.status_code,
        endpoint=settings.endpoint,
        model=settings.model,
        headers=error.response.headers,
        raw=error.response.text,
        code=error.code,
    )
