"""A model whose answers are in the journal: a question of a run is asked once, and what it cost counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from checkpoints.crash_points import reached
from nodes.model_errors import ModelFailed
from nodes.models import Model, ModelAnswer
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.prompts import Rendered
    from nodes.session import Session

ANSWER_TOKENS = 2_000
"""Tokens reserved for an answer of which nobody has said how long it may be."""
BYTES_PER_TOKEN = 4
"""Of UTF-8 text, about: OpenAI's rule of thumb for English; of Chinese it gives three tokens for four characters."""


def estimated(text: str) -> int:
    """About how many tokens a text is; never 0."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


class JournaledModel:
    """One question, named by what it is for and in which revision (`plan:first:0::0`, `step:s3:1:…`), never by a
    counter or a prompt's text.

    Before it is asked, what it may cost is reserved: a question whose asker died counts as spent, and asked again it
    is reserved again.
    """

    def __init__(self, session: Session, model: Model, key: str) -> None:
        self._session = session
        self._model = model
        self._key = key

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The recorded answer; else the model's, recorded before anybody sees it. Raises ModelFailed."""
        recorded = self._session.fold.models.get(self._key)
        if recorded is not None and "text_ref" in recorded:
            return await self._again(recorded)
        await self._reserve(prompt, max_tokens)
        try:
            answer = await self._model.ask(prompt, schema=schema, max_tokens=max_tokens)
        except ModelFailed as failed:
            await self._session.record("model", body={"key": self._key, "failed": failed.code, "prompt": prompt.sha256})
            raise
        reached("model.answered")
        output, carried = await self._session.store(answer.text)
        body = {
            "key": self._key,
            "text_ref": output.output_ref,
            "finish_reason": answer.finish_reason,
            "refusal": answer.refusal,
            "model": answer.model,
            "prompt": prompt.sha256,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "elapsed_s": round(answer.elapsed_s, 3),
        }
        await self._session.record("model", body=body, artifact=carried, wait=True)
        return answer

    async def _reserve(self, prompt: Rendered, max_tokens: int | None) -> None:
        """What the call may cost counts as spent from here on, until its outcome says what it did cost (rule 10)."""
        body = {
            "key": self._key,
            "prompt": prompt.sha256,
            "prompt_tokens": estimated(prompt.rules + prompt.task),
            "completion_tokens": max_tokens or self._model.settings.max_tokens or ANSWER_TOKENS,
        }
        await self._session.record("reservation", body=body, wait=True)

    async def _again(self, recorded: Mapping[str, JSON]) -> ModelAnswer:
        return ModelAnswer(
            text=await self._session.read(recorded["text_ref"]),
            finish_reason=recorded["finish_reason"],
            refusal=recorded["refusal"],
            prompt_tokens=recorded["prompt_tokens"],
            completion_tokens=recorded["completion_tokens"],
            model=recorded["model"],
            elapsed_s=recorded["elapsed_s"],
        )
