"""Bodies of journal rows: small ones stand in the row, large ones are artifacts, and the row says which."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Protocol

from checkpoints.artifacts import INLINE_BYTES, Artifact
from checkpoints.jsonb import jsonb
from checkpoints.rows import Row
from plans.values import JSON

REFERENCE = "$artifact"
"""The one key of a body that stands for another: its value is the artifact's `output_ref`."""


class Store(Protocol):
    """Where large bodies are; the artifact store fits."""

    async def put(self, run_id: str, body: bytes, media_type: str) -> Artifact:
        """Durable when this returns."""
        ...

    async def get(self, run_id: str, output_ref: str) -> bytes:
        """The bytes; ArtifactMissing."""
        ...


def is_large(text: str) -> bool:
    """Whether a body is kept out of its row."""
    return len(text) > INLINE_BYTES or (not text.isascii() and len(text.encode("utf-8")) > INLINE_BYTES)


async def by_reference(store: Store, run_id: str, text: str) -> str:
    """Store a body as an artifact of its run, durable when this returns; gives the body that stands for it."""
    artifact = await store.put(run_id, text.encode("utf-8"), "application/json")
    return jsonb({REFERENCE: artifact.output_ref})


async def whole(store: Store | None, row: Row) -> Row:
    """The row with its own body. ArtifactMissing if that is gone; RuntimeError if it is stored where nobody looks."""
    body: JSON = row.body  # as it is stored: whoever can write there may have put anything in its place
    named = body.get(REFERENCE) if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(named, str):
        return row
    if store is None:
        raise RuntimeError(f"the body of row {row.n} of run {row.run_id} is an artifact; this journal has no store")
    return replace(row, body=json.loads(await store.get(row.run_id, named)))
