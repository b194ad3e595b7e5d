"""The one gateway of every start, resume and decision: library, command line and servers come in here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from checkpoints.runs import OPEN
from graph.cancelling import cancelled
from graph.deciding import GivenDecision, decided_for_all, take_decision_of_step, take_decisions
from graph.drafts import DraftResult, drafts_of
from graph.driving import Driver, OnEvent
from graph.forking import ForkOptions, forked
from graph.given import age_s, check_id, limits_from
from graph.leaving import EndOfDrive
from graph.preview import preview
from graph.principal import NOBODY, named
from graph.result import PlanPreview, RunResult, RunSummary
from graph.result_of import result_of
from graph.starting import StartOptions, started
from graph.validation import Validation, validation
from graph.wishes import GivenPlan, Wish, wished
from nodes.answers import by_default
from nodes.beginning import new_head
from nodes.engine import Engine
from nodes.sealing import Sealing
from plans.decisions import ApprovalRequest
from plans.limits import Limits
from plans.principals import Principal

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from checkpoints.approvals import Approval
    from checkpoints.archive import ArchiveReport
    from checkpoints.erasure import ErasureReport
    from graph.notifying import Notifier
    from graph.served import Server
    from graph.sweeping import Sweeper
    from graph.template_library import TemplateLibrary
    from graph.tool_settings import ToolSettings
    from nodes.state import AgentInput, AgentOutput, AgentState, ApproveMode, Context, Review


class Agent:
    """Starts goals, resumes and answers them, for one principal: that of the settings, or whom `acting_as` names.
    `graph` is the compiled LangGraph graph on Surestep's own saver. Threads of other tenants are not there."""

    def __init__(
        self,
        engine: Engine,
        graph: CompiledStateGraph[AgentState, Context, AgentInput, AgentOutput],
        driver: Driver | None = None,
        *,
        notifier: Notifier | None = None,
        server: Server | None = None,
    ) -> None:
        self.engine = engine
        self.graph = graph.with_config(callbacks=[EndOfDrive(lambda: engine)])
        # which lets go itself
        self._driver = driver or Driver(engine, graph, engine.options.principal or NOBODY, server=server)
        self._notifier = notifier

    @property
    def principal(self) -> Principal:
        """For whom it acts."""
        return self._driver.principal

    def acting_as(self, principal: Principal) -> Agent:
        """The same agent for another principal, which the caller has authenticated; it shares all that is open."""
        return Agent(self.engine, self._driver.graph, self._driver.acting_as(principal), notifier=self._notifier)

    async def run(
        self,
        goal: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        plan: GivenPlan | None = None,
        template: str | None = None,
        request_id: str | None = None,
        limits: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        approve: ApproveMode = "ask",
        role: str | None = None,
        review: Review = "none",
    ) -> RunResult:
        """Pursue a goal until it is done, fails, reaches a limit, or waits for a person.

        `inputs` are JSON values, or `pathlib.Path` for files. The same `request_id` twice, at once or a day apart, is
        one run and one answer. `review` says which plans a person looks at before anything of them runs: the "first",
        or "every" revision. On a thread whose run is still open the goal is an instruction to that run. `role` is
        the one of the principal's roles that the run acts in. Raises UsageError, NotPermitted, ConfigurationError,
        RunBusy.
        """
        wish = Wish(goal, inputs, plan, template, role)
        options = StartOptions(thread_id, request_id, limits, approve, review)
        return await started(self._driver, wish, options, on_event)

    async def resume(
        self,
        thread_id: str,
        *,
        decisions: Mapping[str, GivenDecision] | None = None,
        on_event: OnEvent | None = None,
        limits: Mapping[str, Any] | None = None,
        approve: ApproveMode = "ask",
        by: Principal | str | None = None,
    ) -> RunResult:
        """Go on with a thread's run: after a crash, a limit or a decision. `decisions` are by approval id, and those
        of the agent's principal if not `by` another.

        A run that has ended is left as it is and its result given. Raises UnknownThread, ApprovalConflict, RunBusy.
        """
        record = await self._driver.latest(thread_id)
        picture = await self._driver.picture(record.run_id)
        who = named(self.principal, by)
        await take_decisions(self.engine, picture, decisions or {}, who)
        if record.status not in OPEN:
            return await self._driver.go_on(record, on_event)
        if approve != "ask":
            self.engine.approve[record.run_id] = approve
            others = decided_for_all(picture, approve)
            others = {each: others[each] for each in others if each not in (decisions or {})}
            await take_decisions(self.engine, picture, others, who, by_default(approve))
        if limits:
            before = picture.head.limits if picture.head else Limits()
            self.engine.limits[record.run_id] = limits_from({**before.model_dump(), **limits})
        return await self._driver.go_on(record, on_event)

    async def cancel(self, thread_id: str, *, wait_s: float = 60.0, on_event: OnEvent | None = None) -> RunResult:
        """End a thread's run: reads are cut off, effects that have begun are awaited, nothing new starts.

        A run that somebody drives is waited for, at most `wait_s` seconds; then RunBusy says who drives it. One that
        has ended already is left as it is and its result given. Raises UnknownThread.
        """
        return await cancelled(self._driver, await self._driver.latest(thread_id), wait_s, on_event)

    async def fork(
        self,
        thread_id: str,
        from_step: str,
        *,
        new_thread_id: str | None = None,
        request_id: str | None = None,
        limits: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        approve: ApproveMode = "ask",
    ) -> RunResult:
        """A new run, on a new thread, from this step of a thread's latest run: the step and all that depends on it run
        again, and what else had finished is kept by reference.

        A step that had its effect, or may have had it, asks a person before it has it again. The same `request_id`
        twice is one fork. Raises UnknownThread, InvalidInput, RunBusy while the run to be forked is driven.
        """
        self.principal.check_may_start(self.engine.options.start_roles)
        parent = await self._driver.latest(thread_id)
        options = ForkOptions(from_step, new_thread_id, request_id, limits, approve)
        return await forked(self._driver, parent, options, on_event)

    async def decide(
        self,
        thread_id: str,
        step_id: str,
        decision: GivenDecision,
        by: Principal | str | None = None,
        *,
        via: str = "library",
    ) -> Approval:
        """Record a decision about a step's pending approval, and nothing else; gives how that stands, for it may need
        the words of more people. Raises ApprovalConflict."""
        record = await self._driver.latest(thread_id)
        picture = await self._driver.picture(record.run_id)
        return await take_decision_of_step(self.engine, picture, step_id, decision, named(self.principal, by), via)

    async def plan(
        self,
        goal: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        plan: GivenPlan | None = None,
        template: str | None = None,
        role: str | None = None,
    ) -> PlanPreview:
        """The plan that `run` would follow; nothing runs and nothing is stored. Raises PlanRejected with all faults."""
        sealing = Sealing.of(self.engine)
        wanted = await wished(self.engine, self.principal, sealing, Wish(goal, inputs, plan, template, role))
        head = new_head(**wanted, thread_id="preview", request_id="preview")
        return await preview(self.engine, head)

    def validate(self, text: str, *, finish_reason: str | None = None) -> Validation:
        """Judge a plan, or a model's raw answer: every fault at once."""
        return validation(self.engine.registry, text, finish_reason, secrets=self.engine.secret_names)

    async def approvals(self, thread_id: str | None = None) -> list[ApprovalRequest]:
        """What waits for a person, on one thread or on all."""
        return await self.engine.approvals.pending(thread_id, self.principal.tenant)

    async def runs(self, limit: int = 50) -> list[RunSummary]:
        """The latest runs, newest first."""
        names = RunSummary.model_fields
        return [
            RunSummary(**{name: getattr(record, name) for name in names})
            for record in await self.engine.runs.list(limit, self.principal.tenant)
        ]

    async def show(self, thread_id: str) -> RunResult:
        """Where the thread's latest run stands. Raises UnknownThread."""
        record = await self._driver.latest(thread_id)
        return result_of(await self._driver.picture(record.run_id), record.status)

    async def drafts(self, thread_id: str) -> list[DraftResult]:
        """Every draft of a plan that the thread's latest run has had, used or refused, in their order."""
        record = await self._driver.latest(thread_id)
        return drafts_of(await self._driver.picture(record.run_id))

    async def output(self, thread_id: str, output_ref: str) -> bytes:
        """The stored bytes of a result. Raises ArtifactMissing."""
        record = await self._driver.latest(thread_id)
        if record.archived is not None:
            return await self.engine.archives.artifact(record.archived, output_ref)
        return await self.engine.artifacts.get(record.run_id, output_ref)

    @property
    def tools(self) -> ToolSettings:
        """The tools' settings, which can be changed while runs go on."""
        from graph.tool_settings import ToolSettings

        return ToolSettings(self.engine.registry, self.engine.database, ports=self.engine.ports)

    @property
    def templates(self) -> TemplateLibrary:
        """The templates: how they have served, and new ones from clean runs."""
        from graph.template_library import TemplateLibrary

        return TemplateLibrary(self._driver)

    @property
    def sweeper(self) -> Sweeper:
        """Sees to what waits on this database, whoever it belongs to: `once()`, or `forever(every_s)`."""
        from graph.sweeping import Sweeper

        return Sweeper(self._driver, self._notifier)

    async def archive(
        self,
        *,
        older_than: str | float | timedelta = "7d",
        to: str | None = None,
        thread_id: str | None = None,
        dry_run: bool = False,
    ) -> ArchiveReport:
        """Move runs that ended so long ago (seconds, a timedelta, or such as "12h") into files. Raises
        StorageUnavailable, and UnknownThread for a `thread_id` on which there is no run."""
        from graph.archiving import archived

        if thread_id is not None:
            await self._driver.latest(thread_id)
        return await archived(self.engine, self.principal.tenant, age_s(older_than), to, thread_id, dry_run=dry_run)

    async def erase(self, thread_id: str) -> ErasureReport:
        """Erase a thread everywhere, for good. Raises UnknownThread, RunBusy, UsageError while it may go on."""
        from graph.archiving import erased

        return await erased(self.engine, check_id(thread_id, "the thread id"), self.principal.tenant)
