"""Parquet files: read through once, each column as text, with the kinds that the file states."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plans.failure import ToolFailure
from tools.tabular import read_parquet
from tools.tabular.child import read_apart
from tools.tabular.kinds import Kind
from tools.tabular.layout import LINE, unique_names
from tools.tabular.pace import Pace
from tools.tabular.results import Ragged
from tools.tabular.table import Body

MOST_ROWS = 20_000_000


def parquet_body(path: Path, scratch: Path, pace: Pace) -> tuple[Body, dict[str, Kind]]:
    """The rows, counted from 1, and the kinds of typed columns. ToolFailure INVALID_INPUT for a damaged file, found
    by reading it through once: damage deep inside would otherwise show in the middle of later work."""
    pace.tick(0.0, f"reading {path.name}")
    target = scratch / "records.parquet"
    said = read_apart(read_parquet, path, str(target), str(MOST_ROWS), seconds=pace.seconds_left())
    if "error" in said:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is a damaged Parquet file ({said['error']}); "
                          "write it again from its source")  # fmt: skip
    rows, columns = said["rows"], said["columns"]
    if not columns:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is empty: it has no columns")
    if rows > MOST_ROWS:
        raise ToolFailure("INVALID_INPUT", f"{path.name} has {rows:,} rows; at most {MOST_ROWS:,} are read here. "
                          "Split it, or aggregate it first")  # fmt: skip
    names, notes = unique_names([name for name, _ in columns], len(columns))
    renamed = {"line": LINE} | {f"c{place}": name for place, name in enumerate(names)}
    frame = pl.scan_parquet(target, glob=False).rename(renamed)
    body = Body(names, frame, rows, Ragged(), pl.Series(LINE, [], pl.Int64), notes)
    return body, {name: kind for name, (_, kind) in zip(names, columns, strict=True) if kind}
