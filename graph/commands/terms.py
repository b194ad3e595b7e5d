"""What a person is told beside a request: who may answer it, and who has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from plans.decisions import ApprovalRequest, Vote
from plans.wording import in_utc

if TYPE_CHECKING:
    from graph.gateway import Agent


def told_terms(request: ApprovalRequest, votes: Sequence[Vote] = ()) -> Iterator[tuple[str, str]]:
    """Lines with their headings; none of what is as it always is."""
    if asked := "; ".join(_asked_of(request, votes)):
        yield "asked", asked
    if agreed := [vote.by.name for vote in votes if vote.decision.type == "approve"]:
        yield "agreed", f"{', '.join(agreed)} ({len(agreed)} of {request.needed})"


Votes = Mapping[str, Sequence[Vote]]
"""What people have said, by approval id."""


async def votes_on(agent: Agent, thread_id: str) -> Votes:
    """What people have said so far to what waits on a thread."""
    waiting = await agent.engine.approvals.waiting(thread_id, agent.principal.tenant)
    return {each.request.approval_id: tuple(each.votes) for each in waiting if each.votes}


def _asked_of(request: ApprovalRequest, votes: Sequence[Vote]) -> Iterator[str]:
    if request.approvers or request.needed > 1:
        left = request.needed - sum(vote.decision.type == "approve" for vote in votes)
        more = "more " if left < request.needed else ""
        roles = f" with the role {' or '.join(request.approvers)}" if request.approvers else ""
        yield f"{left} {more}{'people' if left != 1 else 'person'}{roles}"
    if request.escalates_at is not None and request.escalates_to:
        yield f"from {in_utc(request.escalates_at)} on {' or '.join(request.escalates_to)} too"
    if request.rule is not None:
        yield f"by the rule {request.rule!r}"
