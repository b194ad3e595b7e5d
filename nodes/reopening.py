"""What is looked at when a run goes on in another process: are its input files still what they were?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nodes.inputs import changed_files, input_file
from nodes.state import InputFile, Verdict
from plans.errors import InvalidInput

if TYPE_CHECKING:
    from nodes.session import Session


async def look_at_inputs(session: Session) -> None:
    """A declared input that has changed breaks the plan's premise: the rest is planned anew, or the run ends.

    What the files are now is recorded, so that the same change is told once.
    """
    head = session.head
    changed = await changed_files(head.files)
    if not changed:
        return
    now = {name: _as_it_is(name, head.files[name]) for name in changed}
    await session.record("inputs", body={"files": {name: file.model_dump() for name, file in now.items()}})
    left = head.limits.max_global_replans - session.fold.global_replans
    may_replan = session.engine.planner is not None and session.fold.plan is not None and left > 0
    verdict = Verdict(
        verdict="global_replan" if may_replan else "finish",
        step_id="",
        attempt=session.fold.input_changes,
        code="INPUT_CHANGED",
        reason=f"input files have changed or gone since the run began ({', '.join(changed)}); start the goal again",
    )
    await session.record("verdict", body={"verdict": verdict.model_dump()})


def _as_it_is(name: str, before: InputFile) -> InputFile:
    try:
        return input_file(name, Path(before.path))
    except InvalidInput:
        return before.model_copy(update={"size": 0, "sha256": ""})
