"""Opens what an engine stands on, in the order in which each rests on the one before, and closes it again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from checkpoints.approvals import Approvals
from checkpoints.artifacts import ArtifactStore
from checkpoints.audit_sealing import sealing
from checkpoints.background import stop
from checkpoints.breaker_windows import BreakerWindows
from checkpoints.connections import IDLE_SECONDS, Connections
from checkpoints.database import Database, open_database
from checkpoints.failed_calls import PostgresFailures
from checkpoints.fences import fences_of
from checkpoints.journal import Journal
from checkpoints.leases import Leases
from checkpoints.runs import Runs
from checkpoints.sealing import SealedSecrets, SealingKey
from checkpoints.shadow_counts import PostgresShadows
from checkpoints.tool_settings import PostgresSettings
from checkpoints.tool_slots import PostgresSlots
from checkpoints.tool_stores import PostgresBreakers, PostgresCache
from checkpoints.toolkit_schemas import apply_schemas
from checkpoints.workers import name_of_worker, present
from nodes.attendance import watch
from nodes.engine import Engine, EngineOptions
from nodes.models import Model
from nodes.templates import Template
from tools.outside import held
from tools.ports import Clock, Ports
from tools.registry import Registry
from tools.shadows import Shadows
from tools.vault import Vault


@asynccontextmanager
async def open_engine(
    options: EngineOptions,
    *,
    registry: Registry,
    templates: Sequence[Template] = (),
    planner: Model | None = None,
    small: Model | None = None,
    verifier: Model | None = None,
) -> AsyncIterator[Engine]:
    """An engine on a migrated database, with the toolkits' own tables in place. Everything it opened is closed again.

    Raises DatabaseUnavailable or StorageUnavailable.
    """
    async with held(registry.toolkits), AsyncExitStack() as stack:
        database = await stack.enter_async_context(_database(options))
        await stack.enter_async_context(sealing(database, options.audit_key))
        await apply_schemas(database, {kit.name: kit.schema_sql for kit in registry.toolkits if kit.schema_sql})
        clock = Clock()
        artifacts = ArtifactStore(database, options.artifacts_url or str(options.folder / "artifacts"))
        worker = stack.enter_context(present(await asyncio.to_thread(name_of_worker)))
        slots = await stack.enter_async_context(PostgresSlots(database, worker, monotonic=clock.monotonic))
        ports = _ports(database, clock, slots, registry, await _vault(database, options))
        engine = Engine(
            options=options,
            database=database,
            journal=await stack.enter_async_context(Journal(database, artifacts)),
            leases=await stack.enter_async_context(_leases(database, options, clock, worker)),
            runs=Runs(database),
            approvals=Approvals(database),
            artifacts=artifacts,
            connections=await stack.enter_async_context(_connections(database, options)),
            registry=registry,
            ports=ports,
            fences=fences_of(database.url),
            templates=templates,
            planner=planner,
            small=small or planner,
            verifier=verifier,
            worker=worker,
        )
        stack.push_async_callback(stop, asyncio.create_task(watch(engine), name="watchdog"))
        if ports.shadows is not None:
            stack.push_async_callback(ports.shadows.close)
        try:
            yield engine
        finally:
            for run_id in {*engine.sessions, *engine.closing}:
                await engine.close_session(run_id)
            for model in {id(m): m for m in engine.models}.values():
                await model.aclose()


async def _vault(database: Database, options: EngineOptions) -> Vault:
    key = await asyncio.to_thread(SealingKey.of, options.folder, options.sealing_key)
    return Vault(key.hashing, SealedSecrets(database, key), options.secrets)


def _ports(database: Database, clock: Clock, slots: PostgresSlots, registry: Registry, vault: Vault) -> Ports:
    """What tools share with the calls of all workers."""
    shared = PostgresBreakers(database, monotonic=clock.monotonic)
    return Ports(
        breakers=BreakerWindows(shared, monotonic=clock.monotonic),
        settings=PostgresSettings(database, monotonic=clock.monotonic),
        cache=PostgresCache(database, monotonic=clock.monotonic),
        clock=clock,
        failures=PostgresFailures(database, monotonic=clock.monotonic),
        slots=slots,
        vault=vault,
        shadows=Shadows(registry, registry.shadows, PostgresShadows(database), clock) if registry.shadows else None,
    )


def _leases(database: Database, options: EngineOptions, clock: Clock, worker: str) -> Leases:
    return Leases(database, length_s=options.lease_s, monotonic=clock.monotonic, worker=worker)


def _connections(database: Database, options: EngineOptions) -> Connections:
    """A transaction of a worker that sleeps ends before its lease does: it holds the lease's row (rule 9)."""
    return Connections(database, options.connections, idle_seconds=min(IDLE_SECONDS, options.lease_s * 2 / 3))


def _database(options: EngineOptions) -> AbstractAsyncContextManager[Database]:
    return open_database(
        options.database_url,
        options.folder,
        pool_size=options.pool_size,
        prepare_threshold=options.prepare_threshold,
    )
