"""One request to a model: its answer is put together from the stream piece by piece, so that what came before a break
is known."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodes.model_errors import AnswerTooLong
from nodes.model_modes import Mode
from plans.endings import ending
from plans.values import printable

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessageChunk
    from langchain_openai import ChatOpenAI

MAX_WRITTEN = 2_000_000
"""Most characters of an answer: as many as a plan is read of."""
MAX_TOKENS = 1_000_000_000
"""More tokens in one answer than any endpoint can mean."""
MAX_NAME = 200
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass
class Arrived:
    """What has come of one answer. `calls` are function calls as name and arguments, in their order; tokens are the
    endpoint's own count, None where it gives none; `answers` how many it has given at once, `thoughts` how many
    characters it has thought aloud, `size` how many it has written."""

    text: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    refusal: str = ""
    finish_reason: str | None = None
    model: str | None = None
    tokens: tuple[int, int] | None = None
    pieces: int = 0
    mode: Mode = "text"
    answers: int = 1
    thoughts: int = 0
    size: int = 0
    _ids: dict[int, str] = field(default_factory=dict)

    @property
    def written(self) -> str:
        """All that the model wrote, whatever it is."""
        return self.text + self.refusal + "".join(name + arguments for name, arguments in self.calls.values())

    @property
    def only_text(self) -> str | None:
        """What the answer is, if it is one text, or one call of a function and nothing beside it; else None."""
        if self.refusal or (self.calls and self.text) or len(self.calls) > 1 or self.answers > 1:
            return None
        return next((arguments for _, arguments in self.calls.values()), self.text)

    def pair(self) -> bool:
        """Put characters together that came in two halves; whether all are whole then."""
        if _HALVES.search(self.written):
            self.text, self.refusal = _paired(self.text), _paired(self.refusal)
            self.calls = {index: [_paired(part) for part in call] for index, call in self.calls.items()}
        return not _HALVES.search(self.written)

    def take(self, piece: BaseMessageChunk) -> bool:
        """Add a piece of the stream; whether the model said anything with it, aloud or in thought."""
        more, calls = piece.additional_kwargs, getattr(piece, "tool_call_chunks", ())
        self.pieces += 1
        self.text += str(piece.text)
        self.refusal += str(more.get("refusal") or "")
        for call in calls:
            self.call(call.get("index"), call.get("name"), call.get("args"), call.get("id"))
        self.answers = max(self.answers, 1 + int(more.get("answer") or 0))
        self.thoughts += int(more.get("thinking") or 0)
        self.size += len(piece.text) + sum(len(call.get("args") or "") for call in calls)
        said = piece.response_metadata
        self.finish_reason = ending(said.get("finish_reason")) or self.finish_reason
        self.model = _named(said.get("model_name")) or self.model
        if usage := getattr(piece, "usage_metadata", None):
            self.tokens = (int(usage["input_tokens"]), int(usage["output_tokens"]))
        return bool(piece.text or more or calls or self.finish_reason)

    def call(self, index: int | None, name: str | None, arguments: str | None, call_id: str | None = None) -> None:
        """Add a part of a function call. Where the endpoint does not number them, a name begins the next one; where it
        numbers all alike, another id does."""
        if index is None:
            index = len(self.calls) if name or not self.calls else len(self.calls) - 1
        if call_id and name and self._ids.setdefault(index, call_id) != call_id:
            index = len(self.calls)
            self._ids[index] = call_id
        call = self.calls.setdefault(index, ["", ""])
        call[0] += name or ""
        call[1] += arguments or ""


LISTENER: ContextVar[Callable[[Arrived], None] | None] = ContextVar("LISTENER", default=None)
"""Who hears each answer as it comes, of questions that are asked within where it is set."""


async def receive(
    chat: ChatOpenAI, messages: Sequence[tuple[str, str]], more: Mapping[str, Any], first_token_s: float, into: Arrived
) -> None:
    """Ask, and gather the answer. Raises TimeoutError if it does not begin in time, and whatever the client raises."""
    async with asyncio.timeout(first_token_s) as patience, aclosing(_stream(chat, messages, more)) as stream:
        async for piece in stream:
            said = into.take(piece)
            if (hear := LISTENER.get()) is not None:
                hear(into)
            if said and patience.when() is not None:
                patience.reschedule(None)
            if into.size > MAX_WRITTEN:
                message = f"the model's answer has more than {MAX_WRITTEN:,} characters, and does not end"
                raise AnswerTooLong(message, raw=into.written)


def _stream(chat: ChatOpenAI, messages: Sequence[tuple[str, str]], more: Mapping[str, Any]) -> Any:
    return chat.astream(list(messages), **more)


def whole(body: str, into: Arrived) -> None:
    """Take a whole completion, of an endpoint that does not stream. ValueError, or whatever its odd shape leads to."""
    completion = json.loads(body)
    choice = completion["choices"][0]
    message = choice["message"]
    into.text = _text_of(message.get("content"))
    into.refusal = _text_of(message.get("refusal"))
    into.thoughts = len(str(message.get("reasoning_content") or message.get("reasoning") or ""))
    into.answers = len(completion["choices"])
    for index, call in enumerate(message.get("tool_calls") or ()):
        arguments = call["function"].get("arguments")
        into.call(index, call["function"]["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))
    into.finish_reason = ending(choice.get("finish_reason")) or "stop"
    into.model = _named(completion.get("model"))
    into.tokens = counted(completion.get("usage"))


def counted(usage: Any) -> tuple[int, int] | None:
    """The tokens of prompt and answer by an endpoint's own count, or None for what is no count."""
    found = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    good = [n for n in found if isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MAX_TOKENS]
    return (good[0], good[1]) if len(good) == 2 else None


def _text_of(content: Any) -> str:
    """The text of a message: a string, or parts of which some are text. TypeError for anything else."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return "".join(_text_of(part.get("text")) for part in content)
    raise TypeError(f"a message's content is {type(content).__name__}")


def _paired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _named(model: Any) -> str | None:
    """What an endpoint calls its model, as it may stand in a row."""
    return printable(model, MAX_NAME) if isinstance(model, str) and model else None
