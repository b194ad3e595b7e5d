"""A model whose answers are in the journal: a question of a run is asked once, and what it cost counts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from checkpoints.crash_points import reached
from nodes.model_errors import ModelFailed, Spent
from nodes.model_settings import estimated
from nodes.models import Model, ModelAnswer
from nodes.stopping import stopped_by
from plans.caps import Bill, Hit, question_hit, time_hit
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.prompts import Rendered
    from nodes.session import Session

ANSWER_TOKENS = 2_000
"""Tokens reserved for an answer of which nobody has said how long it may be."""
LONGEST_ANSWER = 8_000
"""How long such an answer may become under a limit of tokens or cost, where so much is left."""


class LimitReached(ModelFailed):
    """The question is not put, or is broken off: a limit of the run is in its way. Its row is in the journal."""

    def __init__(self, hit: Hit) -> None:
        super().__init__(hit.message)
        self.code = hit.code  # type: ignore[misc]  # of the limit, not of the class


class JournaledModel:
    """One question, named by what it is for and in which revision (`plan:first:0::0`, `step:s3:1:…`), never by a
    counter or a prompt's text.

    Before it is asked, what it may cost is reserved: a question whose asker died counts as spent, and asked again it
    is reserved again. One that would be more than the run has left is not put.
    """

    def __init__(self, session: Session, model: Model, key: str) -> None:
        self._session = session
        self._model = model
        self._key = key

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The recorded answer; else the model's, recorded before anybody sees it. Raises ModelFailed, and LimitReached
        for what the run may not spend any more."""
        recorded = self._session.fold.models.get(self._key)
        if recorded is not None and "text_ref" in recorded:
            return await self._again(recorded)
        bill = self._bill(prompt, max_tokens)
        await self._within_limits(bill)
        with self._session.purse.out(self._key, bill):
            await self._reserve(prompt, bill)
            try:
                answer = await self._in_time(prompt, schema, bill.completion_tokens if self._is_capped else max_tokens)
            except LimitReached:  # what the question has cost nobody knows: its reservation stays
                raise
            except ModelFailed as failed:
                await self._record_failure(prompt, failed)
                raise
            return await self._recorded(prompt, answer)

    async def _recorded(self, prompt: Rendered, answer: ModelAnswer) -> ModelAnswer:
        reached("model.answered")
        output, carried = await self._session.results.store(answer.text)
        body = {
            "key": self._key,
            "text_ref": output.output_ref,
            "finish_reason": answer.finish_reason,
            "refusal": answer.refusal,
            "model": answer.model,
            "prompt": prompt.sha256,
            "mode": answer.mode,
            "calls": list(answer.calls),
            "answers": answer.answers,
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
            raw = self._session.engine.options.privacy.text(failed.raw).encode("utf-8", "replace")
            output, carried = await self._session.results.keep(raw, "text/plain")
            body["raw_ref"] = output.output_ref
        await self._session.record("model", body=body, artifact=carried)

    @property
    def _is_capped(self) -> bool:
        """Whether somebody has said what the run may spend: then an answer may not be longer than what was reserved."""
        limits = self._session.head.limits
        return limits.max_tokens is not None or limits.max_cost is not None

    def _bill(self, prompt: Rendered, max_tokens: int | None) -> Bill:
        """What the question may cost at most. Under a limit an answer of no stated length may be long if that fits."""
        asked = estimated(prompt.rules + prompt.task)
        stated = max_tokens or self._model.settings.max_tokens
        if stated is None and self._is_capped:
            long = self._billed(asked, LONGEST_ANSWER)
            if question_hit(self._session.head.limits, self._session.fold.usage, long) is None:
                return long
        return self._billed(asked, stated or ANSWER_TOKENS)

    def _billed(self, asked: int, answered: int) -> Bill:
        price = self._model.settings.price
        cost = price.of(asked, answered) if price else 0.0
        return Bill(prompt_tokens=asked, completion_tokens=answered, cost=cost)

    async def _within_limits(self, bill: Bill) -> None:
        """Nothing is awaited between the last look at what is left and the reservation."""
        session = self._session
        hit = time_hit(session.head.limits, session.elapsed_s())
        hit = hit or await session.purse.room_for(bill, session.head.limits, lambda: session.fold.usage)
        if hit is not None:
            await stopped_by(session, hit)
            raise LimitReached(hit)

    async def _in_time(
        self, prompt: Rendered, schema: Mapping[str, JSON] | None, max_tokens: int | None
    ) -> ModelAnswer:
        """The model's answer, if it comes while the run has time."""
        session, cap = self._session, self._session.head.limits.max_wall_s
        left_s = math.inf if cap is None else max(0.0, cap - session.elapsed_s())
        running = asyncio.timeout(left_s if left_s < self._model.settings.timeout_s else None)
        try:
            async with running:
                return await self._model.ask(prompt, schema=schema, max_tokens=max_tokens)
        except TimeoutError:
            hit = time_hit(session.head.limits, session.elapsed_s(), wait_s=1.0) if running.expired() else None
            if hit is None:
                raise
            await stopped_by(session, hit)
            raise LimitReached(hit) from None

    async def _reserve(self, prompt: Rendered, bill: Bill) -> None:
        """What the call may cost counts as spent from here on, until its outcome says what it did cost (rule 10)."""
        body = {"key": self._key, "prompt": prompt.sha256, **bill.model_dump()}
        await self._session.record("reservation", body=body, wait=True)

    async def _again(self, recorded: Mapping[str, JSON]) -> ModelAnswer:
        return ModelAnswer(
            text=await self._session.results.read(recorded["text_ref"]),
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
            answers=recorded.get("answers", 1),
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
