"""The one door to a language model: a question over an OpenAI-compatible endpoint, its raw answer, or a typed failure.

What comes back is text exactly as the model wrote it, with why it stopped and what it cost. Nothing is parsed here:
a cut, refused, filtered or empty answer is an answer, and judging it is the caller's work (`nodes/answered.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from nodes.model_errors import ModelFailed, NotInTime, RequestRefused, Spent
from nodes.model_modes import KNOWN, Known, Mode, modes_for
from nodes.model_request import Question, not_in_time, request
from nodes.model_settings import ModelSettings
from tools.privacy import BUILT_IN, Privacy

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    from nodes.prompts import Rendered
    from plans.values import JSON


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer as it came: `text` is raw, `calls` names the functions that the model called to give it, `mode` is how
    it was held to a schema, `answers` how many came at once (`text` holds all of them, or the first). Requests, tokens
    and cost are those of the whole question, failed requests included; `estimated_tokens` of the tokens nobody has
    reported."""

    text: str
    finish_reason: str | None
    refusal: str | None
    prompt_tokens: int
    completion_tokens: int
    model: str
    elapsed_s: float
    requests: int = 1
    estimated_tokens: int = 0
    cost: float = 0.0
    mode: Mode = "text"
    calls: tuple[str, ...] = ()
    answers: int = 1

    @property
    def spent(self) -> Spent:
        """What the question has cost."""
        return Spent(self.requests, self.prompt_tokens, self.completion_tokens, self.estimated_tokens, self.cost)


class Asks(Protocol):
    """Whatever a question can be put to: a model, or one whose answers are remembered."""

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The answer to a prompt; raises ModelFailed."""


class Model:
    """One model. It belongs to the event loop that first asks it, and is closed there."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        known: Known = KNOWN,
        privacy: Privacy = BUILT_IN,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._chat: ChatOpenAI | None = None
        self._connecting = asyncio.Lock()
        self._known = known
        self._privacy = privacy
        self._key = (settings.endpoint, settings.model)

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
        from nodes.private_prompts import STANDING, hidden, restored

        await self._connected()
        shown, stand_ins = hidden(prompt, self._privacy)
        question = Question(shown, schema, max_tokens or self.settings.max_tokens)
        started, standing = self._clock(), STANDING.set(stand_ins)
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                answer = await self._in_some_mode(question)
        except TimeoutError:
            late = NotInTime(not_in_time(self.settings))
            late.spent = question.spent(self.settings)
            raise late from None
        except ModelFailed as failed:
            failed.spent = question.spent(self.settings)
            raise
        finally:
            STANDING.reset(standing)
        spent = question.spent(self.settings)
        return replace(
            restored(answer, stand_ins),
            requests=spent.requests,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            estimated_tokens=spent.estimated_tokens,
            cost=spent.cost,
            elapsed_s=self._clock() - started,
        )

    async def _connected(self) -> ChatOpenAI:
        async with self._connecting:
            if self._chat is None:
                # In a thread: the import takes seconds and the TLS context reads files, which a server's loop must not.
                self._chat = await asyncio.to_thread(_connect, self.settings)
            return self._chat

    async def _in_some_mode(self, question: Question) -> ModelAnswer:
        """The answer in the tightest mode that the endpoint understands. What it refuses may be the mode: that is known
        only when a looser one is answered."""
        first = self._known.tightest(self._key)
        modes = modes_for(question.schema, self.settings.structured_output, first)
        for mode in modes:
            try:
                answer = await self._with_retries(question, mode)
            except RequestRefused as refused:
                if mode == modes[-1] or not refused.may_be_the_format:
                    raise
            else:
                if mode != modes[0]:
                    self._known.understood(self._key, mode)
                return answer
        raise AssertionError("there is always a last mode")

    async def _with_retries(self, question: Question, mode: Mode) -> ModelAnswer:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        tries = AsyncRetrying(
            stop=stop_after_attempt(self.settings.retries + 1),
            wait=self._wait_s,
            retry=retry_if_exception(self._worth_another_try),
            reraise=True,
        )
        answer: ModelAnswer = await tries(self._once, question, mode)
        return answer

    async def _once(self, question: Question, mode: Mode) -> ModelAnswer:
        chat, counted = await self._connected(), self._known.reports_usage(self._key)
        try:
            arrived = await request(chat, self.settings, question, mode, with_usage=counted)
        except RequestRefused as refused:
            if not counted or "stream_options" not in refused.raw:
                raise
            self._known.refuses_usage(self._key)
            arrived = await request(chat, self.settings, question, mode, with_usage=False)
        return ModelAnswer(
            text=arrived.text if not arrived.calls else "\n".join(each for _, each in arrived.calls.values()),
            finish_reason=arrived.finish_reason,
            refusal=arrived.refusal or None,
            prompt_tokens=question.prompt_tokens,
            completion_tokens=question.completion_tokens,
            model=arrived.model or self.settings.model,
            elapsed_s=0.0,
            mode=mode,
            calls=tuple(name for name, _ in arrived.calls.values()),
            answers=arrived.answers,
        )

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


def _connect(settings: ModelSettings) -> ChatOpenAI:
    from nodes.model_chat import connect

    return connect(settings)
