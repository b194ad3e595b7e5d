"""Runs that are in the archive, looked at as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.fold import RunFold, fold_journal
from plans.errors import UnknownThread

if TYPE_CHECKING:
    from nodes.engine import Engine


async def archived_picture(engine: Engine, run_id: str) -> RunFold:
    """What the archived journal of a run says. Raises UnknownThread where there is no such run, ArtifactMissing where
    its archive is gone."""
    stone = await engine.tombstones.of_run(run_id)
    if stone is None:
        raise UnknownThread(f"there is no run {run_id}; `surestep runs` lists those there are")
    picture = fold_journal(await engine.archives.rows(stone))
    picture.archived = stone.location
    return picture


async def unknown(engine: Engine, thread_id: str, tenant: str) -> UnknownThread:
    """Why a tenant has nothing on a thread: no run of theirs was ever started there, or all of them were erased."""
    for stone in await engine.tombstones.of_thread(thread_id):
        if stone.erased_at is not None and stone.tenant == tenant:
            return UnknownThread(f"thread {thread_id!r} was erased: {stone.epitaph}")
    return UnknownThread(f"no run was ever started on thread {thread_id!r}; `surestep runs` lists those there are")
