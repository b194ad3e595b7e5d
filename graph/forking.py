"""Starts a new run from a step of another: what had finished is kept by reference, no effect is repeated unasked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from checkpoints.journal import Row
from checkpoints.runs import Inherited
from graph.given import check_id, limits_from
from nodes.beginning import new_head
from nodes.engine import Engine
from nodes.fold_verdicts import promises
from nodes.ids import new_id
from nodes.inheritance import artifacts_in, inheritance
from nodes.requests import fork_sha256, run_record
from nodes.review import looked_at
from nodes.state import Forked, InputFile, RunHead
from nodes.versions import JOURNAL_VERSION, read_head
from plans.errors import ArtifactMissing, RunBusy, UsageError

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from graph.driving import Driver, OnEvent
    from graph.result import RunResult
    from nodes.fold import RunFold
    from nodes.state import ApproveMode


@dataclass(frozen=True)
class ForkOptions:
    """Where the fork goes on, and how."""

    step_id: str
    thread_id: str | None = None
    request_id: str | None = None
    limits: Mapping[str, Any] | None = None
    approve: ApproveMode = "ask"


async def forked(driver: Driver, parent: RunRecord, options: ForkOptions, on_event: OnEvent | None) -> RunResult:
    """Make the fork, or find the one that this request has made before, and drive it until it stops."""
    if (known := await _made_before(driver.engine, parent, options)) is not None:
        return await driver.go_on(known, on_event)
    thread_id = check_id(options.thread_id, "the thread id") if options.thread_id is not None else new_id()
    request_id = options.request_id
    request_id = check_id(request_id, "the request id") if request_id is not None else f"fork:{uuid4().hex}"
    async with _at_rest(driver.engine, parent):
        picture = await driver.picture(parent.run_id)
        inherits = inheritance(picture, options.step_id)
        head = _head(driver, parent, picture, options, thread_id, request_id)
        await _check_artifacts(driver.engine, parent, inherits)
        record = await driver.engine.runs.create(run_record(head), _first_rows(head, picture, inherits))
    if record.run_id == head.run_id:
        return await driver.begin(record, on_event)
    return await driver.go_on(record, on_event)


async def _made_before(engine: Engine, parent: RunRecord, options: ForkOptions) -> RunRecord | None:
    """The fork that this request has made; whatever its parent does by now. Another use of the id is told later."""
    known = await engine.runs.by_request(options.request_id, parent.tenant) if options.request_id is not None else None
    same = known is not None and known.input_sha256 == fork_sha256(parent.thread_id, options.step_id)
    return known if same else None


@asynccontextmanager
async def _at_rest(engine: Engine, parent: RunRecord) -> AsyncIterator[None]:
    """Nobody drives the parent while it is read, nor archives it before the fork refers to its results."""
    if parent.archived is not None:
        raise UsageError(f"thread {parent.thread_id} is in the archive, and only a run in the database can be forked")
    try:
        lease = await engine.leases.acquire(parent.run_id, engine.owner)
    except RunBusy as busy:
        raise RunBusy(f"a run is forked when nobody drives it: {busy}") from None
    try:
        yield
    finally:
        await engine.leases.release(lease)


async def _check_artifacts(engine: Engine, parent: RunRecord, inherits: Mapping[str, Any]) -> None:
    if missing := await engine.artifacts.missing(parent.run_id, artifacts_in(inherits)):
        raise ArtifactMissing(f"run {parent.run_id} has lost results that a fork would need: {', '.join(missing)}")


def _head(
    driver: Driver, parent: RunRecord, picture: RunFold, options: ForkOptions, thread_id: str, request_id: str
) -> RunHead:
    """The parent's goal and inputs under a new run id, and so with new idempotency keys. Who forks has to have the role
    that the parent acts in: it is acted in again."""
    engine, who = driver.engine, driver.principal
    old = picture.head or read_head(parent.input, engine.options.plan_versions)
    folders = (old.output_folder, *(old.forked.folders if old.forked else ()))
    same = {name: getattr(old, name) for name in ("goal", "inputs", "untrusted", "tenant", "template", "review")}
    return new_head(
        **same,
        role=who.acting_in(old.role) if old.role is not None else None,
        started_by=who.name,
        output=engine.options.output,
        thread_id=thread_id,
        request_id=request_id,
        files=_files(parent, picture),
        limits=limits_from({**old.limits.model_dump(), **(options.limits or {})}),
        approve=options.approve,
        forked=Forked(run_id=parent.run_id, thread_id=parent.thread_id, step_id=options.step_id, folders=folders),
    )


def _files(parent: RunRecord, picture: RunFold) -> dict[str, InputFile]:
    """The input files as the kept results know them: a change that the parent did not get over is found again."""
    if picture.head is None or any(verdict.code == "INPUT_CHANGED" for verdict in picture.queue):
        return read_head(parent.input, picture.versions).files
    return picture.head.files


def _first_rows(head: RunHead, picture: RunFold, inherits: Mapping[str, Any]) -> Inherited:
    """The run, the parent's current revision as its first, and what it inherits."""
    if picture.plan is None:
        raise AssertionError("what has no plan has nothing to inherit")
    stored = head.model_dump(mode="json")
    plan = picture.plan.model_copy(update={"revision": 1}).model_dump(mode="json")
    written = picture.versions.written(plan, picture.contract)
    parent = {"run_id": stored["forked"]["run_id"], "revision": picture.plan.revision}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("run", {"head": stored, "journal_version": JOURNAL_VERSION}),
        (
            "plan",
            {**written, "purpose": "first", "parent": parent, "answers": [], "warnings": [], **looked_at(picture)}
            | ({"swayed": sorted(picture.swayed)} if picture.swayed else {})
            | promises(picture.on_exhausted, picture.versions, critical=picture.critical),
        ),
        ("inherited", dict(inherits)),
    ]
    rows = [Row(head.run_id, 0, n, kind, None, 0, body) for n, (kind, body) in enumerate(bodies, 1)]
    return Inherited(rows, sorted(artifacts_in(inherits)))
