"""What a person reads when a run has stopped: the answer, where the report is, what it cost, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph.commands.asking import answers, go_on, has_expired, request_text
from graph.commands.printing import show
from graph.commands.shared import surestep
from graph.commands.view import spent
from plans.wording import counted

if TYPE_CHECKING:
    from graph.commands.terms import Votes
    from graph.result import RunResult

MOST_TOLD = 6
"""Origins of an answer that are named; `--json` has them all."""
STYLE = {"done": "green", "paused": "yellow", "failed": "red", "limited": "yellow", "cancelled": "red"}


def show_end(
    result: RunResult,
    toolkits: Sequence[str] = (),
    *,
    asked: bool = False,
    votes: Votes | None = None,
) -> None:
    """Print the end of a run for a person, who may just have been asked about all that waits."""
    from rich.text import Text

    if result.answer:
        show("", result.answer)
    if result.tainted:
        show(Text(strangers(result), style="dim"))
    if result.report_ref:
        show("", f"report: {result.report_ref}")
    for request in () if asked else result.approvals:
        show("", request_text(request, (votes or {}).get(request.approval_id, ())))
    status = f"{result.status}, in part" if result.partial else result.status
    show("", Text.assemble((status, f"bold {STYLE.get(result.status, '')}"), (f" · {figures(result)}", "dim")))
    if result.archived:
        show(Text(f"archived: {result.archived}", style="dim"))
    for line in _advice(result, toolkits):
        show(Text(line, style="dim"))


def strangers(result: RunResult) -> str:
    """Whose text the answer rests on, where that is not known to be trusted."""
    tools = {step.id: step.tool for step in result.steps}
    roots = list(dict.fromkeys(root for part in result.tainted for root in part.tainted_by))
    named = [f"{root} ({tool})" if (tool := tools.get(root.partition("[")[0])) else root for root in roots[:MOST_TOLD]]
    more = [f"{len(roots) - len(named)} more"] if len(roots) > len(named) else []
    lines = counted(len(result.tainted), "line")
    return f"{lines} of this rest on text that others may have written: {', '.join((*named, *more))}"


def figures(result: RunResult) -> str:
    """What the run was and took, in one line."""
    done = sum(step.status == "done" for step in result.steps)
    all_steps = counted(len(result.steps), "step")
    parts = [
        all_steps if done == len(result.steps) else f"{done} of {all_steps}",
        counted(result.usage.attempts, "call"),
        f"{result.usage.wall_s:.1f} s",
    ]
    return " · ".join((*parts, *(spent(result.usage) or ["no model call"]), f"thread {result.thread_id}"))


def _advice(result: RunResult, toolkits: Sequence[str]) -> list[str]:
    thread = result.thread_id
    match result.status:
        case "paused":
            if not (open_still := [each for each in result.approvals if not has_expired(each)]):
                return [go_on(thread, toolkits)]
            first = answers(open_still[0], toolkits)
            told = [f"{'answer with' if index == 0 else 'or':>11}: {answer}" for index, answer in enumerate(first)]
            more = (
                f"{'and':>11}: {surestep('approvals', thread, toolkits=toolkits)}    lists all {len(result.approvals)}"
            )
            return [*told, more] if len(result.approvals) > 1 else told
        case "limited":
            higher = [f"{name}={value}" for name, value in result.raise_limits.items()] or ["NAME=N"]
            options = [word for each in higher for word in ("--limit", each)]
            return [f"go on with a higher limit: {surestep('resume', thread, *options, toolkits=toolkits)}"]
        case "running":
            return [f"go on, if nobody does already: {surestep('resume', thread, toolkits=toolkits)}"]
        case _:
            return []
