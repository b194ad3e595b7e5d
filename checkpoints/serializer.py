"""How state becomes bytes and back: only types that are named here come back, and an unknown one is an error."""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from plans.errors import Unreadable, VersionTooNew

ALLOWED: tuple[tuple[str, str], ...] = (
    ("nodes.state", "Drafted"),
    ("nodes.state", "Forked"),
    ("nodes.state", "InputFile"),
    ("nodes.state", "Planning"),
    ("nodes.state", "RunHead"),
    ("nodes.state", "TemplateUse"),
    ("nodes.state", "Verdict"),
    ("plans.decisions", "ApprovalRequest"),
    ("plans.failure", "Failure"),
    ("plans.faults", "Fault"),
    ("plans.limits", "Limits"),
    ("plans.limits", "Usage"),
    ("plans.plan", "Plan"),
    ("plans.plan", "PlanDraft"),
)
"""Module and name of each type of ours that may stand in a checkpoint. They are in stored bytes: none ever moves."""
WRITTEN = frozenset({"null", "bytes", "bytearray", "msgpack"})
"""The forms in which state is stored. LangGraph would read others too: JSON that names what is to be made of it."""

_refused: ContextVar[list[str] | None] = ContextVar("refused", default=None)


def _note(event: SerdeEvent) -> None:
    names = _refused.get()
    if names is not None and event["kind"].endswith("_blocked"):
        names.append(f"{event['module']}.{event['name']}")


register_serde_event_listener(_note)


class StateSerializer(JsonPlusSerializer):
    """LangGraph's serializer with our types and its own; whatever else stands in the bytes is not made.

    LangGraph would hand back a plain dict in place of a type it may not make. State with a hole in it would go on
    running, so this raises VersionTooNew: most likely a newer Surestep stored it. Bytes that no Surestep has written
    are Unreadable.
    """

    def __init__(self, allowed: Collection[tuple[str, str]] = ALLOWED) -> None:
        super().__init__(allowed_msgpack_modules=tuple(allowed))

    def loads_typed(self, typed: tuple[str, bytes]) -> Any:
        """The value in the bytes."""
        if typed[0] not in WRITTEN:
            raise Unreadable(
                f"a checkpoint holds a value in the form {typed[0]!r}, which Surestep neither writes nor reads"
            )
        refused: list[str] = []
        token = _refused.set(refused)
        try:
            value = super().loads_typed(typed)
        except ValueError as error:
            raise Unreadable(
                f"a checkpoint holds bytes that are no value ({error}); they were cut or changed"
            ) from error
        finally:
            _refused.reset(token)
        if refused:
            raise VersionTooNew(
                f"a checkpoint holds {', '.join(sorted(set(refused)))}, which this Surestep does not know; "
                "install the version that stored it"
            )
        return value
