"""The tables of approvals and decisions: what people are asked, what each of them has said, and what counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from checkpoints.refusals import Word, refusal
from plans.decisions import ApprovalRequest, Decision, Vote
from plans.errors import ApprovalConflict
from plans.principals import Principal

ApprovalStatus = Literal["pending", "approved", "rejected", "edited", "answered", "expired", "withdrawn"]

STATUS_OF: Mapping[str, ApprovalStatus] = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "edited",
    "respond": "answered",
}
"""The status that each type of decision gives an approval."""


class Approval(BaseModel):
    """A request to a person and what became of it. One that was not answered in time counts as `expired`.

    `votes` are what each person has said since it was asked last, in order; `decision` is what they came to, and
    `decided_by` whose it is: all who have agreed, where several had to.
    """

    model_config = ConfigDict(frozen=True)

    request: ApprovalRequest
    status: ApprovalStatus
    decision: Decision | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    votes: tuple[Vote, ...] = ()

    @property
    def agreed(self) -> int:
        """How many people have said yes."""
        return sum(vote.decision.type == "approve" for vote in self.votes)


class Approvals:
    """Requests and decisions. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, requests: Sequence[ApprovalRequest]) -> None:
        """Store requests as pending. One whose id is known is left as it is, unless it was withdrawn: then it is
        pending again, and nobody has said anything to it."""
        if requests:
            text = jsonb([request.model_dump(mode="json") for request in requests])
            reached("approval.before_record")
            await self._database.execute(QUERIES["record_approvals"], (text,))
            reached("approval.recorded")

    async def decide(self, approval_id: str, decision: Decision, by: Principal, **more: Any) -> Approval:
        """Store a person's word on one request: `decide_all` of one."""
        return (await self.decide_all([Word(approval_id, decision, more.pop("args_sha256", None))], by, **more))[0]

    async def decide_all(
        self,
        words: Sequence[Word],
        by: Principal,
        *,
        via: str = "library",
        thread_id: str | None = None,
        refuses: bool = False,
    ) -> list[Approval]:
        """Store one person's word on several requests, on all or on none; gives how they stand, in the same order.

        Compare and set: it counts if the request is pending and not expired, of the person's tenant (and of this
        thread, where given), asked of one of their roles, and about the arguments that they saw, where those are given;
        and if they have not agreed before. A no ends it, and so does the last yes that is needed. A run that was told
        to ask nobody `refuses` in its caller's name, whatever role that has. Raises what `refusal` says of the first
        word that does not count.
        """
        if not words:
            return []
        reached("approval.before_decision")
        given = [
            {
                "approval_id": word.approval_id,
                "status": STATUS_OF[word.decision.type],
                "decision": word.decision.model_dump(mode="json"),
                "args_sha256": word.args_sha256,
            }
            for word in words
        ]
        who = {"by": by.name, "roles": list(by.roles), "tenant": by.tenant, "via": via}
        asked = {"given": jsonb(given), "thread_id": thread_id, "refuses": refuses}
        counted = await self._database.fetch(QUERIES["decide_approvals"], {**asked, **who})
        reached("approval.decided")
        found = [await self.get(word.approval_id, by.tenant) for word in words]
        if not counted:
            raise refusal(words, found, by, thread_id)
        return [approval for approval in found if approval is not None]

    async def refused(self, words: Sequence[Word], by: Principal, thread_id: str | None) -> ApprovalConflict:
        """Why these words, about questions that do not wait on this thread, would not be taken; nothing is stored."""
        return refusal(words, [await self.get(word.approval_id, by.tenant) for word in words], by, thread_id)

    async def get(self, approval_id: str, tenant: str = "") -> Approval | None:
        """One request of this tenant, and what became of it."""
        found = await self._database.fetch(QUERIES["approval_by_id"], (approval_id, tenant))
        return _approval(found[0]) if found else None

    async def of_run(self, run_id: str) -> list[Approval]:
        """All approvals of a run, in the order they were asked for."""
        return [_approval(row) for row in await self._database.fetch(QUERIES["approvals_of_run"], (run_id,))]

    async def pending(self, thread_id: str | None = None, tenant: str | None = None) -> list[ApprovalRequest]:
        """What waits for a person now, on one thread or on all, of one tenant or of all; oldest first."""
        wanted = {"thread_id": thread_id, "tenant": tenant}
        waiting = await self._database.fetch(QUERIES["pending_approvals"], wanted)
        return [ApprovalRequest.model_validate(row["request"]) for row in waiting]

    async def waiting(self, thread_id: str | None = None, tenant: str | None = None) -> list[Approval]:
        """The same, with what people have said so far."""
        wanted = {"thread_id": thread_id, "tenant": tenant}
        return [_approval(row) for row in await self._database.fetch(QUERIES["waiting_approvals"], wanted)]

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

    async def expire(self, run_id: str | None = None) -> list[ApprovalRequest]:
        """Write down as expired what nobody answered in time, of one run or of all; gives those requests, each of them
        once."""
        expired = await self._database.fetch(QUERIES["expire_approvals"], {"run_id": run_id})
        reached("sweep.expired")
        return [ApprovalRequest.model_validate(row["request"]) for row in expired]

    async def escalate(self) -> list[ApprovalRequest]:
        """Write down which questions are now for others too; gives those requests, each of them once."""
        escalated = await self._database.fetch(QUERIES["escalate_approvals"])
        return [ApprovalRequest.model_validate(row["request"]) for row in escalated]


def _approval(row: Mapping[str, Any]) -> Approval:
    return Approval.model_validate(dict(row))
