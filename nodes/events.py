"""What a run says while it goes on: one small value per event, sent over LangGraph's custom stream."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

EventKind = Literal["plan", "step", "progress", "approval", "ticket", "notice"]


class Event(BaseModel):
    """One thing that happened. `elapsed_s` in seconds, `fraction` between 0 and 1, `plan` the stored plan as JSON,
    `answered_by` the tool that answered where it is the promoted candidate of `tool`; a ticket's `status` is its id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: EventKind
    step_id: str | None = None
    title: str | None = None
    tool: str | None = None
    status: str | None = None
    attempt: int = 0
    elapsed_s: float | None = None
    fraction: float | None = None
    message: str | None = None
    plan: dict[str, Any] | None = None
    answered_by: str | None = None
