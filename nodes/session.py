"""One run as this process drives it: its lease, its picture of the journal, its results at hand, its work in flight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from checkpoints.artifacts import Artifact
from checkpoints.crash_points import reached
from checkpoints.journal import Row
from checkpoints.leases import Lease
from nodes.early import EarlyReads
from nodes.events import Event
from nodes.fold import RunFold
from nodes.lateness import LateAnswers
from nodes.origins import degraded_steps
from nodes.purse import Purse
from nodes.results import Results
from nodes.state import STATE_VERSION, RunHead, RunStatus
from nodes.verify import Checks
from plans.errors import ArtifactMissing, SurestepError
from plans.plan import Plan, Step
from plans.values import JSON, sha256_of

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.scheduler import Scheduler
    from tools.ports import Clock

LINGER_S = 0.008
"""How long a row that nobody waits for is held back, so that the steps of a chain share commits. In a crash as much of
finished reads is lost and read again."""

EFFECT_LINGER_S = 0.002
"""The same for the outcome of an effect: just so long that the intent of the next effect, which follows in under a
millisecond, is in the same commit. In a crash an outcome that is not stored is an unknown one."""

Writer = Callable[[Any], None]


@dataclass
class Session:
    """The live side of one run. Everything it tells the fold it has also handed to the journal, in the same order.

    `acting` are step runs that are having an effect, by when that is over, `starting`, by effect, those that are about
    to; `purse` holds what is under way and may still cost; `known` those whose end is stored or queued; `founded` are
    steps of the current revision that are known, and all before them. `notices` are told as soon as somebody listens,
    `told` what is said once. `ended_as` is how the run stood when this drive ended by itself, with all it knew
    accepted.
    """

    engine: Engine
    lease: Lease
    fold: RunFold
    results: Results = field(init=False)
    n: int = 0
    began: float = 0.0
    writer: Writer | None = None
    config: Any = None
    acting: dict[str, float] = field(default_factory=dict)
    purse: Purse = field(default_factory=Purse)
    starting: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    founded: set[str] = field(default_factory=set)
    notices: list[Event] = field(default_factory=list)
    early: EarlyReads = field(default_factory=EarlyReads)
    late: LateAnswers = field(default_factory=LateAnswers)
    checks: Checks = field(default_factory=Checks)
    told: set[str] = field(default_factory=set)
    scheduler: Scheduler | None = None
    _steps: tuple[Plan | None, dict[str, Step]] = (None, {})
    _elements: dict[str, tuple[Step, list[JSON]]] = field(default_factory=dict)
    _status: RunStatus | None = None
    _let_go: bool = False
    ended_as: RunStatus | None = None

    def __post_init__(self) -> None:
        self.results = Results(self.engine.artifacts, self.lease.run_id)

    @property
    def head(self) -> RunHead:
        """What the run is about."""
        if self.fold.head is None:
            raise SurestepError("the run has no head: its first journal row is missing")
        return self.fold.head

    @property
    def full_goal(self) -> str:
        """The goal with the instructions that came later, one a line."""
        return "\n".join((self.head.goal, *self.fold.instructions.values()))

    @property
    def clock(self) -> Clock:
        """Time and chance of the engine that drives the run."""
        return self.engine.clock

    @property
    def approve(self) -> str:
        """Whether people are asked in this drive: "ask", or "all" or "none" where its caller has said so."""
        return self.engine.approve.get(self.head_run_id, self.head.approve)

    @property
    def cancelled(self) -> bool:
        """Whether somebody has asked to cancel the run."""
        return self.lease.cancel.is_set() or self.engine.journal.cancel_requested(self.head_run_id)

    @property
    def decision_needed(self) -> bool:
        """Whether something waits for a verdict, a verdict for its turn, or a sub-goal for its plan."""
        return bool(self.fold.undecided or self.fold.queue or self.fold.reached)

    def unchecked(self, step_id: str) -> bool:
        """Whether the plan is to be asked after this finished step whether it still holds, and was not yet."""
        return self.checks.awaits(self, step_id)

    def scheduling(self) -> Scheduler:
        """The run's scheduler, made when first needed."""
        if self.scheduler is None:
            from nodes.scheduler import Scheduler

            self.scheduler = Scheduler(self)
        return self.scheduler

    @property
    def plan(self) -> Plan:
        """The current revision."""
        if self.fold.plan is None:
            raise SurestepError(f"the run {self.head.run_id} has no plan yet")
        return self.fold.plan

    def step(self, step_id: str) -> Step:
        """A step of the current revision."""
        if self._steps[0] is not self.plan:
            self._steps = (self.plan, {step.id: step for step in self.plan.steps})
            self.founded = set()
        return self._steps[1][step_id]

    def elements(self, step: Step, compute: Callable[[], list[JSON]]) -> list[JSON]:
        """The list that a `for_each` step goes over, computed once per definition of the step.

        Its elements are those that the step was expanded into, whatever happened since (rule 17): else ArtifactMissing.
        """
        known = self._elements.get(step.id)
        if known is None or known[0] is not step:
            found = compute()
            if [sha256_of(element) for element in found] != self.fold.expansions[step.id]:
                raise ArtifactMissing(
                    f"the list that step {step.id} goes over, {step.for_each}, is not the one it was begun with; none "
                    "of its elements runs with another's value. Start the goal again"
                )
            known = self._elements[step.id] = (step, found)
        return known[1]

    def ended(self, unit: str) -> None:
        """This step run's attempt is over, however it ended."""
        self.acting.pop(unit, None)
        self.purse.calling.discard(unit)
        for effect in [effect for effect, by in self.starting.items() if by == unit]:
            del self.starting[effect]

    async def record(
        self,
        kind: str,
        step_id: str | None = None,
        attempt: int = 0,
        *,
        body: Mapping[str, Any],
        artifact: tuple[Artifact, bytes] | None = None,
        wait: bool = False,
    ) -> None:
        """Add one row: to the picture at once, to the journal in order. With `wait` it is accepted when this returns.

        Raises StaleOwner if another worker has taken the run over.
        """
        row = self.row(kind, step_id, attempt, body, artifact)
        self.fold.apply(kind, step_id, attempt, body)
        if "wall_s" in body:
            self.began = self.clock.monotonic()
        linger_s = 0.0 if wait else EFFECT_LINGER_S if step_id in self.acting else LINGER_S
        future = await self.engine.journal.submit(row, linger_s=linger_s)
        if step_id is not None and self.fold.is_over(step_id):
            self.known.add(step_id)
        if wait:
            await future

    def row(
        self,
        kind: str,
        step_id: str | None,
        attempt: int,
        body: Mapping[str, Any],
        artifact: tuple[Artifact, bytes] | None = None,
    ) -> Row:
        """The next row of this owner."""
        self.n += 1
        return Row(self.head_run_id, self.lease.fence, self.n, kind, step_id, attempt, dict(body), artifact)

    @property
    def head_run_id(self) -> str:
        """The run's id, known before its head is."""
        return self.lease.run_id

    async def flush(self) -> None:
        """Wait until every row so far is accepted. Raises StaleOwner if another worker has taken the run over."""
        await self.engine.journal.flush(self.head_run_id)

    async def value(self, unit: str) -> JSON:
        """The result of a finished step run. KeyError if it gave none; ArtifactMissing if it is gone."""
        run = self.fold.steps.get(unit)
        if run is None or run.output is None:
            raise KeyError(unit)
        return await self.results.read(run.output.output_ref)

    def elapsed_s(self) -> float:
        """Wall time of the run so far: earlier drives as the journal knows them, and this one."""
        return self.fold.usage.wall_s + self.clock.monotonic() - self.began

    def heard_by(self, writer: Writer, config: Any) -> None:
        """Say everything to this stream from here on, first what has waited for one."""
        self.writer, self.config = writer, config
        while self.notices:
            self.emit(self.notices.pop(0))

    def emit(self, event: Event) -> None:
        """Say something on the custom stream, if anyone listens."""
        if self.writer is not None:
            self.writer(event.model_dump(exclude_none=True))

    def snapshot(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What of the state has changed: unchanged values are not written again, for each write is stored."""
        now: dict[str, Any] = {
            "schema_version": STATE_VERSION,
            "run": self.head,
            "current_plan": self.fold.plan,
            "verdicts": list(self.fold.queue),
            "approvals": self.fold.waiting(),
            "counts": self.fold.counts(),
            "usage": self.fold.usage.model_copy(update={"wall_s": round(self.elapsed_s(), 3)}),
            "degraded": degraded_steps(self.fold) or None,
        }
        return {name: value for name, value in now.items() if state.get(name) != value}

    async def set_status(self, status: RunStatus, summary: Mapping[str, Any] | None = None) -> None:
        """Write the run's status where it can be listed, after the journal says so. Raises StaleOwner."""
        await self.flush()
        await self.engine.runs.set_status(self.head_run_id, self.lease.fence, status, dict(summary or {}))

    def stood(self, status: RunStatus) -> None:
        """What the run's stored status was when this drive began."""
        self._status = status

    async def stands(self, status: RunStatus) -> None:
        """Write the run's status if it is another than before."""
        if status != self._status:
            await self.set_status(status)
            self._status = status

    async def let_go(self, *, unless_decided: Sequence[str] = ()) -> bool:
        """Stop owning a run that waits for people, once all it knows is durable; False if one of them has decided."""
        await self.flush()
        self._let_go = await self.engine.leases.release(self.lease, unless_decided=unless_decided)
        return self._let_go

    async def close(self) -> None:
        """End this drive: no new starts, reads cancelled, effects awaited, journal flushed, lease let go."""
        reached("session.closing")
        try:
            if self.scheduler is not None:
                await self.scheduler.stop()
            await self.early.stop()
            await self.late.stop()
            if self.fold.finished is None and not self._let_go:
                await self.record("elapsed", body={"wall_s": round(self.elapsed_s(), 3)})
            await self.flush()
            self.ended_as = self.fold.finished["status"] if self.fold.finished else "paused" if self._let_go else None
        finally:
            self.engine.journal.forget(self.head_run_id)
            self.engine.fences.let_go(self.head.thread_id, self.head_run_id, self.lease.fence)
            await self.engine.leases.release(self.lease)
