"""A row in the table of runs, which everything else refers to."""

from __future__ import annotations

from checkpoints.database import Database


async def add_run(database: Database, run_id: str) -> None:
    """A run that exists and nothing more."""
    await database.execute(
        "INSERT INTO surestep.runs (run_id, thread_id, request_id, goal, input, input_sha256)"
        " VALUES (%(run_id)s, %(run_id)s, %(run_id)s, 'a goal', '{}', '')",
        {"run_id": run_id},
    )
