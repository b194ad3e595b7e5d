"""Approvals: of any number of decisions one counts, and the others are told which."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg.errors import RestrictViolation

from checkpoints.approvals import Approvals
from checkpoints.database import Database
from checkpoints.refusals import Word
from plans.decisions import ApprovalRequest, Approve, Decision, Edit, Reject, Respond
from plans.errors import (
    ApprovalConflict,
    ConflictingDecision,
    DoubleDecision,
    ForeignDecision,
    LateDecision,
    UnknownApproval,
)
from plans.principals import Principal
from plans.values import JSON, sha256_of
from tests.checkpoints.scenes import add_run

ANN, BOB, CAT = (Principal(name=name) for name in ("ann", "bob", "cat"))


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
    told = await approvals.decide("a1", decision, ANN, args_sha256=request.args_sha256)
    assert (told.request, told.status) == (request, status)
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
            *(
                approvals.decide(f"a{round_}", Approve() if who % 2 else Reject(), Principal(name=f"person {who}"))
                for who in range(6)
            ),
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
    await approvals.decide("a1", Approve(), ANN)
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
            await approvals.decide("late", Approve(), ANN)
        assert [one.status for one in await approvals.of_run("r1")] == ["expired", "pending"]
        swept = await asyncio.gather(approvals.expire(), approvals.expire())
        assert [request for part in swept for request in part] == told


async def test_a_decision_about_other_arguments_does_not_count(approvals: Approvals) -> None:
    """Who saw other arguments than those that would run has decided about something else."""
    request = a_request("a1")
    await approvals.record([request])
    with pytest.raises(ApprovalConflict, match="are not the ones that were shown"):
        await approvals.decide("a1", Approve(), ANN, args_sha256=sha256_of({"order_id": "A2"}))
    assert await approvals.pending() == [request]


async def test_only_pending_questions_are_withdrawn_and_they_can_be_asked_again(approvals: Approvals) -> None:
    """A question that no longer arises cannot be answered; should it arise again, it waits again."""
    await approvals.record([a_request("a1"), a_request("a2")])
    await approvals.decide("a1", Approve(), ANN)
    assert await approvals.withdraw(["a1", "a2", "a3"]) == ["a2"]
    with pytest.raises(ApprovalConflict, match="was withdrawn"):
        await approvals.decide("a2", Approve(), ANN)
    await approvals.record([a_request("a1"), a_request("a2")])
    assert [one.status for one in await approvals.of_run("r1")] == ["approved", "pending"]


async def test_an_unknown_approval_is_told_plainly(approvals: Approvals) -> None:
    """A wrong id says where the right ones are listed."""
    with pytest.raises(ApprovalConflict, match="there is no approval nope; `surestep approvals` lists"):
        await approvals.decide("nope", Approve(), ANN)


async def test_each_thread_has_its_own_list(approvals: Approvals) -> None:
    """What waits can be listed for one thread or for all, oldest first."""
    for approval_id, run_id in (("a1", "r1"), ("a2", "r2"), ("a3", "r1")):
        await approvals.record([a_request(approval_id, run_id=run_id)])
    assert [one.approval_id for one in await approvals.pending()] == ["a1", "a2", "a3"]
    assert [one.approval_id for one in await approvals.pending("thread of r1")] == ["a1", "a3"]
    assert [one.request.approval_id for one in await approvals.of_run("r2")] == ["a2"]


def asked_of(approval_id: str, needed: int = 1, *approvers: str, **more: Any) -> ApprovalRequest:
    """A refund that so many people with one of these roles have to agree to."""
    return a_request(approval_id).model_copy(update={"needed": needed, "approvers": approvers, **more})


def person(name: str, *roles: str, tenant: str = "") -> Principal:
    """Somebody with these roles."""
    return Principal(name=name, roles=roles, tenant=tenant)


async def test_as_many_people_as_are_needed_have_to_agree(approvals: Approvals) -> None:
    """It waits until the last of them, everybody's word is on record as who they were, and nobody counts twice."""
    await approvals.record([asked_of("a1", 3)])
    for voter in ("ann", "bob"):
        told = await approvals.decide("a1", Approve(), person(voter, "clerk"), via="cli")
        assert (told.status, told.decision, told.decided_by) == ("pending", None, None)
        with pytest.raises(DoubleDecision, match=f"{voter} has agreed to issue_refund"):
            await approvals.decide("a1", Approve(), person(voter, "clerk"))
    assert len(await approvals.pending()) == 1
    told = await approvals.decide("a1", Approve(), person("cat"))
    assert (told.status, told.decision, told.decided_by) == ("approved", Approve(), "ann, bob, cat")
    assert [(vote.by, vote.via) for vote in told.votes] == [
        (person("ann", "clerk"), "cli"),
        (person("bob", "clerk"), "cli"),
        (person("cat"), "library"),
    ]


