"""`surestep run` and `surestep resume`: a run with its live tree, its questions and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graph.commands.failing import STOPPED, Stopped
from graph.commands.live import watch
from graph.commands.printing import print_json, say
from graph.commands.reading import paths, read_text, values
from graph.commands.shared import OVER, opened, surestep
from graph.commands.stopping import Stopping, waited
from graph.commands.terms import Votes, votes_on
from graph.commands.view import View
from nodes.ids import new_id
from plans.errors import ApprovalConflict, InvalidInput, PlanRejected, UnknownThread

if TYPE_CHECKING:
    from graph.gateway import Agent
    from graph.result import RunResult
    from nodes.state import ApproveMode, Review
    from plans.decisions import ApprovalRequest, Decision
    from plans.plan import PlanDraft


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
    eager: bool = False
    review: Review = "none"
    role: str | None = None

    def named_inputs(self) -> dict[str, Any]:
        """Values and files under one set of names. Raises InvalidInput for a name that both have."""
        given, files = values(self.inputs, "--input"), paths(self.files, "--file")
        if both := sorted(given.keys() & files.keys()):
            raise InvalidInput(f"{', '.join(both)} is given by --input and by --file; choose one")
        return given | files

    def draft(self) -> PlanDraft | None:
        """The plan of `--plan`, read. Raises PlanRejected with all faults of its form."""
        if self.plan is None:
            return None
        from nodes.given import given_draft

        try:
            return given_draft(read_text(str(self.plan), "the plan"))
        except PlanRejected as error:
            more = f"whether its steps have others: {surestep('validate', str(self.plan))}"
            raise PlanRejected(f"{error}\n{more}", error.faults) from None

    def one_source(self) -> None:
        """A goal and a plan, or a goal and a template, go together; nothing at all and two plans do not."""
        if self.goal is None and self.plan is None and self.template is None:
            raise InvalidInput("there is nothing to do: give a goal in quotes, --plan FILE or --template NAME")
        if self.plan is not None and self.template is not None:
            raise InvalidInput("--plan and --template cannot both say what to do; choose one")


@dataclass
class Drive:
    """One command that drives a run on a thread: how it is watched, asked about, and stopped."""

    thread: str
    toolkits: Sequence[str]
    approve: ApproveMode
    as_json: bool
    limits: dict[str, Any] = field(default_factory=dict)
    eager: bool = False

    def __post_init__(self) -> None:
        self.view = View()
        self.stopping = Stopping(tell=self._tell, advice=surestep("resume", self.thread, toolkits=self.toolkits))
        self.watch = watch(self.view, self.stopping, quiet=self.as_json)
        self.asked = False
        self.last_word: str | None = None
        self.votes: Votes = {}
        self._agent: Agent | None = None

    def opened(self, agent: Agent) -> None:
        """What drives the run is there."""
        self._agent = agent
        self.view.phase = "planning …"
        self.view.usage = lambda: next((each.fold.usage for each in agent.engine.sessions.values()), None)

    async def resumed(self, agent: Agent, decisions: dict[str, Decision] | None = None) -> RunResult:
        """Go on with the thread's run."""
        return await agent.resume(
            self.thread,
            decisions=decisions,
            on_event=self.watch.take,
            limits=self.limits,
            approve=self.approve,
        )

    async def answered(self, agent: Agent, result: RunResult) -> RunResult:
        """Ask at the terminal, as long as somebody there answers."""
        self.thread = result.thread_id  # a request that was made before has its run on another thread
        while result.status == "paused":
            self.votes = await votes_on(agent, self.thread)
            if self.approve != "ask" or not self.watch.can_ask:
                break
            decisions = await self._decisions(result.approvals)
            if not decisions:
                break
            try:
                self.asked = False
                result = await self.resumed(agent, decisions)
            except ApprovalConflict as conflict:  # somebody else was faster; what is still open is asked again
                say(f"  {conflict}")
                result = await self.resumed(agent)
        return result

    async def standing(self, agent: Agent) -> RunResult | None:
        """Where the run stands after a stop; None if it had not begun, whatever ran on the thread before."""
        try:
            result = await agent.show(self.thread)
        except UnknownThread:
            return None
        if result.status != "running" and not self.view.lines:
            return None
        self.view.settle(result)
        return result

    async def _decisions(self, requests: Sequence[ApprovalRequest]) -> dict[str, Decision]:
        from graph.commands.asking import asked_at_terminal

        try:
            self.asked = True
            with self.watch.paused():
                return await asked_at_terminal(requests, self.votes)
        except asyncio.CancelledError:  # Ctrl-C at a question leaves it for later
            return {}

    def _tell(self) -> None:
        """Say what a stop still waits for: an effect that has begun is not cut off."""
        if self.asked:  # a stop at a question is an answer to it: later
            say("")
            return
        self.view.stopping = True
        folds = [each.fold for each in self._agent.engine.sessions.values()] if self._agent else []
        begun = [f"{unit} ({run.tool or (run.in_doubt or {}).get('tool')})"
                 for each in folds for unit, run in each.steps.items() if run.in_doubt is not None]  # fmt: skip
        waits = f"; {', '.join(begun)} has begun and is waited for, Ctrl-C again leaves at once" if begun else ""
        say(f"stopping{waits}")


