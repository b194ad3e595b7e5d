"""Parquet files: read lazily, each column as text, with the kinds that the file states."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from plans.failure import ToolFailure
from tools.tabular.kinds import Kind
from tools.tabular.layout import LINE, unique_names
from tools.tabular.pace import Pace
from tools.tabular.results import Ragged
from tools.tabular.table import Body

MOST_ROWS = 20_000_000


def parquet_body(path: Path, scratch: Path, pace: Pace) -> tuple[Body, dict[str, Kind]]:
    """The rows, counted from 1, and the kinds of typed columns. ToolFailure INVALID_INPUT for a damaged file, found
    by reading it through once: damage deep inside would otherwise show in the middle of later work."""
    try:
        return _read(path, scratch / "records.parquet", pace)
    except (PolarsError, PanicException, OSError) as error:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is a damaged Parquet file ({str(error).splitlines()[0]}); "
                          "write it again from its source") from None  # fmt: skip


def _read(path: Path, target: Path, pace: Pace) -> tuple[Body, dict[str, Kind]]:
    frame = pl.scan_parquet(path, glob=False)
    schema = frame.collect_schema()
    rows = int(frame.select(pl.len()).collect().item())
    if not schema:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is empty: it has no columns")
    if rows > MOST_ROWS:
        raise ToolFailure("INVALID_INPUT", f"{path.name} has {rows:,} rows; at most {MOST_ROWS:,} are read here. "
                          "Split it, or aggregate it first")  # fmt: skip
    names, notes = unique_names(list(schema), len(schema))
    columns = [_text(old, dtype).alias(new) for new, (old, dtype) in zip(names, schema.items(), strict=True)]
    pace.tick(0.0, f"reading {path.name}")
    numbered = frame.select(columns).with_row_index(LINE, offset=1).with_columns(pl.col(LINE).cast(pl.Int64))
    numbered.sink_parquet(target, compression="lz4")
    body = Body(names, pl.scan_parquet(target, glob=False), rows, Ragged(), pl.Series(LINE, [], pl.Int64), notes)
    kinds = {new: _kind(dtype) for new, dtype in zip(names, schema.dtypes(), strict=True)}
    return body, {name: kind for name, kind in kinds.items() if kind}


def _kind(dtype: pl.DataType) -> Kind | None:
    """What the file states; a column of texts states nothing."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Date:
        return "date"
    if isinstance(dtype, pl.Datetime):
        return "datetime"
    return "boolean" if dtype == pl.Boolean else None


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        written = column.dt.convert_time_zone("UTC") if dtype.time_zone else column
        return written.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f" + ("Z" if dtype.time_zone else ""))
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    if dtype.is_nested() and isinstance(dtype, pl.Struct):
        return column.struct.json_encode()
    if dtype.is_nested():
        return pl.struct(column).struct.json_encode()
    return column.cast(pl.String)
