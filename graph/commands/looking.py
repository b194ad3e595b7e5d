"""`runs` and `show`: which runs there are, and where one of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graph.commands.printing import harmless, print_json, show, write_bytes
from graph.commands.resumed import resumptions
from graph.commands.revised import revised
from graph.commands.shared import opened, waited
from graph.commands.terms import Votes, votes_on
from nodes.origins import age
from plans.errors import InvalidInput
from plans.wording import listed

if TYPE_CHECKING:
    from graph.result import LateEnd, RunResult, RunSummary, StepResult
    from nodes.state import TemplateUse


def list_runs(limit: int, *, as_json: bool) -> None:
    """The latest runs, newest first."""
    opening = opened([], calls=False)

    async def work() -> list[RunSummary]:
        async with opening as agent:
            return await agent.runs(limit)

    found = waited(work)
    if as_json:
        print_json({"runs": [run.model_dump(mode="json") for run in found]})
        return
    rows = [
        (run.thread_id, run.status, f"{run.created_at.astimezone():%Y-%m-%d %H:%M}", " ".join(run.goal.split()))
        for run in found
    ]
    show_table(("thread", "status", "began", "goal"), rows, "no run yet")


def show_thread(thread: str, output: str | None, raw: str | None, *, as_json: bool) -> None:
    """Where a run stands, or one step's stored result, or the raw text of its failure."""
    if output is not None and raw is not None:
        raise InvalidInput("--output and --raw print one thing each; give one of them")
    opening = opened([], calls=False)

    async def work() -> tuple[RunResult | bytes, Votes]:
        async with opening as agent:
            result = await agent.show(thread)
            if output is not None:
                return await agent.output(thread, _reference(result, output)), {}
            if raw is not None:
                return await agent.output(thread, _raw_reference(result, raw)), {}
            return result, await votes_on(agent, thread)

    found, votes = waited(work)
    if isinstance(found, bytes):
        write_bytes(found)
    elif as_json:
        print_json(found.as_json())
    else:
        _show(found, votes)


def _reference(result: RunResult, unit: str) -> str:
    """Where the result of a step, or of one child (`s4[1]`), is stored. Raises InvalidInput."""
    stored = {step.id: step.output_ref for step in _flat(result.steps) if step.output_ref}
    if unit not in stored:
        raise InvalidInput(f"step {unit!r} has no stored result; steps that have: {listed(stored)}")
    return stored[unit]


def _raw_reference(result: RunResult, unit: str) -> str:
    """Where the raw error text of a step's failure is stored. Raises InvalidInput."""
    failures = {step.id: step.failure for step in _flat(result.steps) if step.failure is not None}
    stored = {name: failure.raw_ref for name, failure in failures.items() if failure.raw_ref is not None}
    if unit in stored:
        return stored[unit]
    if unit in failures:
        raise InvalidInput(f"the failure of step {unit!r} has no raw text: its sentence is all there is")
    have = f"steps that have: {listed(stored)}" if stored else "no step of this run has one"
    raise InvalidInput(f"step {unit!r} has no raw error text; {have}")


def _flat(steps: Sequence[StepResult]) -> Iterator[StepResult]:
    for step in steps:
        yield step
        yield from step.children


def _show(result: RunResult, votes: Votes) -> None:
    from graph.commands.ending import show_end

    show(result.goal, "")
    if result.forked is not None:
        show(f"forked from thread {result.forked.thread_id} at step {result.forked.step_id}", "")
    if result.made_from is not None:
        show(_made_from(result.made_from), "")
    actions: dict[str, str] = {step.id: step.action for step in result.plan.steps} if result.plan else {}
    rows = [
        (f"  {step.id}" if "[" in step.id else step.id, step.tool or actions.get(step.id.partition("[")[0], ""),
         "in doubt" if step.in_doubt else step.status, str(step.attempts), f"{step.elapsed_s:.2f} s", _remark(step))
        for step in _flat(result.steps)
    ]  # fmt: skip
    show_table(("step", "tool", "status", "attempts", "time", ""), rows, "no plan")
    for line in (*resumptions(result.resumes), *revised(result.revisions)):
        show(line)
    show_end(result, votes=votes)


def _made_from(template: TemplateUse) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in template.parameters.items() if value is not None)
    return f"from the template {template.name} ({template.sha256[:12]}){f' with {parameters}' if parameters else ''}"


def _remark(step: StepResult) -> str:
    kept = None if step.kept_s is None else f"answered from the cache, from {age(step.kept_s)} ago"
    failed = step.failure.message if step.failure else None
    said = failed or step.skipped_because or step.degraded or kept or step.title or ""
    checked = [step.check.sentence] if step.check and not failed else []
    return "; ".join([*([said] if said else []), *map(_late, step.late), *checked])


def _late(end: LateEnd) -> str:
    how = f"with {end.code}" if end.code else "well"
    return f"attempt {end.attempt} came back {end.late_s:.1f} s late, {how}{', which settled it' * end.settled}"


def show_table(names: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    """Rows under their names, for a person; `empty` where there is none. The first columns are never cut."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        show(empty)
        return
    table: Any = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(names):
        table.add_column(name, overflow="fold" if index < len(names) - 1 else "ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    show(table)
