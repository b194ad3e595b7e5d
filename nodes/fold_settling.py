"""The rows that end a doubt about an effect, and those of answers that came late, in the picture of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plans.failure import Failure

if TYPE_CHECKING:
    from nodes.fold import RunFold

Body = Mapping[str, Any]


def settled(self: RunFold, unit: str, _: int, body: Body) -> None:
    """Somebody, or the tool itself, has said what became of an effect in doubt."""
    run = self.run(unit)
    run.failure, run.verdict, run.acted = None, None, True
    self.undecided.pop(unit, None)
    if body["how"] == "run":
        run.resend = True
        return
    run.in_doubt = None
    if body["how"] == "skip":
        run.skipped_because = body["why"]
        run.moved("skipped")
        return
    run.gave(body)
    self.usage = self.usage.plus(steps=1)


def effect_after_failure(self: RunFold, unit: str, intent: Body, *, happened: bool) -> None:
    """A failed step run has not had its effect, or it has and is no success all the same: then whoever approved it
    has not approved that it happens again."""
    effect = intent["effect_key"]
    if happened:
        self.decisions.pop(f"{unit}|{intent['call']}", None)
        return
    left = tuple(other for other in self.effects.get(effect, ()) if other != unit)
    if left:
        self.effects[effect] = left
    else:
        self.effects.pop(effect, None)


def late(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    """An answer that came after its call was given up. One that `settles` is taken as if it had come in time."""
    self.late.setdefault(unit, []).append({**body, "attempt": attempt})
    for approval_id in body.get("approval_ids", ()):
        self.asked.pop(approval_id, None)
    if not body.get("settles"):
        return
    run = self.run(unit)
    run.resend = False
    if "output" in body:
        settled(self, unit, attempt, {**body, "how": "happened"})
        return
    effect_after_failure(self, unit, run.in_doubt or {}, happened=False)
    run.in_doubt = run.verdict = run.not_before = None
    run.failure = Failure.model_validate(body["failure"])
    self.undecided[unit] = None
    run.failed()
