"""The result that a run's journal gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from checkpoints.runs import ENDED
from graph.result import LateEnd, LeftOut, Missing, Resumed, RunResult, StepResult, Tainted
from graph.revisions import revisions_of
from nodes.fold import RunFold
from nodes.lacks import lacks
from nodes.origins import rests_on_mock, sentence
from nodes.state import RunStatus
from nodes.step_run import StepRun
from nodes.taint import taint_of
from nodes.tainted_answer import tainted_parts
from plans.failure import Failure


def result_of(fold: RunFold, status: RunStatus) -> RunResult:
    """How the run ended, or where it stands."""
    if fold.head is None:
        raise ValueError("a run without a head has no result")
    finished, ended = fold.finished or {}, status in ENDED
    steps = tuple(_step_result(fold, step.id, step.tool, step.title) for step in fold.plan.steps) if fold.plan else ()
    return RunResult(
        run_id=fold.head.run_id,
        thread_id=fold.head.thread_id,
        status=status,
        goal=fold.head.goal,
        answer=finished.get("answer"),
        report_ref=finished.get("report_ref"),
        plan=fold.plan,
        made_from=fold.made_from if fold.plan and fold.plan.template else None,
        steps=steps,
        approvals=tuple(fold.waiting()),
        failures=tuple(Failure.model_validate(failure) for failure in finished.get("failures", ())),
        usage=fold.usage,
        raise_limits=finished.get("raise_limits", {}),
        resumes=tuple(Resumed(**asdict(each)) for each in fold.resumes),
        missing=tuple(Missing(step=lack.unit, what=lack.what, why=lack.why) for lack in lacks(fold)) if ended else (),
        left_out=tuple(LeftOut.model_validate(each) for each in finished.get("left_out", ())) if ended else (),
        revisions=revisions_of(fold),
        tainted=tuple(Tainted(line=part.line, tainted_by=part.tainted_by) for part in tainted_parts(fold)),
        archived=fold.archived,
        forked=fold.head.forked,
    )


def _step_result(fold: RunFold, step_id: str, tool: str | None, title: str | None) -> StepResult:
    units = [f"{step_id}[{index}]" for index in range(len(fold.expansions.get(step_id, ())))]
    children = tuple(_one(fold, unit, tool, None) for unit in units)
    step = _one(fold, step_id, tool, title)
    if not children:
        return step
    attempts = sum(child.attempts for child in children)
    elapsed_s = round(step.elapsed_s + sum(child.elapsed_s for child in children), 6)
    return step.model_copy(update={"children": children, "attempts": attempts, "elapsed_s": elapsed_s})


def _one(fold: RunFold, unit: str, tool: str | None, title: str | None) -> StepResult:
    run = fold.steps.get(unit, StepRun())
    return StepResult(
        id=unit,
        tool=run.tool or tool,
        status=run.status,
        attempts=run.attempt,
        in_doubt=run.in_doubt is not None and run.failure is not None,
        output_ref=run.output.output_ref if run.output else None,
        failure=run.failure if run.status in ("failed", "running") else None,
        degraded=sentence(fold, unit) if run.status == "done" else None,
        mock=run.status == "done" and rests_on_mock(fold, unit),
        kept_s=run.kept_s,
        skipped_because=run.skipped_because,
        elapsed_s=round(run.elapsed_s, 6),
        title=title,
        check=run.check,
        tainted_by=taint_of(fold, unit),
        late=tuple(_late(row) for row in fold.late.get(unit, ())),
    )


def _late(row: Mapping[str, Any]) -> LateEnd:
    return LateEnd(
        attempt=row["attempt"],
        late_s=row["late_s"],
        code=row["failure"]["code"] if "failure" in row else None,
        output_ref=row["output"]["output_ref"] if "output" in row else None,
        settled=bool(row.get("settles")),
    )
