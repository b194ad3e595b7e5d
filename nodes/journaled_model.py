"""A model whose answers are in the journal: a question of a run is asked once, and what it cost counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from checkpoints.crash_points import reached
from nodes.model_errors import ModelFailed, Spent
from nodes.model_settings import estimated
from nodes.models import Model, ModelAnswer
from plans.values import JSON
from tools.redaction import redacted

if TYPE_CHECKING:
    from nodes.prompts import Rendered
    from nodes.session import Session

ANSWER_TOKENS = 2_000
"""Tokens reserved for an answer of which nobody has said how long it may be."""


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
            await self._record_failure(prompt, failed)
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
            "mode": answer.mode,
            "calls": list(answer.calls),
            "elapsed_s": round(answer.elapsed_s, 3),
            **_spent(answer.spent),
        }
        await self._session.record("model", body=body, artifact=carried, wait=True)
        return answer

    async def _record_failure(self, prompt: Rendered, failed: ModelFailed) -> None:
        """What failed and what it has cost; its raw text becomes an artifact and stands nowhere else."""
        body = {
            "key": self._key,
            "failed": failed.code,
            "way": type(failed).__name__,
            "prompt": prompt.sha256,
            **_spent(failed.spent),
        }
        carried = None
        if failed.raw:
            raw = redacted(failed.raw).encode("utf-8", "replace")
            output, carried = await self._session.keep(raw, "text/plain")
            body["raw_ref"] = output.output_ref
        await self._session.record("model", body=body, artifact=carried)

    async def _reserve(self, prompt: Rendered, max_tokens: int | None) -> None:
        """What the call may cost counts as spent from here on, until its outcome says what it did cost (rule 10)."""
        settings = self._model.settings
        asked = estimated(prompt.rules + prompt.task)
        answered = max_tokens or settings.max_tokens or ANSWER_TOKENS
        body = {
            "key": self._key,
            "prompt": prompt.sha256,
            "prompt_tokens": asked,
            "completion_tokens": answered,
            "cost": settings.price.of(asked, answered) if settings.price else 0.0,
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
            requests=recorded.get("model_requests", 1),
            estimated_tokens=recorded.get("estimated_tokens", 0),
            cost=recorded.get("cost", 0.0),
            mode=recorded.get("mode", "text"),
            calls=tuple(recorded.get("calls", ())),
        )


def _spent(spent: Spent) -> dict[str, JSON]:
    """What a question has cost, in the names of a run's usage."""
    return {
        "model_requests": spent.requests,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "estimated_tokens": spent.estimated_tokens,
        "cost": spent.cost,
    }
