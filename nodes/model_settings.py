"""How a model is reached and what it costs; who has not said so yet is told what to set."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from nodes.model_errors import shown
from plans.errors import ModelNotConfigured

OPENAI_ENDPOINT = "https://api.openai.com/v1"
BYTES_PER_TOKEN = 4
"""Of UTF-8 text, about: OpenAI's rule of thumb for English; of Chinese it gives three tokens for four characters."""

PROMPT_TOKENS = 24_000
"""What a planning prompt may come to where nobody says otherwise: a window of 32,000 has room for it and the answer."""

StructuredOutput = Literal["auto", "json_schema", "tools", "text"]


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in whatever currency the limit `max_cost` is meant in."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How one model is reached. Times in seconds; `timeout_s` bounds a whole question, its retries included, and
    `first_token_s` how long each request may take to begin its answer.

    `structured_output` says how it can be held to a schema; "auto" finds out. Without a `price` it costs nothing.
    `prompt_tokens` are what a planning prompt may come to, by estimate, as far as that can be.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    first_token_s: float = 8.0
    structured_output: StructuredOutput = "auto"
    max_tokens: int | None = None
    prompt_tokens: int = PROMPT_TOKENS
    retries: int = 2
    backoff_s: float = 0.5
    max_retry_after_s: float = 20.0
    price: Price | None = None

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


def estimated(text: str) -> int:
    """About how many tokens a text is; never 0."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1
