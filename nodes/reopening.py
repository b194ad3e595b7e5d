"""What is looked at when a run goes on: how long its last drive took, and whether its inputs still hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoints.runs import OPEN
from nodes.inputs import changed_files, input_file
from nodes.means import may_plan_anew
from nodes.state import InputFile, Verdict
from nodes.versions import JOURNAL_VERSION
from plans.errors import InvalidInput

if TYPE_CHECKING:
    from checkpoints.rows import Row
    from nodes.session import Session


async def look_again(session: Session, rows: Sequence[Row]) -> None:
    """Take stock of a run that has rows. One that has ended for good is left as it is."""
    finished = session.fold.finished
    if finished is not None and finished["status"] not in OPEN:
        return
    if session.fold.version < JOURNAL_VERSION:  # an older Surestep must not read on from here
        await session.record("version", body={"journal_version": JOURNAL_VERSION})
    if (form := session.fold.form) is not None and form.fell_back:
        await session.record("older_form", body={"written": form.written, "read": form.read})
    if uncounted := uncounted_s(rows):
        await session.record("elapsed", body={"wall_s": round(session.fold.usage.wall_s + uncounted, 3)})
    await _ask_again(session)
    await look_at_inputs(session)


async def _ask_again(session: Session) -> None:
    """What was taken back in the table, by who died before it could say why, is asked again: a run would wait for an
    answer that nobody can give."""
    if session.fold.asked:
        stored = await session.engine.approvals.of_run(session.head_run_id)
        gone = {each.request.approval_id for each in stored if each.status == "withdrawn"}
        await session.engine.approvals.record([each for i, each in session.fold.asked.items() if i in gone])


def uncounted_s(rows: Sequence[Row]) -> float:
    """Seconds that the last drive took since it last wrote down its time: all of it, where it was killed."""
    fence = rows[-1].fence if rows else 0
    marks = [row.at for row in rows if row.fence == fence and ("wall_s" in row.body or row.n == 1)]
    last = rows[-1].at if rows else None
    return (last - marks[-1]).total_seconds() if last and marks and marks[-1] else 0.0


async def look_at_inputs(session: Session) -> None:
    """A declared input that has changed breaks the plan's premise: the rest is planned anew, or the run ends.

    What the files are now is recorded, so that the same change is told once. Before there is a plan nothing was read,
    and when all is done nothing will be.
    """
    head = session.head
    changed = await changed_files(head.files)
    if not changed:
        return
    now = {name: await asyncio.to_thread(_as_it_is, name, head.files[name]) for name in changed}
    # In one row: a change that is known without its verdict would be passed over.
    body = {"files": {name: file.model_dump() for name, file in now.items()}, "verdict": _verdict_on(session, changed)}
    await session.record("inputs", body=body)


def _verdict_on(session: Session, changed: Sequence[str]) -> dict[str, Any] | None:
    head, fold = session.head, session.fold
    if fold.plan is None or all(fold.is_over(step.id) for step in fold.plan.steps):
        return None
    named = ", ".join(f"{name} ({head.files[name].path})" for name in changed)
    return Verdict(
        verdict="global_replan" if may_plan_anew(session) else "finish",
        step_id="",
        attempt=fold.input_changes + 1,
        code="INPUT_CHANGED",
        reason=f"input files have changed or gone since the run began: {named}; start the goal again with them",
    ).model_dump()


def _as_it_is(name: str, before: InputFile) -> InputFile:
    try:
        return input_file(name, Path(before.path))
    except InvalidInput:
        return before.model_copy(update={"size": 0, "sha256": ""})
