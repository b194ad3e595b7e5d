"""What a person reads when a run has stopped: the answer, where the report is, what it cost, and what to do next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from graph.commands.shared import console

if TYPE_CHECKING:
    from graph.result import RunResult

STYLE = {"done": "green", "paused": "yellow", "failed": "red", "limited": "yellow", "cancelled": "red"}


def show_end(result: RunResult) -> None:
    """Print the end of a run for a person."""
    out = console()
    status = STYLE.get(result.status, "")
    out.print(f"\n[{status}]{result.status}[/] " if status else result.status, end="")
    out.print(_cost(result), style="dim")
    if result.answer:
        out.print(f"\n{result.answer}", markup=False)
    if result.report_ref:
        out.print(f"\nreport: {result.report_ref}", markup=False, soft_wrap=True)
    for request in result.approvals:
        out.print(
            f"\nwaits for you: {request.step_id} {request.tool} (risk {request.risk}): {request.reason}", markup=False
        )
        out.print(f"  {json.dumps(request.args, ensure_ascii=False)}", markup=False, soft_wrap=True)
    if advice := _advice(result):
        out.print(f"\n{advice}", style="dim", markup=False, soft_wrap=True)


def _cost(result: RunResult) -> str:
    usage = result.usage
    parts = [f"{usage.steps} steps", f"{usage.attempts} attempts", f"{usage.wall_s:.1f} s"]
    if usage.model_calls:
        parts.append(f"{usage.model_calls} model calls, {usage.tokens} tokens")
    else:
        parts.append("no model call")
    return " · ".join((*parts, f"thread {result.thread_id}"))


def _advice(result: RunResult) -> str | None:
    thread = result.thread_id
    match result.status:
        case "paused":
            step = result.approvals[0].step_id if result.approvals else "STEP"
            return f"answer with: surestep approve {thread} {step}   or   surestep reject {thread} {step}"
        case "limited":
            return f"go on with a higher limit: surestep resume {thread} --limit NAME=N"
        case "running":
            return f"go on with: surestep resume {thread}"
        case _:
            return None
