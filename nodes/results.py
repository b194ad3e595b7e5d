"""The results of one run: made artifacts before a row names them, and read again by the name that a row has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from checkpoints.artifacts import INLINE_BYTES, Artifact
from nodes.at_hand import AtHand
from nodes.step_run import Output
from plans.values import JSON

if TYPE_CHECKING:
    from checkpoints.artifacts import ArtifactStore

Carried = tuple[Artifact, bytes]
"""An artifact that is stored with the row that names it."""


class Results:
    """The artifacts of one run, those that its next steps will probably read at hand."""

    def __init__(self, artifacts: ArtifactStore, run_id: str) -> None:
        self._artifacts = artifacts
        self._run_id = run_id
        self._at_hand = AtHand()

    async def store(self, value: JSON) -> tuple[Output, Carried | None]:
        """Make a result an artifact: durable now if it is large, else to be sent along with the row that names it."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        output, carried = await self.keep(body, "application/json")
        self._at_hand.keep(output.output_ref, value, len(body))
        return output, carried

    async def keep(self, body: bytes, media_type: str) -> tuple[Output, Carried | None]:
        """Make bytes an artifact: durable now if they are many, else to be sent along with the row that names them."""
        carried: Carried | None = None
        if len(body) <= INLINE_BYTES:
            artifact = self._artifacts.describe(body, media_type)
            carried = (artifact, body)
        else:
            artifact = await self._artifacts.put(self._run_id, body, media_type)
        return Output(artifact.output_ref, artifact.size, artifact.sha256, artifact.media_type), carried

    async def read(self, reference: str) -> JSON:
        """The JSON value of one of this run's artifacts. ArtifactMissing if it is gone or has changed."""
        if (known := self._at_hand.get(reference)) is not None:
            return known[0]
        body = await self._artifacts.get(self._run_id, reference)
        value: JSON = json.loads(body)
        self._at_hand.keep(reference, value, len(body))
        return value
