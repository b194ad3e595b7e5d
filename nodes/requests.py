"""The request that begins a run, as it is stored, and what makes two requests the same."""

from __future__ import annotations

from checkpoints.runs import RunRecord
from nodes.state import RunHead
from nodes.versions import stored_head
from plans.values import sha256_of
from plans.versions import PLAN_VERSIONS, PlanVersions


def run_record(head: RunHead, versions: PlanVersions = PLAN_VERSIONS) -> RunRecord:
    """The stored request of a run; its hash leaves out what differs between two sendings of one request."""
    stored = stored_head(head, versions)
    request = {name: stored[name] for name in ("goal", "inputs", "files", "template", "given_plan")}
    if head.untrusted:  # who vouches for it belongs to what is asked for; as little as in older requests where all do
        request["untrusted"] = list(head.untrusted)
    digest = sha256_of(request) if head.forked is None else fork_sha256(head.forked.thread_id, head.forked.step_id)
    return RunRecord(
        run_id=head.run_id,
        thread_id=head.thread_id,
        tenant=head.tenant,
        request_id=head.request_id,
        goal=head.goal,
        input=stored,
        input_sha256=digest,
        forked_from=head.forked.run_id if head.forked else None,
    )


def fork_sha256(thread_id: str, step_id: str) -> str:
    """What makes two requests for a fork the same; what it inherits may have grown since the first one was sent."""
    return sha256_of({"fork_of": thread_id, "step": step_id})
