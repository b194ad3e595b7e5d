"""execute: runs every step that may run, each as soon as it may, until a decision is needed or nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.state import AgentState

if TYPE_CHECKING:
    from nodes.session import Session


async def execute(state: AgentState, session: Session) -> dict[str, Any]:
    """What is still in flight when this returns belongs to the run; nothing is awaited that no decision needs."""
    if session.fold.plan is not None:  # else a person has said what becomes of a goal that had none
        await session.scheduling().drive()
    return {}
