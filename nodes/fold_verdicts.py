"""Rows that decide: verdicts on failures, what answers them, and what people have said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodes.fold_progress import anew
from nodes.fold_settling import settled
from nodes.state import Verdict
from nodes.step_run import base_id
from nodes.versions import read_draft, stored_draft

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from plans.plan import PlanDraft
    from plans.versions import PlanVersions

Body = Mapping[str, Any]


def verdict(self: RunFold, _: str, __: int, body: Body) -> None:
    """A verdict waits for its turn, unless it is one of those that take none. A second one on the same outcome takes
    the place of the first, whose repair has failed."""
    made = Verdict.model_validate(body["verdict"])
    self.queue = [queued for queued in self.queue if queued.key != made.key]
    _count_replans(self, made)
    if made.verdict in ("local_replan", "global_replan"):
        failure = self.run(made.step_id).failure if made.step_id else None
        self.planned_anew.append((failure and failure.cause) or made.code)
    self.simplified = self.simplified or made.degraded
    self.rounds += made.code == "ANSWERED"
    if made.code == "NEW_INSTRUCTION" and "instruction" in body:
        self.instructions[body["instruction"]] = made.reason
        anew(self)
    if made.step_id:
        _on_step(self, made)
    if made.verdict not in ("next", "retry", "ask"):
        self.queue.append(made)


def _on_step(self: RunFold, made: Verdict) -> None:
    run = self.run(made.step_id)
    run.verdict = made
    self.undecided.pop(made.step_id, None)
    if made.verdict == "retry":
        run.not_before = made.not_before
        if run.status == "running":
            run.resend = True
        else:
            run.moved("pending")
            _elements_again(self, made.step_id)
    elif made.verdict in ("next", "finish"):
        run.exhausted = True


def _elements_again(self: RunFold, step_id: str) -> None:
    """A `for_each` step that is tried again tries those of its elements again that have failed."""
    for child in self.children(step_id):
        run = self.steps.get(child)
        if run is not None and run.status == "failed":
            run.exhausted = False
            run.moved("pending")


def _count_replans(self: RunFold, made: Verdict) -> None:
    """Repairs are counted when they are decided, so that one that fails, or whose process dies, counts too."""
    if made.verdict == "local_replan":
        self.local_replans[base_id(made.step_id)] += 1
        self.usage = self.usage.plus(local_replans=1)
    new = all(queued.verdict != "global_replan" for queued in self.queue)
    if made.verdict == "global_replan" and made.counted and new:
        _count_global(self)


def _count_global(self: RunFold) -> None:
    self.global_replans += 1
    self.usage = self.usage.plus(global_replans=1)


def answer_verdicts(self: RunFold, changed: set[str], body: Body) -> None:
    """A revision answers the verdict that asked for it, and those about steps that are gone or new. One planned anew
    answers every wish to plan anew; where none was waiting, a mend of one step has become one, and counts."""
    answered = set(body.get("answers", ()))
    if body["purpose"] == "global":
        if all(queued.verdict != "global_replan" for queued in self.queue):
            _count_global(self)
        answered |= {queued.key for queued in self.queue if queued.verdict == "global_replan"}
    self.queue = [v for v in self.queue if v.key not in answered and base_id(v.step_id) not in changed]


def promises(on_exhausted: PlanDraft | None, versions: PlanVersions, *, critical: bool) -> dict[str, Any]:
    """What the row of a revision says of them; of a plan that says neither, nothing."""
    said: dict[str, Any] = {"critical": True} if critical else {}
    return said | ({"on_exhausted": stored_draft(on_exhausted, versions)} if on_exhausted is not None else {})


def promised(self: RunFold, body: Body) -> None:
    """What the template of a revision says of a run that cannot be mended; later revisions take nothing of it back."""
    if body.get("on_exhausted"):
        self.on_exhausted = read_draft(body["on_exhausted"], self.versions)
    self.critical = self.critical or bool(body.get("critical"))


def decision(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    """A person's word: about one action, about an effect in doubt, about the plan, or about a failed step."""
    if body["kind"] == "risk":
        self.decisions[body["action"]] = dict(body)
    self.asked.pop(body["approval_id"], None)
    self.answered.add(body["approval_id"])
    decided = body["decision"]
    if decided["type"] == "reject" and body["kind"] in ("risk", "clarification"):
        heard = body.get("revision", self.next_revision - 1)
        self.rejected |= dict.fromkeys((body["call"], body.get("means", body["call"])), heard)
    if decided["type"] == "edit":
        _edited(self, unit, body)
    elif body["kind"] == "review" and decided["type"] == "approve":
        self.in_review, self.reviewed = None, True
    if answer := body.get("answer"):
        _answered(self, unit, attempt, answer)
    if settlement := body.get("settlement"):
        settled(self, unit, attempt, settlement)
    if "verdict" in body:
        verdict(self, unit, attempt, body)


def _edited(self: RunFold, unit: str, body: Body) -> None:
    args = body["decision"]["args"]
    if body["kind"] in ("question", "review"):
        self.rewritten = {"plan": args, "asked": body["about"]}
    else:
        self.edits[unit] = {"tool": body["tool"], "args": args}


def _answered(self: RunFold, unit: str, attempt: int, body: Body) -> None:
    """The user has said what the step has asked: that is its result."""
    run = self.run(unit)
    run.attempt, run.failure, run.verdict = attempt + 1, None, None
    run.moved("running")
    run.gave(body)
    self.usage = self.usage.plus(steps=1)


def edit_dropped(self: RunFold, unit: str, _: int, __: Body) -> None:
    """What a person has changed is no revision, and is not tried again."""
    if unit in self.edits:
        del self.edits[unit]
    else:
        self.rewritten = None
