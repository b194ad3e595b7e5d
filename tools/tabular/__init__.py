"""The toolkit `tabular`: describe, check, search and summarise tables in files, and report on them.

Files are CSV, TSV or other delimited text in any usual encoding, Excel (xlsx, xlsm, xlsb, xls), ODS and Parquet; the
content decides what a file is, not its name. Every tool takes `path` (a declared input of the run, or a file in its
output folder), and optionally `sheet`, `reading` (encoding, delimiter, header_line, decimal, date_order, quoted) and
`language` ("en" or "zh", of the sentences in the result). Row numbers are called `line` and count in the source file,
from 1. Nothing is guessed silently: `assumptions` in each result says what was taken for granted.

    describe_table(path)                                                                                        read
    check_fields(path, required=["order_id"], types={"amount": "number", "ordered_at": "date"})                 read
    find_anomalies(path, rules=[...], output="anomalies.csv")                                             idempotent
    aggregate(path, measures=[{"op": "sum", "column": "amount"}], group_by=["status"], where=[...], limit=20)   read
    export_rows(path, output="late.xlsx", where=[...], lines=[...], columns=[...])                        idempotent
    render_report(title, table=..., fields=..., anomalies=..., aggregates=[...], sections=[...])          idempotent

The whole job as a plan's steps, each result handed on as it is:

    s1  describe_table  {"path": "${inputs.orders}"}
    s2  check_fields    {"path": "${inputs.orders}"}
    s3  find_anomalies  {"path": "${inputs.orders}", "output": "anomalies.csv"}
    s4  aggregate       {"path": "${inputs.orders}", "group_by": ["status"], "measures": [{"op": "count"}]}
    s5  render_report   {"title": "Orders", "table": "${s1}", "fields": "${s2}", "anomalies": "${s3}",
                         "aggregates": ["${s4}"]}
    answer  ${s5.summary}

find_anomalies without `rules` infers them from names and types and says which and why. The rules:
{"rule": "negative_amount", "column": c}, {"rule": "time_order", "earlier": c, "later": d},
{"rule": "duplicate_ids", "column": c}, {"rule": "allowed_values", "column": c, "values": [...]},
{"rule": "outliers", "column": c, "threshold": 3.5, "scale": "linear"|"log"}, {"rule": "missing", "column": c},
{"rule": "bad_values", "column": c, "type": "number"|"date"|...}; ragged rows are always found.

Good criteria (`success_when`): `rows > `0`` after describe_table and find_anomalies, `ok` after check_fields,
`groups > `0`` after aggregate, `rows > `0`` after export_rows. Fields of results: tools/tabular/results.py.
Failures: NOT_FOUND and NOT_PERMITTED (the file), INVALID_INPUT (its content), INVALID_ARGS (a column or option).
"""

from __future__ import annotations

from tools.tabular import examples  # noqa: F401 (declares its part)
from tools.tabular.toolkit import tabular

__all__ = ["tabular"]
