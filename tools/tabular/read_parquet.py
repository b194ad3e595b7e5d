"""Run as a program: reads a Parquet file through once and writes its values as text to another one.

Arguments: memory limit in bytes, file, target file, most rows. The target's columns are `line` (1, 2, …) and c0, c1, …
in the file's order. Prints one JSON object: {"rows", "columns": [[name, kind or null], ...]}, or {"error"}.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


def main(limit: str, path: str, target: str, most: str) -> dict[str, Any]:
    """Reads the file, if it is not too long, and says what it holds."""
    resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    import polars as pl
    from polars.exceptions import PanicException, PolarsError

    try:
        frame = pl.scan_parquet(path, glob=False)
        schema = frame.collect_schema()
        rows = int(frame.select(pl.len()).collect().item())
        if schema and rows <= int(most):
            columns = [text(name, dtype).alias(f"c{place}") for place, (name, dtype) in enumerate(schema.items())]
            numbered = (
                frame.select(columns).with_row_index("line", offset=1).with_columns(pl.col("line").cast(pl.Int64))
            )
            numbered.sink_parquet(target, compression="lz4")
    except (PolarsError, PanicException, OSError) as error:
        return {"error": str(error).split("\n")[0]}
    return {"rows": rows, "columns": [[name, kind(dtype)] for name, dtype in schema.items()]}


def kind(dtype: pl.DataType) -> str | None:
    """What the file states; a column of texts states nothing."""
    import polars as pl

    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Date:
        return "date"
    if isinstance(dtype, pl.Datetime):
        return "datetime"
    return "boolean" if dtype == pl.Boolean else None


def text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column as text: times in ISO form, with Z where they had a zone, nested values as JSON, bytes in hex."""
    import polars as pl

    column = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        written = column.dt.convert_time_zone("UTC") if dtype.time_zone else column
        return written.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f" + ("Z" if dtype.time_zone else ""))
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    if isinstance(dtype, pl.Struct):
        return column.struct.json_encode()
    if dtype.is_nested():
        return pl.struct(column).struct.json_encode()
    return column.cast(pl.String)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
