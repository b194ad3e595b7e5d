"""What a person is told beside a request: who may answer it, and who has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC

from plans.decisions import ApprovalRequest, Vote


def told_terms(request: ApprovalRequest, votes: Sequence[Vote] = ()) -> Iterator[tuple[str, str]]:
    """Lines with their headings; none of what is as it always is."""
    if asked := " and ".join(_asked_of(request)):
        yield "asked", asked
    if agreed := [vote.by.name for vote in votes if vote.decision.type == "approve"]:
        yield "agreed", f"{', '.join(agreed)} ({len(agreed)} of {request.needed})"


def _asked_of(request: ApprovalRequest) -> Iterator[str]:
    if request.approvers or request.needed > 1:
        roles = f" with the role {' or '.join(request.approvers)}" if request.approvers else ""
        yield f"{request.needed} {'people' if request.needed > 1 else 'person'}{roles}"
    if request.escalates_at is not None and request.escalates_to:
        yield f"from {request.escalates_at.astimezone(UTC):%H:%M:%S} UTC on also {' or '.join(request.escalates_to)}"
    if request.rule is not None:
        yield f"by the rule {request.rule!r}"
