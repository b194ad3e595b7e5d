"""Rows that say what a run has spent: questions to models, and time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodes.fold import RunFold

Body = Mapping[str, Any]

_RESERVED = ("prompt_tokens", "completion_tokens", "cost")
_SPENT = (*_RESERVED, "estimated_tokens", "model_requests")


def reservation(self: RunFold, _: str, __: int, body: Body) -> None:
    """What a question may cost counts as spent until its outcome is known; where none follows it stays so."""
    spent = {name: body.get(name, 0) for name in _RESERVED}
    self.reserved[body["key"]] = spent
    self.usage = self.usage.plus(model_calls=1, **spent)


def model(self: RunFold, _: str, __: int, body: Body) -> None:
    """What a question has given, and what it did cost in the place of what was reserved for it."""
    before = self.models.get(body["key"], {})  # a question can be asked again, shorter
    self.models[body["key"]] = {**body, **{name: body.get(name, 0) + before.get(name, 0) for name in _SPENT}}
    reserved = self.reserved.pop(body["key"], None)
    spent = {name: body.get(name, 0) for name in _SPENT}
    if reserved is None:  # of a journal's first version
        self.usage = self.usage.plus(model_calls=1, **spent)
    else:
        self.usage = self.usage.plus(**{name: spent[name] - reserved.get(name, 0) for name in spent})


def wall(self: RunFold, _: str, __: int, body: Body) -> None:
    """How long the run has taken, in seconds of its drives."""
    self.usage = self.usage.model_copy(update={"wall_s": body["wall_s"]})
