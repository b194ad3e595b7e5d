"""Rows on their way into columns: small tables stay in memory, large ones go to disk batch by batch."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from tools.tabular.scratch import no_room


class Spool:
    """Takes frames of one schema. The first waits in memory; as soon as a second comes, all go to `folder`.
    ToolFailure UNAVAILABLE when it is full."""

    def __init__(self, folder: Path, schema: pl.Schema) -> None:
        self._folder = folder
        self._schema = schema
        self._kept: pl.DataFrame | None = None
        self._parts = 0
        self.rows = 0

    def add(self, frame: pl.DataFrame) -> None:
        """The next rows."""
        self.rows += frame.height
        if self._kept is None and not self._parts:
            self._kept = frame
            return
        if self._kept is not None:
            self._write(self._kept)
            self._kept = None
        self._write(frame)

    def frame(self) -> pl.LazyFrame:
        """All rows, in order."""
        if self._parts:
            return pl.scan_parquet(self._folder / "*.parquet", glob=True)
        return (self._kept if self._kept is not None else pl.DataFrame(schema=self._schema)).lazy()

    def _write(self, frame: pl.DataFrame) -> None:
        try:
            frame.write_parquet(self._folder / f"{self._parts:06}.parquet", compression="lz4", statistics=False)
        except (PolarsError, OSError) as error:
            raise no_room(error) from None
        self._parts += 1
