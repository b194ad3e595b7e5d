"""The table of approvals: what people are asked, and the one decision that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.decisions import ApprovalRequest, Decision
from plans.errors import ApprovalConflict

ApprovalStatus = Literal["pending", "approved", "rejected", "edited", "answered", "expired", "withdrawn"]

STATUS_OF: Mapping[str, ApprovalStatus] = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "edited",
    "respond": "answered",
}
"""The status that each type of decision gives an approval."""


class Approval(BaseModel):
    """A request to a person and what became of it. One that was not answered in time counts as `expired`."""

    model_config = ConfigDict(frozen=True)

    request: ApprovalRequest
    status: ApprovalStatus
    decision: Decision | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None


class Approvals:
    """Requests and decisions. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, requests: Sequence[ApprovalRequest]) -> None:
        """Store requests as pending. One whose id is known is left as it is, unless it was withdrawn: then it is
        pending again."""
        if requests:
            text = jsonb([request.model_dump(mode="json") for request in requests])
            reached("approval.before_record")
            await self._database.execute(QUERIES["record_approvals"], (text,))
            reached("approval.recorded")

    async def decide(
        self, approval_id: str, decision: Decision, by: str, *, args_sha256: str | None = None
    ) -> ApprovalRequest:
        """Store a person's decision; gives the request that was decided.

        Compare and set: of any number of decisions one is stored, if the approval is pending and not expired, and if
        `args_sha256` (of the arguments that the person saw) is still the approval's, where given. Else ApprovalConflict
        says who decided what and when, or why there is nothing to decide.
        """
        reached("approval.before_decision")
        decided = await self._database.fetch(
            QUERIES["decide_approval"],
            {
                "approval_id": approval_id,
                "status": STATUS_OF[decision.type],
                "decision": jsonb(decision.model_dump(mode="json")),
                "by": by,
                "args_sha256": args_sha256,
            },
        )
        reached("approval.decided")
        if not decided:
            raise await self._conflict(approval_id, args_sha256)
        return ApprovalRequest.model_validate(decided[0]["request"])

    async def of_run(self, run_id: str) -> list[Approval]:
        """All approvals of a run, in the order they were asked for."""
        return [_approval(row) for row in await self._database.fetch(QUERIES["approvals_of_run"], (run_id,))]

    async def pending(self, thread_id: str | None = None) -> list[ApprovalRequest]:
        """What waits for a person now, on one thread or on all; oldest first."""
        waiting = await self._database.fetch(QUERIES["pending_approvals"], {"thread_id": thread_id})
        return [ApprovalRequest.model_validate(row["request"]) for row in waiting]

    async def withdraw(self, ids: Sequence[str]) -> list[str]:
        """Take back questions that no longer arise; gives the ids that were still pending."""
        return await self._withdrawn("withdraw_approvals", {"ids": list(ids)}) if ids else []

    async def withdraw_as_owner(self, run_id: str, fence: int, ids: Sequence[str]) -> list[str]:
        """The same for who drives the run with this fence; nothing where somebody has taken it over."""
        return await self._withdrawn("withdraw_as_owner", {"run_id": run_id, "fence": fence, "ids": list(ids)})

    async def _withdrawn(self, query: str, params: Mapping[str, Any]) -> list[str]:
        reached("approval.before_withdrawal")
        withdrawn = await self._database.fetch(QUERIES[query], params)
        reached("approval.withdrawn")
        return [row["approval_id"] for row in withdrawn]

    async def expire(self) -> list[ApprovalRequest]:
        """Write down as expired what nobody answered in time; gives those requests, each of them once."""
        return [
            ApprovalRequest.model_validate(row["request"])
            for row in await self._database.fetch(QUERIES["expire_approvals"])
        ]

    async def _conflict(self, approval_id: str, args_sha256: str | None) -> ApprovalConflict:
        found = await self._database.fetch(QUERIES["approval_by_id"], (approval_id,))
        if not found:
            return ApprovalConflict(f"there is no approval {approval_id}; `surestep approvals` lists what waits")
        return ApprovalConflict(_why_not(_approval(found[0]), args_sha256))


def _why_not(approval: Approval, args_sha256: str | None) -> str:
    request = approval.request
    what = f"{request.tool} (step {request.step_id} of thread {request.thread_id})"
    match approval.status:
        case "pending" if args_sha256 not in (None, request.args_sha256):
            return f"the arguments of {what} are not the ones that were shown; look at them again, then decide"
        case "pending":
            return f"{what} could not be decided; it is pending again, so decide once more"
        case "expired":
            return f"{what} was not answered in time{_at(request.expires_at)} and counts as rejected"
        case "withdrawn":
            return f"the question about {what} was withdrawn: the plan has changed, and it no longer arises"
        case status:
            return (
                f"{what} was already {status} by {approval.decided_by}{_at(approval.decided_at)}; that decision holds"
            )


def _at(moment: datetime | None) -> str:
    return f" ({moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC)" if moment else ""


def _approval(row: Mapping[str, Any]) -> Approval:
    return Approval.model_validate(dict(row))
