"""How one tool stands now: what is declared, what was changed about it and by whom, and whether it is called at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from checkpoints.tool_settings import ToolChange
from plans.shadowing import Agreement
from plans.values import JSON
from tools.breaker_now import BreakerNow, breaker_now
from tools.settings import ANSWERED_BY, Flat, ToolNow, flattened, with_changes
from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """One setting that is not as declared: what it was declared as, what it is, and who has changed it when."""

    declared: JSON
    now: JSON
    by: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the database tells of one tool: its stored changes, all changes ever made (the newest first), its breaker;
    the candidate that shadows it; and if it is one itself, how it agrees, and whether it answers for the other."""

    stored: Mapping[str, JSON]
    history: Sequence[ToolChange]
    breaker: dict[str, JSON] | None = None
    candidate: str | None = None
    agreement: Agreement = field(default_factory=Agreement)
    answers: bool = False


@dataclass(frozen=True, slots=True)
class ToolStanding:
    """A declared tool, what is true of it now, its breaker, and as a shadow how often it has agreed."""

    tool: Tool
    now: ToolNow
    breaker: BreakerNow
    changed: Mapping[str, ChangedSetting] = field(default_factory=dict)
    candidate: str | None = None
    agreement: Agreement = field(default_factory=Agreement)
    answers: bool = False

    @property
    def lost_answerer(self) -> bool:
        """Whether a promotion is stored of a tool that is not the candidate here: the tool answers itself."""
        return self.now.answered_by not in (None, self.candidate)

    @property
    def state(self) -> str:
        """In a word or two, what is special about it; empty where nothing is."""
        said = []
        if self.tool.spec.shadow_of is not None:
            said.append(self._as_shadow())
        if not self.now.tool.enabled:
            said.append("disabled")
        if self.lost_answerer:
            said.append(f"promotion of {self.now.answered_by} is ignored: it is not its candidate here")
        elif self.now.answered_by is not None:
            said.append(f"answered by {self.now.answered_by}")
        if self.breaker.status != "closed":
            said.append(_breaker_text(self.breaker))
        if any(name not in ("enabled", ANSWERED_BY) for name in self.changed):
            said.append("changed")
        if self.now.ignored:
            said.append("a stored setting is ignored")
        return ", ".join(said)

    def _as_shadow(self) -> str:
        role = "answers for" if self.answers else "shadow of"
        found = self.agreement
        told = (
            f"{found.agreed} of {found.calls} agreed, {found.in_a_row} in a row" if found.calls else "not compared yet"
        )
        return f"{role} {self.tool.spec.shadow_of}: {told}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs; instants in ISO 8601."""
        return {
            "state": self.state,
            "enabled": self.now.tool.enabled,
            "answered_by": None if self.lost_answerer else self.now.answered_by,
            "candidate": self.candidate,
            "shadow": self._shadow_json(),
            "changed": {
                name: {
                    "declared": each.declared,
                    "now": each.now,
                    "by": each.by,
                    "at": each.at.isoformat() if each.at else None,
                }
                for name, each in self.changed.items()
            },
            "ignored": dict(self.now.ignored or {}),
            "breaker": {
                "status": self.breaker.status,
                "until": _instant(self.breaker.until).isoformat() if self.breaker.until is not None else None,
                "last_calls": ["success" if each else "failure" for each in self.breaker.calls],
            },
        }

    def _shadow_json(self) -> dict[str, Any] | None:
        if self.tool.spec.shadow_of is None:
            return None
        counts = {name: getattr(self.agreement, name) for name in ("agreed", "differed", "failed", "in_a_row")}
        return {"of": self.tool.spec.shadow_of, "answers": self.answers, **counts}


def standing_of(tool: Tool, told: Told, now: float) -> ToolStanding:
    """How a tool stands at this wall time, by what is stored about it."""
    current = with_changes(tool, told.stored)
    changes = [change for change in told.history if change.tool == tool.name]
    changed = {}
    for name, value in flattened(told.stored).items():
        by = next((c for c in changes if _value(c.before, name) != _value(c.after, name)), None)
        who = (by.changed_by, by.changed_at) if by else (None, None)
        changed[name] = ChangedSetting(declared_value(tool, name), value, *who)
    breaker = breaker_now(told.breaker, current.tool.spec, now)
    return ToolStanding(tool, current, breaker, changed, told.candidate, told.agreement, told.answers)


def declared_value(tool: Tool, name: str) -> JSON:
    """What a tool declares for a setting; None for one of a group that it declares none of, and for who answers it."""
    if name == "enabled":
        return tool.enabled
    group, _, part = name.partition(".")
    found = getattr(tool.spec, group, None)
    value = getattr(found, part, None) if part else found
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _value(stored: Mapping[str, JSON], name: str) -> tuple[bool, JSON]:
    flat: Flat = flattened(stored)
    return name in flat, flat.get(name)


def _breaker_text(breaker: BreakerNow) -> str:
    if breaker.status == "half_open":
        return "breaker half-open: one call probes"
    if breaker.until is None:
        return "breaker open: the next call probes"
    return f"breaker open until {_instant(breaker.until).astimezone():%H:%M:%S}"


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
