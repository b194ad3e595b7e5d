"""Seals the audit while a process is at work, and once more when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from checkpoints.audit import Audit
from checkpoints.background import stop
from checkpoints.database import Database
from plans.errors import DatabaseUnavailable

SEAL_EVERY_S = 60.0
"""So much of what was audited may not be sealed yet where a process dies."""

_LOG = logging.getLogger("surestep")


@asynccontextmanager
async def sealing(database: Database, key: bytes | None, *, every_s: float = SEAL_EVERY_S) -> AsyncIterator[None]:
    """Within the block, and at its end, what was audited is sealed with this key; without a key nothing is.

    A database that does not answer ends nothing: what is not sealed now is sealed later, by whoever comes next. Each
    new seal is told to the log, so that logs kept elsewhere know it.
    """
    if key is None:
        yield
        return
    again = asyncio.create_task(_again(database, key, every_s), name="audit seals")
    try:
        yield
    finally:
        await stop(again)
        await _seal(database, key)


async def _again(database: Database, key: bytes, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        await _seal(database, key)


async def _seal(database: Database, key: bytes) -> None:
    try:
        made = await Audit(database).seal(key)
    except DatabaseUnavailable as error:
        _LOG.warning("the audit could not be sealed: %s", error)
        return
    if made is not None:
        _LOG.info("audit: seal %d of %s is %s", made.seal, made.at.isoformat(), made.hash.hex())
