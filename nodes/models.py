"""The one door to a language model: a question over an OpenAI-compatible endpoint, its raw answer, or a typed failure.

What comes back is text exactly as the model wrote it, with why it stopped and what it cost. Nothing is parsed here:
a cut, refused, filtered or empty answer is an answer, and judging it is the caller's work.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from nodes.model_errors import ModelFailed, no_completion, refused_by_status, shown, timed_out, unreachable
from plans.errors import ModelNotConfigured

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_openai import ChatOpenAI
    from openai import APIStatusError

    from nodes.prompts import Rendered
    from plans.values import JSON

OPENAI_ENDPOINT = "https://api.openai.com/v1"
NO_KEY = "none"
"""What is sent as key to a server that wants none; the client library insists on a text."""

_ABOUT_THE_FORMAT = re.compile(r"response_format|json_schema", re.IGNORECASE)
_RAN_INTO_NO_COMPLETION = (ValueError, LookupError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How one model is reached. Times in seconds; `timeout_s` bounds a whole question, its retries included.

    `json_schema` says that the endpoint understands `response_format`; where it turns out not to, plain text is asked.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    json_schema: bool = True
    max_tokens: int | None = None
    retries: int = 2
    backoff_s: float = 0.5
    max_retry_after_s: float = 20.0

    @property
    def endpoint(self) -> str:
        """The endpoint as it may stand in a message."""
        return shown(self.base_url or OPENAI_ENDPOINT)


def configured(model: str | None, base_url: str | None = None, api_key: str | None = None) -> ModelSettings:
    """The settings of a model, or ModelNotConfigured with what to set."""
    if not model:
        raise ModelNotConfigured(
            "no model is configured. Set SURESTEP_MODEL to its name, and OPENAI_BASE_URL and OPENAI_API_KEY for its "
            "OpenAI-compatible endpoint, in the environment, or `model`, `base_url` and `api_key` in surestep.toml."
        )
    if not base_url and not api_key:
        raise ModelNotConfigured(
            f"the model {model!r} has no endpoint. Set OPENAI_API_KEY to use {OPENAI_ENDPOINT}, or OPENAI_BASE_URL to "
            "use another OpenAI-compatible server (many local ones need no key); surestep.toml does as well."
        )
    if base_url and not re.match(r"https?://[^/\s]", base_url):
        raise ModelNotConfigured(
            f"OPENAI_BASE_URL must be an http or https address such as http://127.0.0.1:8080/v1, not {base_url!r}."
        )
    return ModelSettings(model, base_url or None, api_key or None)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer as it came: `text` is raw, `requests` counts the HTTP requests it took, tokens are the endpoint's."""

    text: str
    finish_reason: str | None
    refusal: str | None
    prompt_tokens: int
    completion_tokens: int
    model: str
    elapsed_s: float
    requests: int = 1


