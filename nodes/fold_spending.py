"""Rows that say what a run has spent, which limit has stopped it, and that it goes on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plans.caps import Hit
from plans.failure import CODES
from plans.limits import Usage

if TYPE_CHECKING:
    from nodes.fold import RunFold

Body = Mapping[str, Any]

_RESERVED = ("prompt_tokens", "completion_tokens", "cost")
_SPENT = (*_RESERVED, "estimated_tokens", "model_requests")


def early(self: RunFold, _: str, __: int, ___: Body) -> None:
    """A read that begins while the plan is still written: counted, whatever becomes of it."""
    self.usage = self.usage.plus(attempts=1)


def reservation(self: RunFold, _: str, __: int, body: Body) -> None:
    """What a question may cost counts as spent until its outcome is known; where none follows it stays so."""
    spent = {name: body.get(name, 0) for name in _RESERVED}
    if (lost := self.reserved.get(body["key"])) is not None:  # whoever asked before has died
        self.models[body["key"]] = _added(self.models.get(body["key"], {}), lost)
    self.reserved[body["key"]] = spent
    self.usage = self.usage.plus(model_calls=1, **spent)


def model(self: RunFold, _: str, __: int, body: Body) -> None:
    """What a question has given, and what it did cost in the place of what was reserved for it."""
    self.models[body["key"]] = _added(body, self.models.get(body["key"], {}))  # it can be asked again, shorter
    reserved = self.reserved.pop(body["key"], None)
    spent = {name: body.get(name, 0) for name in _SPENT}
    if reserved is None:  # of a journal's first version
        self.usage = self.usage.plus(model_calls=1, **spent)
    else:
        self.usage = self.usage.plus(**{name: spent[name] - reserved.get(name, 0) for name in spent})


def _added(body: Body, before: Body) -> dict[str, Any]:
    """What is known of a question, with all that it has cost."""
    return {**body, **{name: body.get(name, 0) + before.get(name, 0) for name in _SPENT}}


def settled_usage(self: RunFold) -> Usage:
    """What the run has spent for certain: without what is reserved for questions whose end is not known."""
    open_bills = {name: sum(each[name] for each in self.reserved.values()) for name in _RESERVED}
    return self.usage.plus(**{name: -amount for name, amount in open_bills.items()})


def limit(self: RunFold, _: str, __: int, body: Body) -> None:
    """A limit that was in the way. It stops the run until somebody lets it go on."""
    hit = Hit.model_validate(body["hit"])
    self.hits[hit.limit] = hit


def reopened(self: RunFold, _: str, __: int, body: Body) -> None:
    """A run that a limit has stopped goes on, perhaps under a higher one: what the limit kept from starting may ask
    again, and what could not be mended for its sake is decided about again."""
    self.finished, self.hits = None, {}
    for unit, run in self.steps.items():
        if run.failure is None:
            continue
        if run.status == "failed" and run.failure.class_ == "limit":
            run.exhausted, run.failure, run.verdict = False, None, None
            run.moved("pending")
            self.undecided.pop(unit, None)
        elif run.verdict is not None and run.verdict.verdict == "finish" and _by_limit(run.verdict.code):
            run.exhausted, run.verdict = False, None
            self.undecided[unit] = None
    self.queue = [verdict for verdict in self.queue if verdict.verdict != "finish" or not _by_limit(verdict.code)]
    if self.head and (limits := body.get("limits")):
        self.head = self.head.model_copy(update={"limits": self.head.limits.model_validate(limits)})


def _by_limit(code: str) -> bool:
    return CODES[code].class_ == "limit"


def wall(self: RunFold, _: str, __: int, body: Body) -> None:
    """How long the run has taken, in seconds of its drives."""
    self.usage = self.usage.model_copy(update={"wall_s": body["wall_s"]})
