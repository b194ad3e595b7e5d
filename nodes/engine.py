"""What all runs of one process share, and the sessions of the runs it drives. It belongs to one event loop."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

from checkpoints.approvals import Approvals
from checkpoints.archive_reading import ArchiveReader
from checkpoints.artifacts import ArtifactStore
from checkpoints.connections import Connections
from checkpoints.database import Database
from checkpoints.fences import Fences
from checkpoints.instructions import Instructions
from checkpoints.journal import Journal
from checkpoints.leases import LEASE_S, Leases
from checkpoints.runs import Durability, Runs
from checkpoints.template_uses import TemplateUses
from checkpoints.tombstones import Tombstones
from nodes.archived import Archived
from nodes.attendance import Attendance
from nodes.models import Model
from nodes.policing import NO_POLICY, PolicySource
from nodes.requests import run_record
from nodes.session import Session
from nodes.state import Review, RunHead
from nodes.taking import take_run
from nodes.templates import Template
from plans.errors import UnknownThread
from plans.limits import Limits
from plans.principals import Principal
from plans.versions import PLAN_VERSIONS, PlanVersions
from tools.ports import Clock, Ports
from tools.privacy import BUILT_IN, Privacy
from tools.registry import Registry
from tools.vault import NamedSecret

PROGRAM = Principal(name="library")
"""For whom an engine works that was not told."""


@dataclass(frozen=True)
class EngineOptions:
    """How an engine is set up; the settings in `graph/settings.py` say where each comes from. `checks` says whether
    models are asked if a plan still holds, `approval_expires_s` how long a question waits, if not for ever.
    `principal` is for whom the graph is invoked; None: for whom the server that invokes it has authenticated, and for
    nobody else. `start_roles` are those that may start runs; none: all."""

    database_url: str | None = None
    folder: Path = Path(".surestep")
    artifacts_url: str | None = None
    archive_url: str | None = None
    output: Path = Path("surestep-out")
    input_root: Path | None = None
    pool_size: int = 10
    prepare_threshold: int | None = 5
    lease_s: float = LEASE_S
    durability: Durability = "exit"
    on_unplannable: Literal["ask", "refuse"] = "ask"
    approval_expires_s: float | None = None
    review: Review = "none"
    eager: bool = False
    connections: Mapping[str, str] = field(default_factory=dict)
    checks: bool = True
    plan_versions: PlanVersions = PLAN_VERSIONS
    audit_key: bytes | None = field(default=None, repr=False)
    principal: Principal | None = PROGRAM
    start_roles: tuple[str, ...] = ()
    policy: PolicySource = NO_POLICY
    privacy: Privacy = BUILT_IN
    sealing_key: str | None = field(default=None, repr=False)
    secrets: Mapping[str, NamedSecret] = field(default_factory=dict, repr=False)


@dataclass
class Engine:
    """Stores, tools and models behind the nodes. `worker` names it in its intents, so that whoever takes a run over can
    find out whether it is dead (`checkpoints/workers.py`). `sessions` holds the runs that this process drives now,
    `closing` those that it is about to let go; `approve` and `limits` what a caller has said for its own drive."""

    options: EngineOptions
    database: Database
    journal: Journal
    leases: Leases
    runs: Runs
    approvals: Approvals
    artifacts: ArtifactStore
    connections: Connections
    registry: Registry
    ports: Ports
    fences: Fences = field(default_factory=Fences)
    templates: Sequence[Template] = ()
    planner: Model | None = None
    small: Model | None = None
    verifier: Model | None = None
    approve: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Limits] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    closing: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    opening: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    worker: str = ""
    attendance: Attendance = field(init=False)
    template_uses: TemplateUses = field(init=False)

    def __post_init__(self) -> None:
        self.template_uses = TemplateUses(self.database, monotonic=self.clock.monotonic)
        self.attendance = Attendance(self.clock)

    @property
    def clock(self) -> Clock:
        """Time and chance of this engine."""
        return self.ports.clock

    @property
    def secret_names(self) -> dict[str, str]:
        """What `${secrets.…}` sees: names and placeholders, never a secret itself."""
        return self.ports.vault.names() if self.ports.vault is not None else {}

    @property
    def models(self) -> list[Model]:
        """Every model that a run may ask."""
        return [each for each in (self.planner, self.small, self.verifier) if each is not None]

    @property
    def checking(self) -> Model | None:
        """The model that is asked whether a plan still holds, if one is."""
        return (self.verifier or self.small) if self.options.checks else None

    @property
    def instructions(self) -> Instructions:
        """What people say to runs that go on."""
        return Instructions(self.database)

    @property
    def tombstones(self) -> Tombstones:
        """What stays of runs that were archived or erased."""
        return Tombstones(self.database)

    @property
    def archives(self) -> ArchiveReader:
        """The archive as this engine is set up."""
        return ArchiveReader(self.options.archive_url or str(self.options.folder / "archive"))

    async def begin(self, head: RunHead) -> Session:
        """The session of the run that this request starts, or has started before: a request is one run."""
        record = await self.runs.create(run_record(head, self.options.plan_versions))
        if record.archived is not None:
            raise Archived(record.archived)
        return await self.session(record.run_id)

    async def session(self, run_id: str) -> Session:
        """The run's session in this process, opened if need be: lease first, then the journal is read.

        Raises RunBusy if another process drives the run, Archived if it is in the archive.
        """
        async with self.opening.setdefault(run_id, asyncio.Lock()):
            await self.closed(run_id)
            known = self.sessions.get(run_id)
            if known is None:
                known = self.sessions[run_id] = await self._opened(run_id)
            return known

    def driving(self, thread_id: str, request_id: str) -> Session | None:
        """The session that this process has open for a thread, if this request is what its run pursues."""
        fence = self.fences.of(thread_id)
        session = self.sessions.get(fence.run_id) if fence is not None and fence.live else None
        return session if session is not None and session.head.request_id == request_id else None

    async def _opened(self, run_id: str) -> Session:
        try:
            return await take_run(self, run_id)
        except UnknownThread:
            if (stone := await self.tombstones.of_run(run_id)) is not None:
                raise Archived(stone) from None
            raise

    async def close_session(self, run_id: str) -> None:
        """End the run's session here, if there is one: work in flight settled, journal flushed, lease let go.

        Who is cancelled while it waits does not cut that short; who comes second waits for the same end.
        """
        self.begin_closing(run_id)
        await self.closed(run_id)

    def begin_closing(self, run_id: str) -> None:
        """Begin to end the run's session here, if there is one; `closed` tells when that is done."""
        if (session := self.sessions.pop(run_id, None)) is not None:
            self.closing[run_id] = asyncio.create_task(session.close(), name=f"{run_id} closes")
            self.closing[run_id].add_done_callback(lambda task: self._has_closed(run_id, task))

    def _has_closed(self, run_id: str, task: asyncio.Task[None]) -> None:
        self.closing.pop(run_id, None)
        if not task.cancelled():
            task.exception()  # whoever waits is told; where nobody does, the journal says what is in doubt

    async def closed(self, run_id: str) -> None:
        """Returns when a session that is being closed is closed; raises what went wrong with that."""
        if (task := self.closing.get(run_id)) is not None:
            await asyncio.shield(task)
