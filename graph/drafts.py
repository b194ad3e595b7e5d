"""What became of each draft of a plan in a run: by whom it was written, what was wrong, and what it has cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from nodes.fold import RunFold


class DraftFault(BaseModel):
    """One fault of a draft, in short."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    message: str
    step: str | None = None
    path: str = ""


class DraftResult(BaseModel):
    """One draft. `revision` is the number of the plan that it became, or would have; `attempt` counts the tries for it
    from 1, `failed` is how its question failed, and `raw_ref` where the text of the answer is, or of the error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: int
    valid: bool
    purpose: str
    source: str
    model: str | None = None
    mode: str | None = None
    prompt_sha256: str | None = None
    template: str | None = None
    attempt: int = 1
    repaired: bool = False
    faults: tuple[DraftFault, ...] = ()
    more_faults: int = 0
    failed: str | None = None
    raw_ref: str | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    cost: float = 0.0


_SAID = (
    "revision", "valid", "purpose", "source", "model", "mode", "prompt_sha256", "template", "repaired", "faults",
    "more_faults",
)  # fmt: skip
_SPENT = ("prompt_tokens", "completion_tokens", "estimated_tokens", "cost")


def drafts_of(fold: RunFold) -> list[DraftResult]:
    """Every draft of a run, in their order."""
    return [_draft(row, fold.models.get(row.get("question") or "", {})) for row in fold.drafts.values()]


def _draft(row: Mapping[str, Any], asked: Mapping[str, Any]) -> DraftResult:
    return DraftResult(
        **{name: row[name] for name in _SAID if name in row},
        **{name: asked[name] for name in _SPENT if name in asked},
        attempt=row.get("try", 0) + 1,
        requests=asked.get("model_requests", 0),
        failed=asked.get("way"),
        raw_ref=asked.get("text_ref") or asked.get("raw_ref"),
    )
