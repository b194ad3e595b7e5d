"""What a caller gets of how a run's plan has changed: each revision after the first, with its difference."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from nodes.fold import RunFold
from nodes.fold_drafts import Revised


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanChange(_Frozen):
    """What a revision has made of one step; of the plan's answer where `step` is None. `fields` are, by name, how each
    was and is; `line` says it for people."""

    step: str | None
    how: Literal["added", "removed", "changed"]
    line: str
    fields: dict[str, tuple[Any, Any]]


class Revision(_Frozen):
    """One revision of the plan after the first: who has written it, for what, why, and what it has changed."""

    revision: int
    source: str
    purpose: str
    why: str
    changes: tuple[PlanChange, ...]


def revisions_of(fold: RunFold) -> tuple[Revision, ...]:
    """Every revision of a run's plan after the first, in their order."""
    return tuple(_revision(each) for each in fold.revisions)


def _revision(revised: Revised) -> Revision:
    said = {name: getattr(revised, name) for name in ("revision", "source", "purpose", "why")}
    changed = [
        PlanChange(step=each.step, how=each.how, line=each.line, fields=dict(each.fields)) for each in revised.changes
    ]
    return Revision(**said, changes=tuple(changed))
