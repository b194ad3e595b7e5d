"""The outbox: every event stands beside what it tells of, and is delivered until somebody has it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from checkpoints.approvals import Approvals
from checkpoints.database import Database
from checkpoints.outbox import Outbox, OutboxEvent
from checkpoints.runs import Runs, RunStatus
from plans.decisions import ApprovalRequest, Approve
from plans.principals import Principal
from tests.checkpoints.scenes import owned_run
from tests.checkpoints.test_approvals import a_request


@pytest.fixture
async def outbox(database: Database) -> Outbox:
    """The outbox of a database with one run that somebody drives."""
    await owned_run(database)
    return Outbox(database)


async def ages(database: Database, seconds: float) -> None:
    """So much time passes for every event."""
    await database.execute(
        "UPDATE surestep.outbox SET at = at - make_interval(secs => %(s)s), next_at = next_at - make_interval(secs =>"
        " %(s)s), ended_at = ended_at - make_interval(secs => %(s)s)",
        {"s": seconds},
    )


def soon(approval_id: str, **fields: Any) -> ApprovalRequest:
    """A question with these fields."""
    return a_request(approval_id).model_copy(update=fields)


def told(events: list[OutboxEvent]) -> list[tuple[str, str | None]]:
    """Which events these are."""
    return [(event.kind, event.request.approval_id if event.request else None) for event in events]


async def test_a_question_is_told_by_the_statement_that_asks_it(database: Database, outbox: Outbox) -> None:
    """One event per question, by its kind; asking the same again tells nothing new, and one withdrawn and asked again
    does."""
    approvals = Approvals(database)
    await approvals.record([soon("a1"), soon("a2", kind="unknown_outcome")])
    await approvals.record([soon("a1")])
    events = await outbox.claim()
    assert sorted(told(events)) == [("approval_requested", "a1"), ("outcome_unknown", "a2")]
    assert {event.thread_id for event in events} == {"thread of r1"}
    await approvals.withdraw(["a1"])
    await approvals.record([soon("a1")])
    assert told(await outbox.claim()) == [("approval_requested", "a1")]


@pytest.mark.parametrize(("status", "kind"), [("failed", "run_failed"), ("limited", "run_limited")])
async def test_a_run_that_does_not_get_through_is_told_with_its_code(
    database: Database, outbox: Outbox, status: RunStatus, kind: str
) -> None:
    """The event is in the commit of the status; the same status again is no news."""
    summary: dict[str, Any] = {"failure": {"code": "NOT_FOUND", "message": "there is no order A1"}}
    for _ in range(2):
        await Runs(database).set_status("r1", 1, status, summary)
    (event,) = await outbox.claim()
    assert (event.kind, event.code, event.message) == (kind, "NOT_FOUND", "there is no order A1")


async def test_a_run_that_ends_well_or_by_a_person_is_not_told(database: Database, outbox: Outbox) -> None:
    """Nobody is called for a result that is waited for, or for an end that was asked for."""
    for status in ("done", "running", "paused", "cancelled"):
        await Runs(database).set_status("r1", 1, status, {})
    assert await outbox.claim() == []


async def test_an_event_exists_only_with_what_it_tells_of(database: Database, outbox: Outbox) -> None:
    """A transaction that is rolled back has asked nothing and tells nothing."""
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        await connection.execute(
            "INSERT INTO surestep.approvals (approval_id, run_id, thread_id, step_id, args_sha256, request) VALUES"
            " ('a1', 'r1', 't', 's1', 'x', '{}')"
        )
        counted = await (await connection.execute("SELECT count(*) FROM surestep.outbox")).fetchone()
        assert counted == (1,)
        await connection.rollback()
    assert (await outbox.standing()).waiting == 0


async def test_a_question_that_was_answered_meanwhile_is_not_told(database: Database, outbox: Outbox) -> None:
    """Decided, expired or withdrawn before anybody was told: the event is outdated, and an expiry is told itself."""
    approvals = Approvals(database)
    await approvals.record([soon("a1"), soon("a2"), a_request("late", age_s=1)])
    await approvals.decide("a1", Approve(), Principal(name="ann"))
    await approvals.withdraw(["a2"])
    assert await outbox.claim() == []
    await approvals.expire()
    (event,) = await outbox.claim()
    assert (event.kind, event.code) == ("approval_expired", "APPROVAL_EXPIRED")
    assert (await outbox.standing()).waiting == 1


async def test_a_question_is_told_anew_when_it_is_for_others_too(database: Database, outbox: Outbox) -> None:
    """At `escalates_at`, once; not before, and not for what nobody escalates or what was answered."""
    approvals = Approvals(database)
    past, future = datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(hours=1)
    await approvals.record(
        [soon("now", escalates_at=past, escalates_to=("head",)), soon("later", escalates_at=future), soon("never")]
    )
    await outbox.claim()
    first, second = await asyncio.gather(approvals.escalate(), approvals.escalate())
    assert [request.approval_id for request in (*first, *second)] == ["now"]
    assert told(await outbox.claim()) == [("approval_escalated", "now")]
    assert await approvals.escalate() == []


async def test_two_who_deliver_never_have_the_same_event(database: Database, outbox: Outbox) -> None:
    """Each event is one claimer's for a minute, and somebody else's after that if he has not said what became of it."""
    await Approvals(database).record([soon(f"a{n}") for n in range(6)])
    shares = await asyncio.gather(*(outbox.claim(2) for _ in range(3)))
    assert sorted(event.request.approval_id for share in shares for event in share if event.request) == [
        f"a{n}" for n in range(6)
    ]
    assert await outbox.claim() == []
    await ages(database, 61)
    again = await outbox.claim()
    assert {event.attempts for event in again} == {2}
    assert {event.event_id for event in again} == {event.event_id for share in shares for event in share}


async def test_an_event_that_could_not_be_delivered_is_due_when_it_was_said_to_be(
    database: Database, outbox: Outbox
) -> None:
    """Its error is kept to be looked at, until it is delivered; delivered, it never comes again."""
    await Approvals(database).record([soon("a1")])
    (event,) = await outbox.claim()
    await outbox.not_delivered(event, "the host answered 503", 300)
    assert ((await outbox.standing()).failing, (await outbox.standing()).last_error) == (1, "the host answered 503")
    await ages(database, 299)
    assert await outbox.claim() == []
    await ages(database, 2)
    (event,) = await outbox.claim()
    await outbox.delivered(event)
    await ages(database, 600)
    assert await outbox.claim() == []
    assert (await outbox.standing()).last_error is None


async def test_what_nobody_could_be_told_for_a_day_is_given_up_and_forgotten_after_a_week(
    database: Database, outbox: Outbox
) -> None:
    """A receiver that is set up years later is not flooded, and the table does not grow for ever."""
    await Approvals(database).record([soon("a1")])
    await ages(database, 25 * 3600)
    assert await outbox.claim() == []
    assert ((await outbox.standing()).given_up, await outbox.forget()) == (1, 0)
    await ages(database, 8 * 24 * 3600)
    assert await outbox.forget() == 1


async def test_events_go_with_their_run(database: Database, outbox: Outbox) -> None:
    """What is erased is not told afterwards."""
    await Approvals(database).record([soon("a1")])
    await database.execute("DELETE FROM surestep.runs")
    assert (await outbox.standing()).waiting == 0
