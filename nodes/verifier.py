"""One question to a model: does the rest of the plan still hold, now that these results are known?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.catalog import texts_cut
from nodes.judge import accepted
from nodes.models import Asks
from nodes.prompts import Rendered, bounded, load, quoted
from nodes.typed_summary import typed_summary
from plans.plan import StepDraft
from plans.values import JSON, printable

VERIFIER = load("verifier")
FORM: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"holds": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["holds", "reason"],
    "additionalProperties": False,
}
"""What an answer is, and nothing else is one."""
MAX_TOKENS = 1_000
"""Longest answer, in tokens: one sentence, after what a thinking model thinks."""
MAX_REASON = 300
"""Longest part of the reason that is kept, in characters."""
MAX_RESULTS = 8_000
"""Characters of JSON that all results together may have."""
MAX_TEXT = 300
"""Longest text of a step that is shown, in characters."""
MAX_STEPS = 40
"""Steps of a plan that are shown; of a longer one the first of those that are left."""
_SHOWN = ("title", "tool", "args", "instruction", "for_each", "when", "requires", "reason")


@dataclass(frozen=True, slots=True)
class Checked:
    """A result that the question is about: its step, its value, the JSON schema it follows if it has one, and what it
    was made by or from where that is not what was asked for."""

    step: StepDraft
    value: JSON
    schema: JSON = None
    degraded: str | None = None


async def still_holds(
    model: Asks,
    goal: str,
    checked: Sequence[Checked],
    remaining: Iterable[StepDraft],
    *,
    beginning: StepDraft | None = None,
) -> tuple[bool, str]:
    """Whether it does, and why. `beginning` is the step whose effect waits for the answer, where one does.

    Raises ModelFailed where there was no answer, and AnswerUnusable for one that is not of the form.
    """
    prompt = verifier_prompt(goal, checked, remaining, beginning=beginning)
    answer = accepted(await model.ask(prompt, schema=FORM, max_tokens=MAX_TOKENS), FORM)
    reason = printable(" ".join(answer["reason"].split()), MAX_REASON)
    return answer["holds"], reason or "the model gives no reason"


def verifier_prompt(
    goal: str, checked: Sequence[Checked], remaining: Iterable[StepDraft], *, beginning: StepDraft | None = None
) -> Rendered:
    """The prompt of the question: results by their typed summaries only, and everything quoted."""
    results = {each.step.id: _result(each) for each in checked}
    holes = {
        "goal": quoted(goal),
        "results": quoted(bounded(results, MAX_RESULTS)),
        "remaining": quoted([_step(step) for step in list(remaining)[:MAX_STEPS]]),
    }
    if beginning is None:
        return VERIFIER.render(["task", "after"], holes)
    return VERIFIER.render(["task", "next"], holes | {"next": quoted(_step(beginning))})


def _result(checked: Checked) -> JSON:
    shown: dict[str, Any] = {**_step(checked.step), "result": typed_summary(checked.value, checked.schema)}
    return shown if checked.degraded is None else {**shown, "degraded": checked.degraded}


def _step(step: StepDraft) -> dict[str, JSON]:
    """A step as its author wrote it, without what is empty, and long texts cut."""
    written = {name: texts_cut(value, MAX_TEXT) for name in _SHOWN if (value := getattr(step, name))}
    return {"id": step.id, **written}
