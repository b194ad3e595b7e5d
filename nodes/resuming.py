"""Why a run is gone on with, and what is found: written down at the first node of each drive that is not the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoints.runs import OPEN
from nodes.inbox import entry
from nodes.instructions import look_for_instructions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodes.session import Session

CHANGED = "INPUT_CHANGED"


async def note_resumption(session: Session, state: Mapping[str, Any]) -> None:
    """Write down, once per drive, what it goes on for and what it has found. A run's first drive resumes nothing."""
    last, session.fold.left_off = session.fold.left_off, None
    finished = session.fold.finished
    if last is None or (finished is not None and finished["status"] not in OPEN):
        return
    await look_for_instructions(session)
    result, about = _found(session)
    trigger = await _trigger(session, state, last)
    body = {"trigger": trigger, "result": result, "about": about, "at": round(session.clock.wall(), 3)}
    await session.record("resumed", body=body)


async def _trigger(session: Session, state: Mapping[str, Any], last: str) -> str:
    """By the last row of the drive before: who says nothing in the end has crashed."""
    if session.cancelled:
        return "cancel"
    if entry(state) == "instruction" or session.lease.told.is_set():
        return "instruction"
    if last == "finish":
        return "limit"
    if last == "paused":
        return await _answer(session)
    return "stop" if last == "elapsed" else "crash"


async def _answer(session: Session) -> str:
    stored = await session.engine.approvals.of_run(session.head_run_id)
    stored = [each for each in stored if each.request.approval_id in session.fold.asked]
    if any(each.decision is not None for each in stored):
        return "decision"
    return "expiry" if any(each.status == "expired" for each in stored) else "asked_for"


def _found(session: Session) -> tuple[str, list[str]]:
    fold = session.fold
    changed = next((verdict for verdict in fold.queue if verdict.code == CHANGED), None)
    if session.cancelled or (changed is not None and changed.verdict == "finish"):
        return "ends", []
    if changed is not None:
        return "plans_anew", sorted(fold.changed_inputs)
    doubtful = [unit for unit, run in fold.steps.items() if run.in_doubt is not None]
    return ("settles", doubtful) if doubtful else ("goes_on", [])
