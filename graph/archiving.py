"""Archives and erases on behalf of an agent: what `checkpoints` does, with what only the fold of a journal can say."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoints.archive import Archive, ArchiveReport
from checkpoints.erasure import Erasure, ErasureReport
from graph.private_archive import cleaner
from graph.result_of import result_of
from nodes.fold import fold_journal
from plans.errors import StorageUnavailable
from plans.values import JSON

if TYPE_CHECKING:
    from checkpoints.rows import Row
    from checkpoints.runs import RunRecord
    from nodes.engine import Engine


async def archived(
    engine: Engine, tenant: str, older_than_s: float, to: str | None, thread_id: str | None, *, dry_run: bool
) -> ArchiveReport:
    """Archive a tenant's runs of this engine's database; `to` is a place other than the one of the settings."""
    archive = archive_of(engine, to)
    return await archive.run(older_than_s=older_than_s, thread_id=thread_id, tenant=tenant, dry_run=dry_run)


def archive_of(engine: Engine, to: str | None) -> Archive:
    """The archive of an engine's runs, at the place of the settings or at another."""
    return Archive(
        database=engine.database,
        journal=engine.journal,
        leases=engine.leases,
        artifacts=engine.artifacts,
        owner=engine.owner,
        url=to or engine.archives.url,
        told=_told,
        clean=cleaner(engine.options.privacy),
    )


async def erased(engine: Engine, thread_id: str, tenant: str) -> ErasureReport:
    """Erase a thread, and what its runs have written for people on this machine."""
    erasure = Erasure(
        database=engine.database,
        journal=engine.journal,
        leases=engine.leases,
        artifacts=engine.artifacts,
        archives=engine.archives,
        owner=engine.owner,
    )
    report = await erasure.erase(thread_id, tenant)
    await asyncio.to_thread(_remove, (engine.options.output / run_id for run_id in report.runs))
    return report


def _told(record: RunRecord, rows: Sequence[Row]) -> Mapping[str, JSON]:
    picture = fold_journal(rows)
    if picture.head is None:
        picture.apply("run", None, 0, {"head": record.input})
    return result_of(picture, record.status).model_dump(mode="json", exclude={"archived"})


def _remove(folders: Iterable[Path]) -> None:
    """Delete the output folders of runs; each is named by its run and by nothing that anybody else chooses."""
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageUnavailable(
                f"{folder} cannot be deleted: {error.strerror or error}; all else of the thread is erased, so delete "
                "that folder yourself"
            ) from error