async def test_one_no_ends_what_several_have_to_agree_to(approvals: Approvals) -> None:
    """Also of who has agreed before, and the yes of the others is not taken for a decision."""
    await approvals.record([asked_of("a1", 2), asked_of("a2", 2)])
    await approvals.decide("a1", Approve(), ANN)
    await approvals.decide("a2", Approve(), ANN)
    assert (await approvals.decide("a1", Reject(message="no"), ANN)).status == "rejected"
    assert (await approvals.decide("a2", Reject(message="no"), BOB)).decided_by == "bob"
    with pytest.raises(ConflictingDecision, match="already rejected by bob"):
        await approvals.decide("a2", Approve(), CAT)


@pytest.mark.parametrize("needed", [1, 2, 5])
async def test_of_many_votes_at_once_each_is_counted_once(approvals: Approvals, needed: int) -> None:
    """Twelve people, each twice and all at the same moment: exactly as many words are stored as were needed."""
    await approvals.record([asked_of("a1", needed)])
    people = [person(f"p{number % 12}") for number in range(24)]
    answers = await asyncio.gather(
        *(approvals.decide("a1", Approve(), each) for each in people), return_exceptions=True
    )
    (stored,) = await approvals.of_run("r1")
    assert (stored.status, len(stored.votes), len({vote.by.name for vote in stored.votes})) == (
        "approved",
        needed,
        needed,
    )
    assert sum(isinstance(answer, DoubleDecision) for answer in answers) == 24 - needed


async def test_what_was_agreed_to_before_a_question_was_withdrawn_counts_no_more(approvals: Approvals) -> None:
    """Asked again it starts anew; the words of the first asking stay on record."""
    await approvals.record([asked_of("a1", 2)])
    await approvals.decide("a1", Approve(), ANN)
    await approvals.withdraw(["a1"])
    (gone,) = await approvals.of_run("r1")
    assert (gone.status, gone.decision, gone.decided_by) == ("withdrawn", None, None)
    await approvals.record([asked_of("a1", 2)])
    assert (await approvals.decide("a1", Approve(), BOB)).status == "pending"
    assert (await approvals.decide("a1", Approve(), ANN)).decided_by == "bob, ann"


async def test_what_too_few_have_agreed_to_in_time_is_a_no(approvals: Approvals, database: Database) -> None:
    """Two of three is not three: it expires with no decision, before and after that is written down."""
    await approvals.record([asked_of("a1", 2, expires_at=datetime.now(UTC) + timedelta(seconds=60))])
    await approvals.decide("a1", Approve(), ANN)
    await database.execute("UPDATE surestep.approvals SET expires_at = now() - interval '1 s'")
    for _ in range(2):
        (late,) = await approvals.of_run("r1")
        assert (late.status, late.decision) == ("expired", None)
        with pytest.raises(LateDecision):
            await approvals.decide("a1", Approve(), BOB)
        await approvals.expire()


