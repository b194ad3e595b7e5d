"""Every answer that is none: told by its own error, through every door, and nothing is changed by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Approve, Decision, Edit, Reject, Respond
from plans.errors import (
    ApprovalConflict,
    ConflictingDecision,
    DoubleDecision,
    ForeignDecision,
    LateDecision,
    MalformedDecision,
    StaleDecision,
    UnknownApproval,
)
from tests.graph.conftest import OpenAgent
from tests.graph.test_policy import write
from tests.nodes.test_approve import Office
from tests.running import plan, running, step

ASKS = plan(*(step(name, "send", args={"text": name}, require_approval=True) for name in ("a", "b")))
T: Any = {"configurable": {"thread_id": "t"}}


async def ids(agent: Agent, thread: str = "t") -> dict[str, str]:
    """What waits on a thread, by step."""
    return {request.step_id: request.approval_id for request in await agent.approvals(thread)}


async def table(agent: Agent, run: RunResult) -> list[tuple[str, str, int]]:
    """How the run's questions stand, and how many words were said to each."""
    stored = await agent.engine.approvals.of_run(run.run_id)
    return sorted((each.request.step_id, each.status, len(each.votes)) for each in stored)


NUL = "\x00"
MALFORMED: list[Decision] = [
    Respond("sure"), Edit(args={}), Edit(args={"text": 1}), Edit(args={"text": "x", "more": 1}),
    Edit(args={"text": NUL}), Reject(message=NUL), Edit(args={"text": float("nan")}),
]  # fmt: skip


async def test_what_is_no_answer_is_told_by_its_own_error_and_changes_nothing(
    database_url: str, tmp_path: Path
) -> None:
    """Malformed, unknown, foreign: each leaves both questions as they are, also where a good answer came with it."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        run = await agent.run(plan=ASKS, thread_id="t")
        await agent.run(plan=ASKS, thread_id="u")
        here, there = await ids(agent), await ids(agent, "u")
        for decision in MALFORMED:
            with pytest.raises(MalformedDecision):
                await agent.resume("t", decisions={here["b"]: Approve(), here["a"]: decision})
        for wrong, kind in ((there["a"], ForeignDecision), ("nope", UnknownApproval)):
            with pytest.raises(kind):
                await agent.resume("t", decisions={here["b"]: Approve(), wrong: Approve()})
        with pytest.raises(UnknownApproval, match="steps that wait: a, b"):
            await agent.decide("t", "c", Approve())
        assert await table(agent, run) == [("a", "pending", 0), ("b", "pending", 0)]
        assert len(await ids(agent, "u")) == 2
    assert office.sent == []


async def test_a_program_may_answer_as_clients_do_and_bind_its_word_to_what_it_saw(agent_on: OpenAgent) -> None:
    """A mapping is read as exactly as a decision of a client; the hash that it names has to be that of what waits."""
    office = Office()
    agent = await agent_on([office.kit])
    await agent.run(plan=ASKS, thread_id="t")
    a, b = await agent.approvals("t")
    wrong: list[tuple[Any, type[ApprovalConflict]]] = [
        ({"type": "ok"}, MalformedDecision), ("approve", MalformedDecision), (None, MalformedDecision),
        ({"type": "approve", "approval_id": b.approval_id}, MalformedDecision),
        ({"type": "approve", "args_sha256": b.args_sha256}, StaleDecision),
    ]  # fmt: skip
    for said, kind in wrong:
        with pytest.raises(kind):
            await agent.resume("t", decisions={a.approval_id: said})
    with pytest.raises(UnknownApproval):
        await agent.resume("t", decisions={"nope": {"type": "approve"}})
    ended = await agent.resume(
        "t",
        decisions={
            a.approval_id: {"type": "approve", "args_sha256": a.args_sha256},
            b.approval_id: {"type": "edit", "edited_action": {"name": "send", "args": {"text": "c"}}},
        },
    )
    assert (ended.status, sorted(office.sent)) == ("done", ["a", "c"])


async def test_the_second_answer_is_told_what_the_first_was(database_url: str, tmp_path: Path) -> None:
    """One after the other and before the run has gone on, after it has, and after it has ended: the same again is
    double, something else conflicts, and the first one holds."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        run = await agent.run(plan=ASKS, thread_id="t")
        asked = await ids(agent)

        async def told(kind: type[ApprovalConflict], decision: Decision) -> None:
            for again in (agent.decide("t", "a", decision), agent.resume("t", decisions={asked["a"]: decision})):
                with pytest.raises(kind, match=r"send \(step a of thread t\) was already approved by"):
                    await again

        await agent.decide("t", "a", Approve())
        for goes_on in (lambda: agent.resume("t"), lambda: agent.resume("t", decisions={asked["b"]: Reject()}), None):
            await told(DoubleDecision, Approve())
            await told(ConflictingDecision, Reject(message="no"))
            await told(ConflictingDecision, Edit(args={"text": "other"}))
            if goes_on is not None:
                await goes_on()
        assert await table(agent, run) == [("a", "approved", 1), ("b", "rejected", 1)]
    assert office.sent == ["a"]


