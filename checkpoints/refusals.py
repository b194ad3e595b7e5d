"""Why a decision was not taken: the error that says so, by how the request stands now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from plans.decisions import Decision, Edit, Respond
from plans.errors import (
    ApprovalConflict,
    ConflictingDecision,
    DoubleDecision,
    ForeignDecision,
    LateDecision,
    StaleDecision,
    UnknownApproval,
)
from plans.wording import in_utc

if TYPE_CHECKING:
    from checkpoints.approvals import Approval
    from plans.principals import Principal


@dataclass(frozen=True, slots=True)
class Word:
    """What one person says to one request, and the hash of the arguments that they saw, where it is known."""

    approval_id: str
    decision: Decision
    args_sha256: str | None = None


def refusal(
    words: Sequence[Word], found: Sequence[Approval | None], by: Principal, thread_id: str | None
) -> ApprovalConflict:
    """The error for the first of these words that does not count. `found` are the requests, None for one that there is
    not; of other tenants nothing is told, not even that it is there."""
    for word, approval in zip(words, found, strict=True):
        if (why := _why_not(word, approval, by, thread_id)) is not None:
            return why
    return ApprovalConflict("somebody has decided at the same moment; look again, then decide once more")


def _why_not(word: Word, approval: Approval | None, by: Principal, thread_id: str | None) -> ApprovalConflict | None:
    if approval is None:
        return UnknownApproval(f"there is no approval {word.approval_id}; `surestep approvals` lists what waits")
    if thread_id not in (None, approval.request.thread_id):
        return ForeignDecision(
            f"approval {word.approval_id} is asked on another thread than {thread_id!r}; "
            f"`surestep approvals {thread_id}` lists what waits there"
        )
    return _while_pending(word, approval, by) if approval.status == "pending" else _after(word, approval)


def _after(word: Word, approval: Approval) -> ApprovalConflict:
    """It waits no longer."""
    what = named(approval)
    match approval.status:
        case "expired":
            late = _at(approval.request.expires_at)
            return LateDecision(
                f"{what} was not answered in time{late} and counts as rejected; "
                f"`surestep resume {approval.request.thread_id}` goes on without it, and so does `surestep sweep`"
            )
        case "withdrawn":
            return StaleDecision(
                f"the question about {what} was withdrawn: the plan has changed, and it does not arise"
            )
        case status:
            before = f"{what} was already {status} by {approval.decided_by}{_at(approval.decided_at)}"
            same = approval.decision is not None and _says_the_same(word.decision, approval.decision)
            kind = DoubleDecision if same else ConflictingDecision
            return kind(f"{before}; that decision holds")


def _while_pending(word: Word, approval: Approval, by: Principal) -> ApprovalConflict | None:
    request, what = approval.request, named(approval)
    if word.args_sha256 not in (None, request.args_sha256):
        return StaleDecision(f"the arguments of {what} are not the ones that were shown; look at them, then decide")
    if word.decision.type != "reject" and any(vote.by.name == by.name for vote in approval.votes):
        more = request.needed - approval.agreed
        return DoubleDecision(f"{by.name} has agreed to {what} already; {more} more of other people are needed")
    if word.decision.type != "reject" and by.name == request.not_by:
        return ForeignDecision(f"{what} is for somebody else to allow: {by.name} has started the run")
    if not may_decide(approval, by, datetime.now(UTC)):
        roles = ", ".join(by.roles) or "none"
        return ForeignDecision(
            f"{what} is decided by {' or '.join(request.approvers)}; {by.name} has the roles: {roles}"
        )
    return None


def may_decide(approval: Approval, by: Principal, now: datetime) -> bool:
    """Whether this person is one of those who are asked."""
    request = approval.request
    escalated = request.escalates_at is not None and request.escalates_at <= now and bool(request.escalates_to)
    return by.is_one_of(request.approvers) or (escalated and by.is_one_of(request.escalates_to))


def _says_the_same(one: Decision, other: Decision) -> bool:
    """Whether two decisions come to the same: a reason beside a no is only a reason."""
    return one == other if isinstance(one, Edit | Respond) else one.type == other.type


def named(approval: Approval) -> str:
    """The question, as people know it."""
    request = approval.request
    return f"{request.tool} (step {request.step_id} of thread {request.thread_id})"


def _at(moment: datetime | None) -> str:
    return f" ({in_utc(moment)})" if moment else ""
