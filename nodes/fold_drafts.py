"""Rows about plans as such: what became of each draft, by whom it was written, in which version it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodes.fold_progress import drafted
from nodes.state import TemplateUse
from plans.revisions import Change, changes

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from plans.plan import Plan, Source

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Revised:
    """One revision of the plan after the first: who wrote it, for what (`purpose`), `why`, and what it has changed."""

    revision: int
    source: Source
    purpose: str
    why: str
    changes: tuple[Change, ...]


def draft(self: RunFold, _: str, __: int, body: Body) -> None:
    """A draft was judged."""
    self.drafts.setdefault(body["name"], dict(body))
    drafted(self, body)


def older_form(_: RunFold, __: str, ___: int, ____: Body) -> None:
    """A worker that does not know the version a plan was written in has read it in an older one: that is counted over
    all runs, and changes nothing in this one."""


def revision(self: RunFold, before: Plan | None, plan: Plan, body: Body) -> None:
    """A draft has become a revision. Where there is no row of the draft (0.1.0), the plan's own says what it can."""
    number = plan.revision
    _looked_at(self, plan, body)
    if before is not None:
        why = next((verdict.reason for verdict in self.queue if verdict.key in body.get("answers", ())), "")
        self.revisions.append(Revised(number, plan.source, body["purpose"], why, changes(before, plan)))
    if all(each["revision"] != number for each in self.drafts.values() if each["valid"]):
        self.drafts[f"revision:{number}"] = {
            "name": f"revision:{number}",
            "revision": number,
            "valid": True,
            "purpose": body["purpose"],
            "source": plan.source,
            "template": plan.template,
            **{name: body.get(name) for name in ("model", "mode", "prompt_sha256")},
            "repaired": body.get("repaired", False),
        }
    if (made_from := body.get("made_from")) is not None:
        self.made_from = TemplateUse.model_validate(made_from)


def _looked_at(self: RunFold, plan: Plan, body: Body) -> None:
    """Whether a person is to look at this revision first; one that a person has written needs no other's look."""
    self.in_review = plan.revision if body.get("review") else None
    self.reviewed = self.reviewed or self.rewritten is not None or bool(body.get("reviewed"))
