"""Reads archived runs where they are: from the place they were written to, or from the one that is set up now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from checkpoints.archive_files import artifact_path, read_file, rows_from
from checkpoints.places import Place, name_of, place_at
from checkpoints.rows import Row
from checkpoints.tombstones import Tombstone
from plans.errors import ArtifactMissing, StorageUnavailable

T = TypeVar("T")


class ArchiveReader:
    """Archived runs by their tombstones. `url` is where archives are as this process is set up."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def rows(self, stone: Tombstone) -> list[Row]:
        """The journal of an archived run. ArtifactMissing when it is gone or was changed."""
        journal = await self._read(stone, "journal.jsonl")
        return await asyncio.to_thread(rows_from, stone.run_id, journal)

    async def artifact(self, stone: Tombstone, output_ref: str) -> bytes:
        """The bytes of an archived run's result. ArtifactMissing when there is none, or it was changed."""
        return await self._read(stone, artifact_path(output_ref))

    async def _read(self, stone: Tombstone, path: str) -> bytes:
        if stone.place is None or stone.folder is None:
            raise ArtifactMissing(stone.epitaph)
        folder = stone.folder
        return await asyncio.to_thread(lambda: self._anywhere(stone, lambda place: read_file(place, folder, path)))

    def _anywhere(self, stone: Tombstone, reading: Callable[[Place], T]) -> T:
        """An archive may have been moved since: where it is not, it is looked for in the place that is set up now."""
        told = self.place_of(stone)
        try:
            return reading(told)
        except (ArtifactMissing, StorageUnavailable):
            if name_of(self.url) == stone.place:
                raise
            return reading(place_at(self.url))

    def place_of(self, stone: Tombstone) -> Place:
        """Where the run's files were written. A password is not stored, so the place of the settings, if it is this
        one, is reached as the settings say."""
        return place_at(self.url if name_of(self.url) == stone.place or stone.place is None else stone.place)
