"""The planner's answer as it comes in: which steps of it may be read for already."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nodes.model_stream import LISTENER, Arrived
from nodes.plan_form import PlanForm
from nodes.private_prompts import heard
from plans.drafting import drafted
from plans.faults import errors_among
from plans.json_text import NotJSON, strict_json
from plans.lint import build_plan, lint
from plans.plan import PlanDraft, Step, highest_risk
from plans.step_stream import StepStream
from plans.values import JSON
from tools.person import asks_user
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session

MOST_STEPS = 20
"""Steps from the beginning of a plan that are looked at: each look judges all of them."""


@contextmanager
def reading_ahead(session: Session, offered: Iterable[Tool]) -> Iterator[None]:
    """While a first plan is asked for within this, begin the reads at its beginning; where that is switched on, and
    nobody is to look at the plan first."""
    if not session.engine.options.eager or session.fold.plan is not None or session.head.review != "none":
        yield
        return
    token = LISTENER.set(Ahead(session, offered).hear)
    try:
        yield
    finally:
        LISTENER.reset(token)


class Ahead:
    """Hears one question's answers, and begins what it may."""

    def __init__(self, session: Session, offered: Iterable[Tool]) -> None:
        self._session = session
        self._offered = {tool.name: tool for tool in offered}
        self._form = PlanForm(self._offered.values())
        self._room = asyncio.Semaphore(session.head.limits.concurrency)
        self._answer: Arrived | None = None

    def hear(self, answer: Arrived) -> None:
        """More of an answer has come. One that broke off is asked for anew, and is another one then."""
        if answer is not self._answer:
            self._answer, self._stream = answer, StepStream()
            self._steps: list[JSON] = []
            self._heard = 0
        text = answer.only_text
        if text is None or self._stream.lost or self._session.cancelled:
            return
        closed = self._stream.feed(text[self._heard :])
        self._heard = len(text)
        for step in closed:
            self._closed(step, restored=answer.mode != "text")

    def _closed(self, text: str, *, restored: bool) -> None:
        try:
            self._steps.append(strict_json(heard(text)))
        except NotJSON:
            self._stream.lost = True
        if self._stream.lost or len(self._steps) > MOST_STEPS:
            return
        prefix: JSON = {"goal": self._session.head.goal, "steps": [*self._steps]}
        reading = drafted(prefix, form=self._form.restored if restored else None)
        if reading.draft is not None and not reading.repaired:
            self._begin(reading.draft)

    def _begin(self, draft: PlanDraft) -> None:
        """Begin what of a valid prefix may; later steps cannot make an earlier one another."""
        session, registry = self._session, self._session.engine.registry
        inputs = tuple(session.head.input_values())
        if errors_among(lint(draft, registry, inputs=inputs, limits=session.head.limits)):
            return
        plan = build_plan(draft, registry, plan_id="early", revision=1, source="model")
        for step in plan.steps:
            begun = session.early.steps.get(step.id)
            if begun is not None and begun != step:
                session.early.drop_step(step.id)
                begun = None
            if begun is None and self._may_begin(step):
                session.early.begin(session, step, self._room)

    def _may_begin(self, step: Step) -> bool:
        tool = self._offered.get(step.tool or "")
        asks = step.require_approval or step.when is not None or step.requires is not None or step.for_each is not None
        return (
            tool is not None
            and tool.effect == "read"
            and not asks_user(tool)
            and not asks
            and highest_risk(step.risk, tool.risk) != "high"
            and all(name in self._session.early.steps for name in step.depends_on)
        )