@pytest.mark.parametrize("door", ["decide", "resume", "graph"])
async def test_of_answers_at_once_one_counts(door: str, database_url: str, tmp_path: Path) -> None:
    """Six people answer the same question at the same moment: one word is stored, the step runs at most once, and it
    runs exactly if that word was a yes."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        run = await agent.run(plan=ASKS, thread_id="t")
        asked = await ids(agent)

        def answer(number: int) -> Any:
            said = Approve() if number % 2 else Reject(message="no")
            if door == "decide":
                return agent.decide("t", "a", said, f"p{number}")
            if door == "resume":
                return agent.resume("t", decisions={asked["a"]: said}, by=f"p{number}")
            given: Any = Command(resume={"decisions": {asked["a"]: said.model_dump()}})
            return agent.graph.ainvoke(given, T)

        answers = await asyncio.gather(*(answer(number) for number in range(6)), return_exceptions=True)
        if door != "graph":
            conflicts = [each for each in answers if isinstance(each, ApprovalConflict)]
            assert {type(each) for each in conflicts} <= {DoubleDecision, ConflictingDecision}
            assert len(conflicts) == 5
        ended = await agent.resume("t", decisions={each: Reject() for each in (await ids(agent)).values()})
        counted = {name: (status, votes) for name, status, votes in await table(agent, run)}
        assert counted["a"][1] == 1
        assert ended.status in ("done", "failed")
    assert office.sent == (["a"] if counted["a"][0] == "approved" else [])


async def test_an_answer_that_comes_too_late_is_told_so(database_url: str, tmp_path: Path) -> None:
    """Before and after the silence is written down, and after the run has gone on; nothing is sent."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t")
        asked = await ids(agent)
        await agent.engine.database.execute("UPDATE surestep.approvals SET expires_at = now() - interval '1 s'")
        steps: list[Callable[[], Any] | None] = [agent.engine.approvals.expire, lambda: agent.resume("t"), None]
        for then in steps:
            with pytest.raises(LateDecision, match="was not answered in time"):
                await agent.resume("t", decisions={asked["a"]: Approve()})
            if then is not None:
                await then()
        assert (await agent.show("t")).status == "failed"
    assert office.sent == []


async def test_an_answer_about_what_is_not_asked_any_more_is_stale(database_url: str, tmp_path: Path) -> None:
    """The run was ended, and its questions with it: a yes to one of them starts nothing."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t")
        asked = await ids(agent)
        assert (await agent.cancel("t")).status == "cancelled"
        with pytest.raises(StaleDecision, match="was withdrawn"):
            await agent.resume("t", decisions={asked["a"]: Approve()})
        assert (await agent.resume("t")).status == "cancelled"
    assert office.sent == []


async def test_an_inbox_is_told_what_of_its_answer_was_not_taken(database_url: str, tmp_path: Path) -> None:
    """With the codes of the errors, in the next interrupt and in the output; what was exact counts all the same."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t")
        asked = await ids(agent)
        answers: list[tuple[Any, list[str]]] = [
            ("yes", ["MALFORMED_DECISION"]),
            ({"decisions": [{"type": "approve"}]}, ["MALFORMED_DECISION"]),
            ({"decisions": {"nope": {"type": "approve"}}}, ["UNKNOWN_APPROVAL"]),
            ({"decisions": {asked["a"]: {"type": "approve", "args_sha256": "other"}}}, ["STALE_DECISION"]),
            ({"decisions": [{"type": "respond", "message": "x"}, {"type": "no"}]}, ["MALFORMED_DECISION"] * 2),
        ]
        for answer, codes in answers:
            given: Any = Command(resume=answer)
            told: Any = await agent.graph.ainvoke(given, T)
            shown = told["__interrupt__"][0].value
            assert [each["code"] for each in shown["refused"]] == codes, answer
            assert len(shown["action_requests"]) == 2
        await agent.decide("t", "a", Reject())
        given = Command(resume={"decisions": {asked["a"]: {"type": "approve"}, asked["b"]: {"type": "approve"}}})
        told = await agent.graph.ainvoke(given, T)
        assert [(each["step_id"], each["code"]) for each in told["refused"]] == [("a", "CONFLICTING_DECISION")]
        assert told["status"] == "failed"
    assert office.sent == ["b"]


async def test_a_copy_of_a_thread_answers_nothing(database_url: str, tmp_path: Path) -> None:
    """Copied by a server, it shows the same interrupt; its run goes on on its own thread alone."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t")
        await agent.graph.checkpointer.acopy_thread("t", "copy")  # type: ignore[union-attr]
        given: Any = Command(resume={"decisions": [{"type": "approve"}] * 2})
        told: Any = await agent.graph.ainvoke(given, {"configurable": {"thread_id": "copy"}})
        assert {each["code"] for each in told["refused"]} == {"FOREIGN_DECISION"}
        assert (len(await ids(agent)), office.sent) == (2, [])
        assert (await agent.graph.ainvoke(given, T))["status"] == "done"
    assert sorted(office.sent) == ["a", "b"]


async def test_nobody_counts_for_two(agent_on: OpenAgent, tmp_path: Path) -> None:
    """Who has a run approve all that it asks has agreed to each of it once, and cannot be the second to agree; who
    has it ask nobody has said no, whoever is to be asked."""
    two = write(tmp_path / "policy.toml", {"tools": "send", "then": "ask", "needed": 2})
    office = Office()
    agent = await agent_on([office.kit], policy=two)
    assert (await agent.run(plan=ASKS, thread_id="t", approve="all")).status == "paused"
    with pytest.raises(DoubleDecision, match="1 more of other people"):
        await agent.decide("t", "a", Approve())
    assert [(vote.via) for vote in (await agent.engine.approvals.waiting("t"))[0].votes] == ["--approve all"]
    for step_id in ("a", "b"):
        await agent.decide("t", step_id, Approve(), by="bob")
    assert (await agent.resume("t")).status == "done"
    write(two, {"tools": "send", "then": "ask", "approvers": ["lead"]})
    await agent.run(plan=ASKS, thread_id="u")
    assert (await agent.resume("u", approve="none")).status == "failed"
    assert sorted(office.sent) == ["a", "b"]
