"""What is kept of every draft of a plan, used or refused: who wrote it, what it was told, what was wrong with it.

The draft's own text is an artifact: that of the answer to its question (`nodes/journaled_model.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plans.faults import Fault
from plans.sameness import draft_name
from plans.values import sha256_of
from tools.redaction import redacted

if TYPE_CHECKING:
    from nodes.session import Session
    from nodes.state import Drafted, Planning

MAX_FAULTS = 10
"""Faults of a draft that stand in its row; how many more there were is said. The row stays so small that it is never
stored apart, where no query would find it."""
MAX_MESSAGE = 160
"""Longest part of a fault's message in the row, in characters."""


async def keep_draft(session: Session, drafted: Drafted, planning: Planning, errors: Sequence[Fault]) -> None:
    """Write down what became of a draft, once: `validate` entered again after a crash finds it written."""
    body = drafted_row(drafted, planning, errors, session.fold.next_revision)
    if body["name"] not in session.fold.drafts:
        await session.record("draft", body=body)


def drafted_row(drafted: Drafted, planning: Planning, errors: Sequence[Fault], revision: int) -> dict[str, Any]:
    """The row of a draft. `revision` is the number of the plan that it is, or would have been; `try` counts from 0."""
    return {
        "name": drafted_name(drafted, revision),
        "signature": draft_name(drafted.draft) if drafted.draft else None,
        "question": drafted.question,
        "revision": revision,
        "valid": drafted.draft is not None and not errors,
        "purpose": planning.purpose,
        "trigger": planning.trigger,
        "try": planning.tries,
        "source": drafted.source,
        "template": drafted.template,
        "template_sha256": drafted.made_from.sha256 if drafted.made_from else None,
        "model": drafted.model,
        "mode": drafted.mode,
        "prompt_sha256": drafted.prompt_sha256,
        "repaired": drafted.repaired,
        "faults": [_short(fault) for fault in errors[:MAX_FAULTS]],
        "more_faults": max(0, len(errors) - MAX_FAULTS),
    }


def drafted_name(drafted: Drafted, revision: int) -> str:
    """What the row of a draft is called that may become this revision: as its question; one that no model was asked
    for by what it says."""
    if drafted.question:
        return drafted.question
    said = drafted.draft.model_dump(mode="json") if drafted.draft else [fault.code for fault in drafted.faults]
    return f"{drafted.source}:{revision}:{sha256_of(said)[:12]}"


def _short(fault: Fault) -> dict[str, Any]:
    return {
        "code": fault.code,
        "step": fault.step and fault.step[:64],
        "path": fault.path and fault.path[:100],
        "message": redacted(fault.message)[:MAX_MESSAGE],
    }