async def test_only_those_who_are_asked_decide(approvals: Approvals) -> None:
    """A role that is not asked neither approves nor rejects; once it is escalated those above may, too. A caller who
    wants nobody asked says no in their own name."""
    await approvals.record([asked_of("a1", 1, "lead"), asked_of("a2", 1, "lead", escalates_to=("boss",))])
    for decision in (Approve(), Reject(message="no"), Edit(args={})):
        with pytest.raises(ForeignDecision, match="is decided by lead; eve has the roles: clerk"):
            await approvals.decide("a1", decision, person("eve", "clerk"))
    assert (await approvals.decide("a1", Approve(), person("ann", "clerk", "lead"))).status == "approved"
    with pytest.raises(ForeignDecision):
        await approvals.decide("a2", Approve(), person("bob", "boss"))
    assert (await approvals.decide("a2", Reject(), person("eve"), refuses=True)).status == "rejected"
    for at, ok in ((60, False), (-1, True)):
        name = f"b{ok}"
        when = datetime.now(UTC) + timedelta(seconds=at)
        await approvals.record([asked_of(name, 1, "lead", escalates_to=("boss",), escalates_at=when)])
        decided = await asyncio.gather(approvals.decide(name, Approve(), person("bob", "boss")), return_exceptions=True)
        assert isinstance(decided[0], ForeignDecision) is not ok


async def test_nothing_is_told_to_another_tenant(approvals: Approvals) -> None:
    """Who is of another tenant is told what is told of an id that was never asked."""
    await approvals.record([a_request("a1")])
    with pytest.raises(UnknownApproval) as none:
        await approvals.decide("a2", Approve(), ANN)
    with pytest.raises(UnknownApproval) as foreign:
        await approvals.decide("a1", Approve(), person("eve", tenant="other"))
    assert str(none.value).replace("a2", "a1") == str(foreign.value)
    assert await approvals.get("a1", "other") is None
    with pytest.raises(ForeignDecision, match="is asked on another thread"):
        await approvals.decide("a1", Approve(), ANN, thread_id="thread of r2")


async def test_of_several_words_all_count_or_none(approvals: Approvals) -> None:
    """One that does not count takes the others back, and the error is its own."""
    await approvals.record([a_request("a1"), a_request("a2"), a_request("a3")])
    await approvals.decide("a2", Reject(), BOB)
    words = [Word(each, Approve()) for each in ("a1", "a2", "a3")]
    with pytest.raises(ConflictingDecision, match="already rejected by bob"):
        await approvals.decide_all(words, ANN)
    assert [one.status for one in await approvals.of_run("r1")] == ["pending", "rejected", "pending"]
    told = await approvals.decide_all([words[2], words[0]], ANN)
    assert [(one.request.approval_id, one.status) for one in told] == [("a3", "approved"), ("a1", "approved")]
    assert await approvals.decide_all([], ANN) == []


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        (Approve(), Approve(), DoubleDecision),
        (Reject(message="a"), Reject(message="b"), DoubleDecision),
        (Edit(args={"a": 1}), Edit(args={"a": 1}), DoubleDecision),
        (Edit(args={"a": 1}), Edit(args={"a": 2}), ConflictingDecision),
        (Respond("x"), Respond("y"), ConflictingDecision),
        (Approve(), Reject(), ConflictingDecision),
        (Reject(), Approve(), ConflictingDecision),
    ],
)
async def test_the_same_again_is_told_apart_from_something_else(
    approvals: Approvals, first: Decision, then: Decision, kind: type[ApprovalConflict]
) -> None:
    """Neither changes what was decided, and both say what that was."""
    await approvals.record([a_request("a1")])
    await approvals.decide("a1", first, ANN)
    with pytest.raises(kind, match="by ann") as told:
        await approvals.decide("a1", then, ANN)
    assert type(told.value) is kind
    assert [(one.decision, len(one.votes)) for one in await approvals.of_run("r1")] == [(first, 1)]


async def test_nothing_that_was_decided_can_be_rewritten(approvals: Approvals, database: Database) -> None:
    """Not by statements of others either: decisions and answered requests stay, until their run goes."""
    await approvals.record([a_request("a1")])
    await approvals.decide("a1", Reject(), ANN)
    for statement in (
        "UPDATE surestep.decisions SET decided_by = 'eve'",
        "DELETE FROM surestep.decisions",
        "UPDATE surestep.approvals SET status = 'approved'",
        "UPDATE surestep.approvals SET status = 'pending'",
    ):
        with pytest.raises(RestrictViolation):
            await database.execute(statement)
    assert [one.status for one in await approvals.of_run("r1")] == ["rejected"]
    await database.execute("DELETE FROM surestep.runs WHERE run_id = 'r1'")
    assert await database.fetch("SELECT * FROM surestep.decisions") == []
