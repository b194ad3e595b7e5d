"""langchain-openai's chat model, with what its streams would otherwise lose. Imported only when a model is asked.

Raw bodies are remembered where an endpoint answers a request for a stream with something else, and a refusal, which
comes in parts of its own, is kept beside the text.
"""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

from nodes.model_settings import OPENAI_ENDPOINT, ModelSettings

NO_KEY = "none"
"""What is sent as key to a server that wants none; the client library insists on a text."""

WHOLE_BODY: ContextVar[list[str] | None] = ContextVar("WHOLE_BODY", default=None)
"""Where a body goes that is no stream although one was asked for, for whoever sets it to a list."""


class StreamedChat(ChatOpenAI):
    """ChatOpenAI whose chunks carry a refusal, and tell of thoughts that are not part of the text."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *given: Any, **named: Any
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(chunk, *given, **named)
        choices = chunk.get("choices") or []
        delta = choices[0].get("delta") if choices else None
        if converted is not None and delta:
            if delta.get("refusal"):
                converted.message.additional_kwargs["refusal"] = delta["refusal"]
            if delta.get("reasoning_content") or delta.get("reasoning"):
                converted.message.additional_kwargs["thinking"] = True
        return converted


async def _remember_whole(response: Any) -> None:
    kept = WHOLE_BODY.get()
    kind = response.headers.get("content-type", "")
    if kept is not None and response.status_code == 200 and "event-stream" not in kind:
        await response.aread()
        kept.append(response.text)


def connect(settings: ModelSettings) -> StreamedChat:
    """A chat model that tries nothing again by itself."""
    # It advises a method of the library's that is not used here, on standard error, where the run's tree is drawn.
    warnings.filterwarnings("ignore", message=".*structured output feature", category=UserWarning)
    return StreamedChat(
        model_name=settings.model,
        openai_api_base=settings.base_url or OPENAI_ENDPOINT,
        openai_api_key=SecretStr(settings.api_key or NO_KEY),
        request_timeout=settings.timeout_s,
        stream_chunk_timeout=None,
        max_retries=0,
        use_responses_api=False,
        http_async_client=DefaultAsyncHttpxClient(
            timeout=settings.timeout_s, event_hooks={"response": [_remember_whole]}
        ),
    )
