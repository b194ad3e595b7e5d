"""The inbox of a thread: what a caller has just sent, and whether it begins a run, instructs one, or lets it go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import HumanMessage

from checkpoints.runs import OPEN
from plans.limits import Usage
from plans.values import sha256_of, unclean

Entry = Literal["new_goal", "instruction", "continue"]


def entry(state: Mapping[str, Any]) -> Entry:
    """Where a new invocation of the graph enters it."""
    if state.get("run") is None or state.get("status") not in OPEN:
        return "new_goal"
    return "instruction" if new_instruction(state) is not None else "continue"


def goal_text(state: Mapping[str, Any]) -> str | None:
    """The goal in the inbox: `goal` itself, else the human messages that have not been taken yet, one a line."""
    if goal := state.get("goal"):
        return str(goal)
    new = _unseen(state)
    return "\n".join(map(message_text, new)) if new else None


_NOT_NAMING = {"model_requests", "estimated_tokens"}
"""Fields of Usage that came later than ids of instructions did; an id that is recorded stays what it is."""


def instruction_id(state: Mapping[str, Any], text: str) -> str:
    """Names one sending of an instruction: by its message or its request, else by when in the run it came."""
    message = _last_human(state)
    if not state.get("goal") and message is not None and (name := name_of(message)):
        return name
    usage = (state.get("usage") or Usage()).model_dump(exclude=_NOT_NAMING)
    return sha256_of([text, state.get("request_id"), usage])[:24]


new_instruction = goal_text
"""While a run is open, the same places hold an instruction."""


def message_text(message: HumanMessage) -> str:
    """The text of a message; what is not text in it is left out."""
    return str(message.text)


def taken(state: Mapping[str, Any]) -> dict[str, Any]:
    """The update that empties the inbox."""
    message = _last_human(state)
    empty: dict[str, Any] = {"goal": None, "inputs": None, "plan": None, "request_id": None}
    if message is not None:
        empty["seen_message"] = name_of(message)
    return empty


def name_of(message: HumanMessage) -> str | None:
    """The id of a message as it is stored; a client chose it, and may have written what cannot be."""
    return message.id if message.id is None or not any(unclean(message.id)) else sha256_of(message.id)


def _unseen(state: Mapping[str, Any]) -> list[HumanMessage]:
    """The human messages behind the last one that was taken; of a thread where that is gone, the last one."""
    humans = [message for message in state.get("messages") or [] if isinstance(message, HumanMessage)]
    seen = [place for place, message in enumerate(humans) if name_of(message) == state.get("seen_message")]
    return humans[seen[-1] + 1 :] if seen else humans[-1:]


def _last_human(state: Mapping[str, Any]) -> HumanMessage | None:
    messages = state.get("messages") or []
    return next((m for m in reversed(messages) if isinstance(m, HumanMessage)), None)
