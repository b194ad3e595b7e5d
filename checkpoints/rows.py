"""A row of the journal, and its shape as columns of a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from checkpoints.jsonb import jsonb
from plans.values import JSON

if TYPE_CHECKING:
    from checkpoints.artifacts import Artifact

Identity = tuple[str, int, int]
"""(run_id, fence, n): who wrote a row, and which of theirs it is (rule 2)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One intent, outcome or decision of a run.

    `n` is numbered by the owner that holds `fence`, each number once. `body` is clean JSON. A small `artifact` (its
    description and its bytes) becomes durable together with the row. `at` is the database's time, set when read.
    """

    run_id: str
    fence: int
    n: int
    kind: str
    step_id: str | None
    attempt: int
    body: dict[str, JSON]
    artifact: tuple[Artifact, bytes] | None = None
    at: datetime | None = field(default=None, compare=False)

    @property
    def identity(self) -> Identity:
        """What makes it this row and no other."""
        return self.run_id, self.fence, self.n


def row_params(row: Row, body: str) -> dict[str, Any]:
    """One row and its artifact as parameters of the statement `append_row`."""
    artifact, content = row.artifact or (None, None)
    return {
        "run_id": row.run_id,
        "fence": row.fence,
        "n": row.n,
        "kind": row.kind,
        "step_id": row.step_id,
        "attempt": row.attempt,
        "body": body,
        "output_ref": artifact and artifact.output_ref,
        "sha256": artifact and artifact.sha256,
        "media_type": artifact and artifact.media_type,
        "content": content,
    }


def batch_params(rows: Sequence[tuple[Row, str]]) -> dict[str, Any]:
    """Rows with the texts of their bodies as columns, parameters of the statement `append_rows`."""
    one_by_one = [row_params(row, body) for row, body in rows]
    with_artifact = [params for params in one_by_one if params["content"] is not None]
    columns = {
        name: [params[name] for params in one_by_one]
        for name in ("run_id", "fence", "n", "kind", "step_id", "attempt", "body")
    }
    artifacts = {
        f"artifact_{name}": [params[name] for params in with_artifact]
        for name in ("run_id", "fence", "output_ref", "sha256", "media_type", "content")
    }
    return columns | artifacts


def body_text(row: Row) -> str:
    """The row's body as it is stored; ValueError when it cannot be."""
    try:
        return jsonb(row.body)
    except ValueError as error:
        raise ValueError(f"the {row.kind} row of step {row.step_id} cannot be stored: {error}") from None


def row_from(record: Mapping[str, Any]) -> Row:
    """A row as the journal's table has it."""
    return Row(**record)
