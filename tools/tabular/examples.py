"""A goal about a table, and how these tools serve it: planners are shown it."""

from __future__ import annotations

from tools.tabular.toolkit import tabular

tabular.example(
    "Find anomalies in sales.csv and write a report about them",
    {
        "steps": [
            {"id": "s1", "title": "Describe the table", "tool": "describe_table", "args": {"path": "${inputs.sales}"},
             "reason": "The report says what the table is."},
            {"id": "s2", "title": "Find anomalies", "tool": "find_anomalies", "args": {"path": "${inputs.sales}"},
             "reason": "The goal asks for them."},
            {"id": "s3", "title": "Write the report", "tool": "render_report", "reason": "The goal asks for it.",
             "args": {"title": "Anomalies in sales.csv", "table": "${s1}", "anomalies": "${s2}"}},
        ],
        "answer": "${s3.summary}",
    },
)  # fmt: skip
