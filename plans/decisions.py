"""What a person can be asked, and what a person can answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from plans.plan import Risk
from plans.principals import Principal
from plans.provenance import Provenance
from plans.values import JSON


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Approve(_Frozen):
    """The action may run exactly as it was shown."""

    type: Literal["approve"] = "approve"


class Reject(_Frozen):
    """The action must not run, in this run, under any name."""

    type: Literal["reject"] = "reject"
    message: str = ""


class Edit(_Frozen):
    """The action may run with these arguments instead; they are validated like planned ones. In answer to a question
    about the plan, and in a review of it, they are a whole plan."""

    type: Literal["edit"] = "edit"
    args: dict[str, JSON]


class Respond(_Frozen):
    """Free text in answer to a question: what to do instead, what the plan needs to know, or the settled result of an
    unknown outcome."""

    type: Literal["respond"] = "respond"
    message: str

    def __init__(self, message: str | None = None, /, **fields: JSON) -> None:
        super().__init__(**({} if message is None else {"message": message}), **fields)


Decision = Annotated[Approve | Reject | Edit | Respond, Field(discriminator="type")]
DECISION: TypeAdapter[Approve | Reject | Edit | Respond] = TypeAdapter(Decision)


class Vote(_Frozen):
    """What one person has said to one request, as what, when, and by which door (`via`: library, command line, …)."""

    by: Principal
    decision: Decision
    via: str
    at: datetime


RequestKind = Literal["risk", "unknown_outcome", "review", "question", "ticket", "clarification"]
"""Whether an action may run; whether it has happened; whether a plan may run; what to do about a goal that nothing has
planned; a failure that nothing mends; and something that only the user can tell."""

ABOUT_PLAN = "@plan"
"""In the place of a step's id: a question about the plan as a whole, or its review. No step can be called so."""


class ApprovalRequest(_Frozen):
    """One pending question to a person, bound to exact arguments by `args_sha256`.

    `sources` say where each argument's values came from. Any `needed` different people with one of the roles
    `approvers` (none named: anybody) let it happen; one of them is enough to reject it. `rule` names the rule of the
    policy that asks; the yes of `not_by`, who has started the run, does not count. From `escalates_at` on those with a
    role in `escalates_to` may decide too.
    """

    approval_id: str
    run_id: str
    thread_id: str
    step_id: str
    tool: str
    args: dict[str, JSON]
    args_sha256: str
    risk: Risk
    reason: str
    kind: RequestKind = "risk"
    attempt: int = 1
    created_at: datetime
    expires_at: datetime | None = None
    sources: tuple[Provenance, ...] = ()
    approvers: tuple[str, ...] = ()
    needed: int = Field(1, ge=1, le=20)
    not_by: str | None = None
    rule: str | None = None
    escalates_at: datetime | None = None
    escalates_to: tuple[str, ...] = ()
