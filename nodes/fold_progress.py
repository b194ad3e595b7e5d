"""What a run has learned, what it has tried in vain, and how often it has gone in a circle. Pure.

A word from outside (an instruction, inputs that have changed) makes everything worth another try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plans.sameness import step_names

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from plans.plan import Step


@dataclass(slots=True)
class Progress:
    """`failed` are steps that have failed and were replaced, by what they do (`plans/sameness.py`), with what came of
    them; `drafts`, by what they would do, the names of drafts that were used or refused; `gone` counts steps that have
    begun and that no revision has any more.

    `results` holds what each call has given last, `revisions` in which revision it was made last, and `repeats` in how
    many later revisions it has given the same again, since anything new was learned.
    """

    failed: dict[str, str] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)
    gone: int = 0
    results: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)

    def times(self, call: str, revision: int) -> int:
        """How often a call that a step of this revision is about to make has given the same, with nothing new in
        between. What one plan does more than once on purpose is no repetition."""
        known = self.revisions.get(call)
        return 0 if known is None or known >= revision else self.repeats[call] + 1


def learned(self: RunFold, body: Mapping[str, Any]) -> None:
    """A call has given a result. A model that words the same answer anew has told nothing new."""
    if (call := body.get("call")) is None:
        return
    progress, revision = self.progress, self.plan.revision if self.plan else 0
    result, before = body["output"]["output_ref"], progress.results.get(call)
    if before is None or (before != result and not call.startswith("llm|")):
        progress.repeats.clear()
    elif progress.revisions[call] < revision:
        progress.repeats[call] += 1
    progress.results[call], progress.revisions[call] = result, revision


def replaced(self: RunFold, before: Sequence[Step], changed: Collection[str]) -> None:
    """A new revision has other steps in the place of these of the one before, or none: those that failed were tried in
    vain."""
    runs = {step_id: run for step_id in changed if (run := self.steps.get(step_id)) is not None and run.attempt > 0}
    self.progress.gone += len(runs)
    failed = {
        step_id: run.failure.message
        for step_id, run in runs.items()
        if run.failure is not None and run.failure.class_ not in ("limit", "policy")
    }
    if failed:
        names = step_names(before)
        self.progress.failed.update({names[step_id]: f"{step_id}: {why}" for step_id, why in failed.items()})


def drafted(self: RunFold, body: Mapping[str, Any]) -> None:
    """A draft was used or refused."""
    if (signature := body.get("signature")) is not None:
        self.progress.drafts.setdefault(signature, body["name"])


def anew(self: RunFold) -> None:
    """The world is another one: what was in vain may not be so now. What has been counted stays counted."""
    self.progress = Progress(gone=self.progress.gone)