class Asks(Protocol):
    """Whatever a question can be put to: a model, or one whose answers are remembered."""

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The answer to a prompt; raises ModelFailed."""


class Model:
    """One model. It belongs to the event loop that first asks it, and is closed there."""

    def __init__(self, settings: ModelSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._chat: ChatOpenAI | None = None
        self._connecting = asyncio.Lock()
        self._json_schema = settings.json_schema

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; a later question opens new ones."""
        chat, self._chat = self._chat, None
        if chat is not None:
            await chat.root_async_client.close()

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The model's answer to a prompt, in the shape of a JSON schema if the endpoint can be held to one.

        Raises ModelFailed. Rate limits, 5xx and lost connections are tried again while the time allows.
        """
        chat = await self._connected()
        started = self._clock()
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                answer = await self._with_retries(chat, prompt, schema, max_tokens or self.settings.max_tokens)
        except TimeoutError:
            raise timed_out(self.settings.endpoint, self.settings.timeout_s) from None
        return replace(answer, elapsed_s=self._clock() - started)

    async def _connected(self) -> ChatOpenAI:
        async with self._connecting:
            if self._chat is None:
                # In a thread: the import takes seconds and the TLS context reads files, which a server's loop must not.
                self._chat = await asyncio.to_thread(_connect, self.settings)
            return self._chat

    async def _with_retries(
        self, chat: ChatOpenAI, prompt: Rendered, schema: Mapping[str, JSON] | None, max_tokens: int | None
    ) -> ModelAnswer:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        tries = AsyncRetrying(
            stop=stop_after_attempt(self.settings.retries + 1),
            wait=self._wait_s,
            retry=retry_if_exception(self._worth_another_try),
            reraise=True,
        )
        try:
            answer: ModelAnswer = await tries(self._once, chat, prompt, schema, max_tokens)
        except ModelFailed as failed:
            failed.requests = tries.statistics["attempt_number"]
            raise
        return replace(answer, requests=tries.statistics["attempt_number"])

    def _worth_another_try(self, error: BaseException) -> bool:
        return (
            isinstance(error, ModelFailed)
            and error.transient
            and (error.delay_s or 0.0) <= self.settings.max_retry_after_s
        )

    def _wait_s(self, state: Any) -> float:
        failed = state.outcome.exception()
        backoff_s: float = self.settings.backoff_s * 2 ** (state.attempt_number - 1)
        return max(backoff_s, failed.delay_s or 0.0)

    async def _once(
        self, chat: ChatOpenAI, prompt: Rendered, schema: Mapping[str, JSON] | None, max_tokens: int | None
    ) -> ModelAnswer:
        import openai

        held_to = schema if self._json_schema else None
        try:
            return await self._request(chat, prompt, held_to, max_tokens)
        except openai.APITimeoutError:
            raise timed_out(self.settings.endpoint, self.settings.timeout_s) from None
        except openai.APIConnectionError as error:
            raise unreachable(self.settings.endpoint, repr(error.__cause__ or error)) from None
        except openai.APIStatusError as error:
            if held_to is None or not _is_about_the_format(error):
                raise self._refused(error) from None
        except (openai.OpenAIError, *_RAN_INTO_NO_COMPLETION) as error:
            # The libraries stumble over a foreign body in their own ways: a ValueError here, a KeyError there.
            raise no_completion(self.settings.endpoint, repr(error)) from None
        self._json_schema = False
        return await self._once(chat, prompt, None, max_tokens)

    async def _request(
        self, chat: ChatOpenAI, prompt: Rendered, schema: Mapping[str, JSON] | None, max_tokens: int | None
    ) -> ModelAnswer:
        # As extra body, because the client library parses an answer itself when it is told the response format,
        # and then throws the text of a cut or filtered one away.
        more: dict[str, Any] = {"extra_body": {"response_format": _response_format(schema)}} if schema else {}
        if max_tokens is not None:
            more["max_tokens"] = max_tokens
        message = await chat.ainvoke([("system", prompt.rules), ("user", prompt.task)], **more)
        return _answer(message, self.settings.model)

    def _refused(self, error: APIStatusError) -> ModelFailed:
        return refused_by_status(
            error.status_code,
            endpoint=self.settings.endpoint,
            model=self.settings.model,
            headers=error.response.headers,
            raw=error.response.text,
            code=error.code,
        )


def _connect(settings: ModelSettings) -> ChatOpenAI:
    import warnings

    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient
    from pydantic import SecretStr

    # It advises a method of the library's that is not used here, on standard error, where the run's tree is drawn.
    warnings.filterwarnings("ignore", message=".*structured output feature", category=UserWarning)
    return ChatOpenAI(
        model_name=settings.model,
        openai_api_base=settings.base_url or OPENAI_ENDPOINT,
        openai_api_key=SecretStr(settings.api_key or NO_KEY),
        request_timeout=settings.timeout_s,
        max_retries=0,
        use_responses_api=False,
        http_async_client=DefaultAsyncHttpxClient(timeout=settings.timeout_s),
    )


def _response_format(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    # Not strict: the strict dialect forbids free-form objects, and a tool's arguments are one.
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": False, "schema": dict(schema)}}


def _is_about_the_format(error: APIStatusError) -> bool:
    return error.status_code in (400, 422) and bool(_ABOUT_THE_FORMAT.search(error.response.text))


def _answer(message: BaseMessage, model: str) -> ModelAnswer:
    usage: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    refusal = message.additional_kwargs.get("refusal")
    return ModelAnswer(
        text=str(message.text),
        finish_reason=message.response_metadata.get("finish_reason"),
        refusal=str(refusal) if refusal else None,
        prompt_tokens=int(usage.get("input_tokens", 0)),
        completion_tokens=int(usage.get("output_tokens", 0)),
        model=str(message.response_metadata.get("model_name") or model),
        elapsed_s=0.0,
    )
