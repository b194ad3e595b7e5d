"""A run's thread as LangGraph takes it: what begins it, what goes on with it, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langgraph.types import Command, Interrupt, StateSnapshot

from plans.errors import Unreadable

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from nodes.state import AgentInput


def request_of(record: RunRecord) -> AgentInput:
    """What begins a run."""
    return {"goal": record.goal, "request_id": record.request_id}


def going_on_from(interrupts: Sequence[Interrupt]) -> Command[Any] | None:
    """What lets LangGraph go on from its last checkpoint; what was answered is read from the table, not from here."""
    if not all(isinstance(each, Interrupt) for each in interrupts):
        raise Unreadable("the checkpoint of this thread holds a question that no Surestep has written")
    return Command(resume={each.id: {} for each in interrupts}) if interrupts else None


def place_of(state: StateSnapshot) -> tuple[Any, ...]:
    """Where a thread stands: its newest checkpoint, and what was written onto it since."""
    return state.config["configurable"].get("checkpoint_id"), state.next, tuple(each.id for each in state.interrupts)


def config_of(record: RunRecord) -> Any:
    """The thread of a run, as it is now."""
    return {"configurable": {"thread_id": record.thread_id}}
