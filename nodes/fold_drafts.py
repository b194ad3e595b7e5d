"""Rows that say what became of a draft of a plan: used or refused, by whom it was written, what was wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodes.fold import RunFold

Body = Mapping[str, Any]


def draft(self: RunFold, _: str, __: int, body: Body) -> None:
    """A draft was judged."""
    self.drafts.setdefault(body["name"], dict(body))


def revision(self: RunFold, body: Body) -> None:
    """A draft has become a revision. Where there is no row of the draft (0.1.0), the plan's own says what it can."""
    number = body["plan"]["revision"]
    if all(each["revision"] != number for each in self.drafts.values() if each["valid"]):
        self.drafts[f"revision:{number}"] = {
            "name": f"revision:{number}",
            "revision": number,
            "valid": True,
            "purpose": body["purpose"],
            "source": body["plan"]["source"],
            "template": body["plan"].get("template"),
            **{name: body.get(name) for name in ("model", "mode", "prompt_sha256")},
            "repaired": body.get("repaired", False),
        }
