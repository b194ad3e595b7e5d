"""`surestep run` and `surestep resume`: a run with its live tree, its questions and its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graph.commands.shared import opened, pairs, print_json, read_text, say, values, waited
from plans.errors import InvalidInput

if TYPE_CHECKING:
    from graph.gateway import Agent, ApproveMode
    from graph.result import RunResult
    from plans.plan import PlanDraft

STOPPED = 5


@dataclass(frozen=True)
class RunOptions:
    """What `run` and `plan` were asked for, as it was written."""

    goal: str | None
    template: str | None
    plan: Path | None
    inputs: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    thread: str | None = None
    request_id: str | None = None
    approve: ApproveMode = "ask"
    limits: list[str] = field(default_factory=list)

    def named_inputs(self) -> dict[str, Any]:
        """Values and files under one set of names. Raises InvalidInput for a name that both have."""
        given, files = values(self.inputs, "--input"), pairs(self.files, "--file")
        if both := sorted(given.keys() & files.keys()):
            raise InvalidInput(f"{', '.join(both)} is given by --input and by --file; choose one")
        return given | {name: Path(path) for name, path in files.items()}

    def draft(self) -> PlanDraft | None:
        """The plan of `--plan`, read. Raises PlanRejected with all faults."""
        if self.plan is None:
            return None
        from nodes.given import given_draft

        return given_draft(read_text(str(self.plan), "the plan"))

    def one_source(self) -> None:
        """A goal and a plan, or a goal and a template, go together; nothing at all and two plans do not."""
        if self.goal is None and self.plan is None and self.template is None:
            raise InvalidInput("there is nothing to do: give a goal in quotes, --plan FILE or --template NAME")
        if self.plan is not None and self.template is not None:
            raise InvalidInput("--plan and --template cannot both say what to do; choose one")


def run_goal(options: RunOptions, toolkits: Sequence[str], *, as_json: bool) -> NoReturn:
    """Run, show, ask where somebody is there to answer, and end with the run's exit code."""
    from nodes.entering import new_id

    options.one_source()
    inputs, draft, limits = options.named_inputs(), options.draft(), values(options.limits, "--limit")
    thread = options.thread or new_id()

    async def work() -> RunResult:
        async with opened(toolkits) as agent, _watched(agent, as_json) as view:
            result = await agent.run(
                options.goal,
                inputs=inputs,
                thread_id=thread,
                plan=draft,
                template=options.template,
                request_id=options.request_id,
                limits=limits,
                on_event=view.take,
                approve=options.approve,
            )
            return await _answered(agent, result, view, options.approve)

    _end(thread, work, as_json=as_json)


def resume_thread(
    thread: str, toolkits: Sequence[str], approve: ApproveMode, limits: Sequence[str], *, as_json: bool
) -> NoReturn:
    """Go on, show, ask, and end with the run's exit code."""
    raised = values(limits, "--limit")

    async def work() -> RunResult:
        async with opened(toolkits) as agent, _watched(agent, as_json) as view:
            result = await agent.resume(thread, on_event=view.take, limits=raised, approve=approve, by="command line")
            return await _answered(agent, result, view, approve)

    _end(thread, work, as_json=as_json)


def _watched(agent: Agent, as_json: bool) -> Any:
    from graph.commands.live import watch

    return watch(agent.engine.registry, quiet=as_json)


async def _answered(agent: Agent, result: RunResult, view: Any, approve: ApproveMode) -> RunResult:
    """Ask at the terminal, as long as the person there answers."""
    from graph.commands.people import ask_at_terminal

    while result.status == "paused" and approve == "ask" and view.interactive:
        decisions = ask_at_terminal(result.approvals)
        if not decisions:
            break
        result = await agent.resume(result.thread_id, decisions=decisions, on_event=view.take, by="command line")
    return result


def _end(thread: str, work: Any, *, as_json: bool) -> NoReturn:
    try:
        result: RunResult = waited(work)
    except KeyboardInterrupt:
        say(f"stopped; what is finished is kept. Go on with: surestep resume {thread}")
        raise SystemExit(STOPPED) from None
    if as_json:
        print_json(result.as_json())
    else:
        from graph.commands.ending import show_end

        show_end(result)
    sys.stdout.flush()
    raise SystemExit(result.exit_code)
