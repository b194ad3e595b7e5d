"""Runs: one per request, and a status that only the owner writes."""

from __future__ import annotations

import asyncio

import pytest

from checkpoints.database import Database
from checkpoints.runs import RunRecord, Runs, RunStatus
from plans.errors import StaleOwner, UsageError
from plans.values import canonical
from tests.checkpoints.scenes import add_run, owned_run


def a_record(
    run_id: str, *, request_id: str = "q1", goal: str = "find order A1", tenant: str = "", thread_id: str = "t1"
) -> RunRecord:
    """A request for a run."""
    return RunRecord(run_id=run_id, thread_id=thread_id, request_id=request_id, goal=goal, tenant=tenant)


async def test_the_same_request_many_times_at_once_is_one_run(database: Database) -> None:
    """Twenty senders of one request get the same run, and one run is stored, with its lease row."""
    runs = Runs(database)
    for round_ in range(5):
        records = await asyncio.gather(
            *(
                runs.create(a_record(f"r{round_}.{i}", request_id=f"q{round_}", thread_id=f"t{round_}"))
                for i in range(20)
            )
        )
        assert len({record.run_id for record in records}) == 1
    assert len(await runs.list()) == 5
    assert await database.fetch("SELECT count(*) AS n FROM surestep.leases WHERE owner IS NULL") == [{"n": 5}]


async def test_the_same_request_with_another_input_is_refused(database: Database) -> None:
    """A request id that is used again for something else is an error that names the first run."""
    runs = Runs(database)
    await runs.create(a_record("r1"))
    with pytest.raises(
        UsageError, match=r"'q1' was already made with another goal or other inputs \(run r1, thread t1"
    ):
        await runs.create(a_record("r2", goal="refund order A1"))
    with pytest.raises(UsageError, match="was already made"):
        await runs.create(a_record("r2").model_copy(update={"input": {"orders": 1}}))
    other = await runs.create(a_record("r2", goal="refund order A1", tenant="another", thread_id="t2"))
    assert other.run_id == "r2"
    assert await runs.by_request("q1", "another") == other
    assert await runs.by_request("q2") is None


async def test_of_requests_that_come_to_one_thread_at_once_one_begins(database: Database) -> None:
    """Nineteen of twenty are told which run the thread has; nothing of them is stored, and its end makes room."""
    runs = Runs(database)
    for round_ in range(5):
        records = [a_record(f"r{round_}.{i}", request_id=f"q{round_}.{i}") for i in range(20)]
        answers = await asyncio.gather(*(runs.create(record) for record in records), return_exceptions=True)
        [stored] = [answer for answer in answers if isinstance(answer, RunRecord)]
        assert len(await runs.list()) == round_ + 1
        refusals = [answer for answer in answers if isinstance(answer, UsageError)]
        assert len(refusals) == 19
        assert all(f"({stored.run_id}, running)" in str(refusal) for refusal in refusals)
        await database.execute("UPDATE surestep.runs SET status = 'failed'")


@pytest.mark.parametrize("status", ["running", "paused", "limited"])
async def test_an_open_run_keeps_its_thread(database: Database, status: RunStatus) -> None:
    """Whatever may still go on is not run over by a new goal."""
    runs = Runs(database)
    await runs.create(a_record("r1"))
    await database.execute("UPDATE surestep.runs SET status = %s", (status,))
    with pytest.raises(UsageError, match=f"has a run that is not finished .r1, {status}") as refused:
        await runs.create(a_record("r2", request_id="q2"))
    assert refused.value.exit_code == (6 if status == "running" else 2)


async def test_a_run_is_read_back_as_it_was_stored(database: Database) -> None:
    """Input of any clean JSON comes back to the type, with the database's times."""
    runs = Runs(database)
    given = {"amount": 1e300, "id": 2**63 - 1, "text": "订单 \\u0000", "nested": [{"a": None}, True, 1.0, 1]}
    stored = await runs.create(a_record("r1").model_copy(update={"input": given}))
    found = await runs.get("r1")
    assert found == stored
    assert found is not None
    assert canonical(found.input) == canonical(given)
    assert found.status == "running"
    assert found.created_at is not None
    assert found.created_at.tzinfo is not None
    assert found.ended_at is None
    assert await runs.get("nope") is None


async def test_runs_are_listed_newest_first_and_a_thread_knows_its_last(database: Database) -> None:
    """A thread's next goal is a new run, and that is the one that counts."""
    runs = Runs(database)
    for number in range(4):
        await runs.create(a_record(f"r{number}", request_id=f"q{number}"))
        await database.execute("UPDATE surestep.runs SET status = 'done'")
    await add_run(database, "elsewhere")
    assert [record.run_id for record in await runs.list(3)] == ["elsewhere", "r3", "r2"]
    latest = await runs.latest("t1")
    assert latest is not None
    assert latest.run_id == "r3"
    assert await runs.latest("nope") is None


@pytest.mark.parametrize(
    ("status", "over"),
    [("running", False), ("paused", False), ("done", True), ("failed", True), ("cancelled", True), ("limited", True)],
)
async def test_the_owner_writes_how_its_run_stands(database: Database, status: RunStatus, over: bool) -> None:
    """Status and summary are stored; the end of the run has a time, and beginning again clears it."""
    runs = Runs(database)
    await owned_run(database)
    await runs.set_status("r1", 1, status, {"answer": "done"})
    found = await runs.get("r1")
    assert found is not None
    assert (found.status, found.summary, found.ended_at is not None) == (status, {"answer": "done"}, over)
    await runs.set_status("r1", 1, "running", {})
    again = await runs.get("r1")
    assert again is not None
    assert again.ended_at is None


@pytest.mark.parametrize("fence", [1, 3])
async def test_a_stale_owner_s_status_is_refused(database: Database, fence: int) -> None:
    """Whoever lost the run cannot say how it stands."""
    runs = Runs(database)
    await owned_run(database, fence=2)
    with pytest.raises(StaleOwner):
        await runs.set_status("r1", fence, "failed", {})
    found = await runs.get("r1")
    assert found is not None
    assert found.status == "running"
