"""One request to a model: its answer is put together from the stream piece by piece, so that what came before a break
is known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodes.model_modes import Mode

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessageChunk
    from langchain_openai import ChatOpenAI


@dataclass
class Arrived:
    """What has come of one answer. `calls` are function calls as name and arguments, in their order; tokens are the
    endpoint's own count, None where it gives none."""

    text: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    refusal: str = ""
    finish_reason: str | None = None
    model: str | None = None
    tokens: tuple[int, int] | None = None
    pieces: int = 0
    mode: Mode = "text"

    @property
    def written(self) -> str:
        """All that the model wrote, whatever it is."""
        return self.text + self.refusal + "".join(name + arguments for name, arguments in self.calls.values())

    @property
    def only_text(self) -> str | None:
        """What the answer is, if it is one text, or one call of a function and nothing beside it; else None."""
        if self.refusal or (self.calls and self.text) or len(self.calls) > 1:
            return None
        return next((arguments for _, arguments in self.calls.values()), self.text)

    def take(self, piece: BaseMessageChunk) -> bool:
        """Add a piece of the stream; whether the model said anything with it, aloud or in thought."""
        more, calls = piece.additional_kwargs, getattr(piece, "tool_call_chunks", ())
        self.pieces += 1
        self.text += str(piece.text)
        self.refusal += str(more.get("refusal") or "")
        for call in calls:
            self.call(call.get("index"), call.get("name"), call.get("args"))
        said = piece.response_metadata
        self.finish_reason = said.get("finish_reason") or self.finish_reason
        self.model = said.get("model_name") or self.model
        if usage := getattr(piece, "usage_metadata", None):
            self.tokens = (int(usage["input_tokens"]), int(usage["output_tokens"]))
        return bool(piece.text or more or calls or self.finish_reason)

    def call(self, index: int | None, name: str | None, arguments: str | None) -> None:
        """Add a part of a function call. Where the endpoint does not number them, a name begins the next one."""
        if index is None:
            index = len(self.calls) if name or not self.calls else len(self.calls) - 1
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


def _stream(chat: ChatOpenAI, messages: Sequence[tuple[str, str]], more: Mapping[str, Any]) -> Any:
    return chat.astream(list(messages), **more)


def whole(body: str, into: Arrived) -> None:
    """Take a whole completion, of an endpoint that does not stream. ValueError, or whatever its odd shape leads to."""
    completion = json.loads(body)
    choice = completion["choices"][0]
    message = choice["message"]
    into.text = message.get("content") or ""
    into.refusal = message.get("refusal") or ""
    for index, call in enumerate(message.get("tool_calls") or ()):
        into.call(index, call["function"]["name"], call["function"].get("arguments"))
    into.finish_reason = choice.get("finish_reason") or "stop"
    into.model = completion.get("model")
    if usage := completion.get("usage"):
        into.tokens = (int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
