"""Why a model stopped, in OpenAI's words: servers have many for the same four things. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CUT, FILTERED, REFUSED, FAILED = "length", "content_filter", "refusal", "error"

_WORDS = {
    CUT: "length max_tokens model_length max_output_tokens max_length model_context_window_exceeded",
    FILTERED: "content_filter safety recitation blocklist prohibited_content spii sensitive",
    REFUSED: "refusal",
    FAILED: "error abort aborted cancelled canceled timeout network_error insufficient_system_resource "
    "malformed_function_call",
}
ENDINGS: Mapping[str, str] = MappingProxyType({word: end for end, words in _WORDS.items() for word in words.split()})
"""By what servers of OpenAI, Azure, Mistral, Anthropic, Google, DeepSeek, Z.ai, vLLM and SGLang say, in lower case."""


def ending(said: object) -> str | None:
    """Why a model stopped. What is not in the table is a whole answer's end, and stays as it was said."""
    if not isinstance(said, str) or not said:
        return None
    return ENDINGS.get(said.casefold().removeprefix("finish_reason_"), said)