def run_goal(options: RunOptions, toolkits: Sequence[str], *, as_json: bool) -> NoReturn:
    """Run, show, ask where somebody is there to answer, and end with the run's exit code."""
    options.one_source()
    inputs, draft, limits = options.named_inputs(), options.draft(), values(options.limits, "--limit")
    thread = options.thread if options.thread is not None else new_id()
    drive = Drive(thread, toolkits, options.approve, as_json=as_json, eager=options.eager)

    async def start(agent: Agent) -> RunResult:
        return await agent.run(
            options.goal,
            inputs=inputs,
            thread_id=thread,
            plan=draft,
            template=options.template,
            request_id=options.request_id,
            limits=limits,
            on_event=drive.watch.take,
            approve=options.approve,
            review=options.review,
            role=options.role,
        )

    end(drive, start)


def resume_thread(
    thread: str, toolkits: Sequence[str], approve: ApproveMode, limits: Sequence[str], *, as_json: bool
) -> NoReturn:
    """Go on, show, ask, and end with the run's exit code."""
    drive = Drive(thread, toolkits, approve, as_json=as_json, limits=values(limits, "--limit"))

    async def go_on(agent: Agent) -> RunResult:
        before = (await agent.show(thread)).status
        if before in OVER:
            again = surestep("run", "GOAL", toolkits=toolkits)
            drive.last_word = f"the run had ended before ({before}); nothing was done. A new one: {again}"
        return await drive.resumed(agent)

    end(drive, go_on)


def end(drive: Drive, start: Callable[[Agent], Awaitable[RunResult]]) -> NoReturn:
    """Drive a run until it stops, then show how it stands and end with its exit code."""

    with drive.watch.shown():
        result = _driven(drive, start)
    stopped = drive.stopping.asked_at is not None and (result is None or result.status == "running")
    if result is None:
        raise Stopped
    if drive.as_json:
        print_json(result.as_json())
    elif not stopped:
        from graph.commands.ending import show_end

        show_end(result, drive.toolkits, asked=drive.asked, votes=drive.votes)
    if drive.last_word is not None:
        say(drive.last_word)
    if stopped:
        say(f"stopped; what is finished is kept. Go on with:\n  {drive.stopping.advice}")
    raise SystemExit(STOPPED if stopped else result.exit_code)


def _driven(drive: Drive, start: Callable[[Agent], Awaitable[RunResult]]) -> RunResult | None:
    opening = opened(drive.toolkits, eager=drive.eager)

    async def work() -> RunResult | None:
        async with opening as agent:
            drive.opened(agent)
            try:
                return await drive.answered(agent, await start(agent))
            except asyncio.CancelledError:
                if drive.stopping.asked_at is None:
                    raise
                return await drive.standing(agent)

    return waited(work, drive.stopping)
