"""Run as a program by tests: the tools over one large file, then what it took, as one JSON object."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tools.context import ToolContext
from tools.tabular import toolkit
from tools.tabular.arguments import Filter, Grouping, Measure, TimeOrder


def main(path: str, folder: str) -> dict[str, Any]:
    """Describes, checks, searches, aggregates and exports the file."""
    started = time.monotonic()
    ctx = ToolContext.bare(Path(folder), inputs={"large": Path(path)}, seconds=1_200)
    described = toolkit.describe_table(ctx, path)
    checked = toolkit.check_fields(ctx, path, types={"amount": "number", "ordered_at": "date"})
    inferred = toolkit.find_anomalies(ctx, path, output="anomalies.csv")
    given = toolkit.find_anomalies(ctx, path, (TimeOrder(earlier="ordered_at", later="shipped_at"),))
    summed = toolkit.aggregate(
        ctx, path, (Measure(op="sum", column="quantity"),), (Grouping(column="ordered_at", by="month"),)
    )
    exported = toolkit.export_rows(ctx, path, "rows.csv", (Filter(column="quantity", op="ge", value=4),))
    return {
        "rows": described.rows, "types": [column.type for column in described.columns], "bad": checked.bad_values,
        "counts": dict(inferred.counts), "backwards": given.anomalous_rows, "first": given.examples[0].line,
        "groups": summed.groups, "total": sum(row["sum_quantity"] for row in summed.rows), "exported": exported.rows,
        "seconds": round(time.monotonic() - started, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
