"""Approvals: of any number of decisions one counts, and the others are told which."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from checkpoints.approvals import Approvals
from checkpoints.database import Database
from plans.decisions import ApprovalRequest, Approve, Decision, Edit, Reject, Respond
from plans.errors import ApprovalConflict
from plans.values import JSON, sha256_of
from tests.checkpoints.scenes import add_run


def a_request(approval_id: str, *, run_id: str = "r1", age_s: float | None = None, **args: JSON) -> ApprovalRequest:
    """A refund that waits for a person; with `age_s` it ran out so many seconds ago."""
    return ApprovalRequest(
        approval_id=approval_id,
        run_id=run_id,
        thread_id=f"thread of {run_id}",
        step_id="s3",
        tool="issue_refund",
        args=args or {"order_id": "A1", "amount": "9.90"},
        args_sha256=sha256_of(args or {"order_id": "A1", "amount": "9.90"}),
        risk="high",
        reason="refunds are high risk",
        created_at=datetime.now(UTC),
        expires_at=None if age_s is None else datetime.now(UTC) - timedelta(seconds=age_s),
    )


@pytest.fixture
async def approvals(database: Database) -> Approvals:
    """The approvals of a database with two runs."""
    await add_run(database, "r1")
    await add_run(database, "r2")
    return Approvals(database)


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        (Approve(), "approved"),
        (Reject(message="not yet"), "rejected"),
        (Edit(args={"amount": "1.00"}), "edited"),
        (Respond("it happened"), "answered"),
    ],
)
async def test_a_decision_is_stored_with_who_and_when(approvals: Approvals, decision: Decision, status: str) -> None:
    """What was decided is read back exactly, and no longer waits."""
    request = a_request("a1")
    await approvals.record([request])
    assert await approvals.pending() == [request]
    assert await approvals.decide("a1", decision, "ann", args_sha256=request.args_sha256) == request
    (stored,) = await approvals.of_run("r1")
    assert (stored.request, stored.status, stored.decision, stored.decided_by) == (request, status, decision, "ann")
    assert stored.decided_at is not None
    assert stored.decided_at.tzinfo is not None
    assert await approvals.pending() == []


async def test_of_two_decisions_at_once_one_counts_and_the_other_is_told(approvals: Approvals) -> None:
    """Exactly one of many concurrent decisions is stored; each other learns who decided what, and when."""
    for round_ in range(10):
        await approvals.record([a_request(f"a{round_}")])
        answers = await asyncio.gather(
            *(approvals.decide(f"a{round_}", Approve() if who % 2 else Reject(), f"person {who}") for who in range(6)),
            return_exceptions=True,
        )
        told = [str(answer) for answer in answers if isinstance(answer, ApprovalConflict)]
        assert len(told) == 5
        stored = (await approvals.of_run("r1"))[round_]
        assert f"already {stored.status} by {stored.decided_by} (20" in told[0]
        assert "issue_refund (step s3 of thread thread of r1)" in told[0]
        assert len(set(told)) == 1


async def test_recording_again_changes_nothing(approvals: Approvals) -> None:
    """A step that is asked about again, after a crash say, keeps its decision."""
    await approvals.record([a_request("a1")])
    await approvals.record([a_request("a1"), a_request("a2")])
    await approvals.decide("a1", Approve(), "ann")
    await approvals.record([a_request("a1")])
    assert [(one.request.approval_id, one.status) for one in await approvals.of_run("r1")] == [
        ("a1", "approved"),
        ("a2", "pending"),
    ]
    await approvals.record([])


async def test_what_was_not_answered_in_time_is_not_approved(approvals: Approvals) -> None:
    """No answer in time means no: nobody can decide any more, swept or not, and the sweep tells each request once."""
    late, open_ = a_request("late", age_s=1), a_request("open", age_s=-60)
    await approvals.record([late, open_])
    assert await approvals.pending() == [open_]
    for told in ([late], []):
        with pytest.raises(ApprovalConflict, match=r"was not answered in time \(20.* UTC\) and counts as rejected"):
            await approvals.decide("late", Approve(), "ann")
        assert [one.status for one in await approvals.of_run("r1")] == ["expired", "pending"]
        swept = await asyncio.gather(approvals.expire(), approvals.expire())
        assert [request for part in swept for request in part] == told


async def test_a_decision_about_other_arguments_does_not_count(approvals: Approvals) -> None:
    """Who saw other arguments than those that would run has decided about something else."""
    request = a_request("a1")
    await approvals.record([request])
    with pytest.raises(ApprovalConflict, match="are not the ones that were shown"):
        await approvals.decide("a1", Approve(), "ann", args_sha256=sha256_of({"order_id": "A2"}))
    assert await approvals.pending() == [request]


async def test_only_pending_questions_are_withdrawn_and_they_can_be_asked_again(approvals: Approvals) -> None:
    """A question that no longer arises cannot be answered; should it arise again, it waits again."""
    await approvals.record([a_request("a1"), a_request("a2")])
    await approvals.decide("a1", Approve(), "ann")
    assert await approvals.withdraw(["a1", "a2", "a3"]) == ["a2"]
    with pytest.raises(ApprovalConflict, match="was withdrawn"):
        await approvals.decide("a2", Approve(), "ann")
    await approvals.record([a_request("a1"), a_request("a2")])
    assert [one.status for one in await approvals.of_run("r1")] == ["approved", "pending"]


async def test_an_unknown_approval_is_told_plainly(approvals: Approvals) -> None:
    """A wrong id says where the right ones are listed."""
    with pytest.raises(ApprovalConflict, match="there is no approval nope; `surestep approvals` lists"):
        await approvals.decide("nope", Approve(), "ann")


async def test_each_thread_has_its_own_list(approvals: Approvals) -> None:
    """What waits can be listed for one thread or for all, oldest first."""
    for approval_id, run_id in (("a1", "r1"), ("a2", "r2"), ("a3", "r1")):
        await approvals.record([a_request(approval_id, run_id=run_id)])
    assert [one.approval_id for one in await approvals.pending()] == ["a1", "a2", "a3"]
    assert [one.approval_id for one in await approvals.pending("thread of r1")] == ["a1", "a3"]
    assert [one.request.approval_id for one in await approvals.of_run("r2")] == ["a2"]
