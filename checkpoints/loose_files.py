"""Deletes the artifact files that nothing refers to any more: those that archived and erased runs have left behind.

The same bytes are one file, whichever runs have them. Which files a run leaves is committed together with the deletion
of its rows, so a process killed in between leaves a list, and the next archive goes on with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from checkpoints.artifacts import ArtifactStore
from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.queries import QUERIES

GRACE_S = 3600.0
"""How old an upload must be to count as given up, while any run is being driven that might still name it."""


Became = Literal["deleted", "left", "used"]


class Swept(NamedTuple):
    """How many files were deleted, and how many are left for later because a run may just be storing them again."""

    deleted: int
    left: int


async def sweep(database: Database, artifacts: ArtifactStore, now: Callable[[], float] = time.time) -> Swept:
    """Delete every loose file that nothing refers to. StorageUnavailable when they cannot be deleted; nothing is lost
    then, and the next sweep goes on.

    A run writes a file first and names it afterwards. So one that was written within the hour stays while any run of
    this database is being driven.
    """
    found = [row["location"] for row in await database.fetch(QUERIES["loose_files"])]
    became = [await _settle(database, artifacts, location, now) for location in found]
    return Swept(became.count("deleted"), became.count("left"))


async def _settle(database: Database, artifacts: ArtifactStore, location: str, now: Callable[[], float]) -> Became:
    """Delete one file, or find that it is in use."""
    written_at = await artifacts.written_at(location)
    [use] = await database.fetch(QUERIES["use_of_file"], {"location": location})
    if written_at is not None and not use["referred"]:
        recent = use["driven"] and now() - written_at < GRACE_S
        # Whoever was storing it before the look at the runs was driving one; whoever began since has written it anew.
        if recent or await artifacts.written_at(location) != written_at:
            return "left"
        await artifacts.remove(location)
        reached("archive.file_deleted")
    await database.execute(QUERIES["forget_file"], {"location": location})
    return "used" if use["referred"] else "deleted"
