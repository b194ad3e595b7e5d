"""langchain-openai's chat model, with what its streams would otherwise lose. Imported only when a model is asked.

Bodies are bounded, and remembered where an endpoint answers a request for a stream with something else; a refusal,
which comes in parts of its own, is kept beside the text; and what would break the library is put right before it sees
it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

from nodes.model_bodies import RECEIVED, Body, Received
from nodes.model_settings import OPENAI_ENDPOINT, ModelSettings
from nodes.model_stream import counted
from tools.http.inflate import TAKEN

NO_KEY = "none"
"""What is sent as key to a server that wants none; the client library insists on a text."""


class StreamedChat(ChatOpenAI):
    """ChatOpenAI whose chunks carry a refusal, and tell of thoughts that are not part of the text (their length) and
    of which answer they are a part, where there are several."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *given: Any, **named: Any
    ) -> ChatGenerationChunk | None:
        choices = chunk.get("choices") or []
        delta = (choices[0].get("delta") if choices else None) or {}
        _put_right(chunk, delta)
        converted = super()._convert_chunk_to_generation_chunk(chunk, *given, **named)
        if converted is not None:
            more = converted.message.additional_kwargs
            if delta.get("refusal"):
                more["refusal"] = delta["refusal"]
            if thoughts := delta.get("reasoning_content") or delta.get("reasoning"):
                more["thinking"] = len(str(thoughts))
            if choices and choices[0].get("index"):
                more["answer"] = choices[0]["index"]
        return converted


def _put_right(chunk: dict[str, Any], delta: dict[str, Any]) -> None:
    """Counts that are none are left out: an answer is not lost for its bill. Arguments that some servers send as an
    object become the text that they are to be."""
    if chunk.get("usage") is not None and counted(chunk["usage"]) is None:
        chunk["usage"] = None
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), dict):
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)


class _Bounded(httpx2.AsyncByteStream):
    """A response's stream, read through a `Body`."""

    def __init__(self, stream: Any, body: Body) -> None:
        self._stream, self._body = stream, body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body.pieces()

    async def aclose(self) -> None:
        """Close the connection's own stream."""
        await self._stream.aclose()


async def _bound(response: Any) -> None:
    received = RECEIVED.get() or Received()
    encodings = [each.strip().lower() for each in response.headers.get_list("content-encoding", split_commas=True)]
    response.headers.pop("content-encoding", None)  # undone here
    streamed = "event-stream" in response.headers.get("content-type", "")
    failed = response.status_code >= 400
    body = Body(response.stream.__aiter__(), encodings, received, failed=failed, streamed=streamed)
    response.stream = _Bounded(response.stream, body)
    if response.status_code == 200 and not streamed:
        await response.aread()
        received.whole = response.text


def connect(settings: ModelSettings) -> StreamedChat:
    """A chat model that tries nothing again by itself."""
    # It advises a method of the library's that is not used here, on standard error, where the run's tree is drawn.
    warnings.filterwarnings("ignore", message=".*structured output feature", category=UserWarning)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)  # of odd answers
    return StreamedChat(
        model_name=settings.model,
        openai_api_base=settings.base_url or OPENAI_ENDPOINT,
        openai_api_key=SecretStr(settings.api_key or NO_KEY),
        request_timeout=settings.timeout_s,
        stream_chunk_timeout=None,
        max_retries=0,
        use_responses_api=False,
        http_async_client=DefaultAsyncHttpxClient(
            timeout=settings.timeout_s, headers={"Accept-Encoding": TAKEN}, event_hooks={"response": [_bound]}
        ),
    )
