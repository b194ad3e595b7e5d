"""Tests of effects of which nobody knows whether they happened: sent again, asked about, settled, and never guessed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graph.gateway import Agent
from nodes.calling import Attempt, _code
from plans.decisions import Approve, Decision, Edit, Reject, Respond
from plans.errors import ApprovalConflict
from plans.failure import Failure, ToolFailure
from plans.plan import Step
from tests.running import plan, running, step
from tools.call import CallFailure
from tools.registry import Registry, ToolContext, Toolkit


class Post:
    """Tools whose answer gets lost as often as the test says, though the effect has happened."""

    def __init__(self) -> None:
        self.lost = 0
        self.keys: list[str] = []
        self.sent: list[str] = []
        self.kit = Toolkit("post")
        self.kit.tool(effect="irreversible")(self._send())
        self.kit.tool(effect="idempotent", retry={"max_attempts": 1}, fallbacks=["other"])(self._charge())
        self.kit.tool(effect="idempotent")(self._other())
        self.kit.tool(effect="read")(self._look())

    @staticmethod
    def _look() -> Any:
        async def look() -> str:
            """Look."""
            return "hi"

        return look

    def _answer_lost(self) -> bool:
        self.lost -= 1
        return self.lost >= 0

    def _send(self) -> Any:
        async def send(text: str) -> dict[str, str]:
            """Send it."""
            self.sent.append(text)
            if self._answer_lost():
                raise ConnectionError("reset by peer")
            return {"sent": text}

        return send

    def _charge(self) -> Any:
        async def charge(amount: int, ctx: ToolContext) -> dict[str, int]:
            """Charge it."""
            self.keys.append(ctx.idempotency_key)
            if self._answer_lost():
                raise ConnectionError("reset by peer")
            return {"charged": amount}

        return charge

    def _other(self) -> Any:
        async def other(amount: int) -> dict[str, int]:
            """Another way to charge."""
            self.keys.append("other")
            return {"charged": amount}

        return other


SEND = step("s", "send", args={"text": "hi"})
AFTER = step("t", "send", args={"text": "${s.sent}!"})
CHARGE = step("c", "charge", args={"amount": 5})


async def in_doubt(agent: Agent, post: Post) -> str:
    """A run that waits because the answer to its letter was lost; the question's id."""
    post.lost = 1
    paused = await agent.run(plan=plan(SEND, AFTER, answer="${t.sent}"), thread_id="t")
    assert (paused.status, [each.kind for each in paused.approvals]) == ("paused", ["unknown_outcome"])
    return paused.approvals[0].approval_id


@pytest.mark.parametrize(
    ("decision", "sent", "statuses"),
    [
        (Approve(), ["hi", "hi", "hi!"], ["done", "done"]),
        (Respond('{"sent": "it"}'), ["hi", "it!"], ["done", "done"]),
        (Reject(message="leave it"), ["hi"], ["skipped", "skipped"]),
    ],
    ids=["it has not happened", "it has, with this result", "leave it"],
)
async def test_each_answer_does_what_it_says(
    database_url: str, tmp_path: Path, decision: Decision, sent: list[str], statuses: list[str]
) -> None:
    """Approve runs it, respond takes the person's result for its own, reject leaves it and what depends on it out."""
    post = Post()
    async with running(database_url, tmp_path, [post.kit]) as agent:
        approval = await in_doubt(agent, post)
        result = await agent.resume("t", decisions={approval: decision})
    assert (result.status, [each.status for each in result.steps], post.sent) == ("done", statuses, sent)


async def test_no_rule_about_approvals_answers_a_question_of_fact(database_url: str, tmp_path: Path) -> None:
    """`approve="all"` and `"none"` leave an unknown outcome to a person: nothing is sent again, nothing dropped."""
    post = Post()
    async with running(database_url, tmp_path, [post.kit]) as agent:
        await in_doubt(agent, post)
        for mode in ("all", "none"):
            again = await agent.resume("t", approve=mode)
            assert (again.status, len(again.approvals), post.sent) == ("paused", 1, ["hi"])
            told = again.as_json()["steps"][0]
            assert (told["status"], told["in_doubt"]) == ("running", True)


async def test_an_unknown_outcome_cannot_be_answered_with_other_arguments(database_url: str, tmp_path: Path) -> None:
    """What is in doubt is frozen: an edit is refused, and the question stays."""
    post = Post()
    async with running(database_url, tmp_path, [post.kit]) as agent:
        approval = await in_doubt(agent, post)
        with pytest.raises(ApprovalConflict, match="allowed: approve, reject, respond"):
            await agent.resume("t", decisions={approval: Edit(args={"text": "x"})})
        assert len(await agent.approvals("t")) == 1


async def test_the_same_question_asked_again_after_its_answer_is_a_new_one(database_url: str, tmp_path: Path) -> None:
    """A person says that it has not happened; it is sent, and its answer is lost once more: that is asked anew."""
    post = Post()
    async with running(database_url, tmp_path, [post.kit]) as agent:
        first = await in_doubt(agent, post)
        post.lost = 1
        again = await agent.resume("t", decisions={first: Approve()})
        assert again.status == "paused"
        assert again.approvals[0].approval_id != first
        done = await agent.resume("t", decisions={again.approvals[0].approval_id: Respond('{"sent": "hi"}')})
    assert (done.status, post.sent) == ("done", ["hi", "hi", "hi!"])


async def test_an_idempotent_effect_in_doubt_is_sent_again_under_its_key(database_url: str, tmp_path: Path) -> None:
    """The other side sees one key, however often; no alternative is tried while the first may have happened."""
    post = Post()
    post.lost = 1
    async with running(database_url, tmp_path, [post.kit]) as agent:
        result = await agent.run(plan=plan(CHARGE))
    assert (result.status, len(post.keys), len(set(post.keys))) == ("done", 2, 1)
    assert "other" not in post.keys


async def test_an_idempotent_effect_whose_tries_are_used_up_asks_a_person(database_url: str, tmp_path: Path) -> None:
    """After its last attempt it is still not known, so neither the alternative nor a failure is the answer."""
    post = Post()
    post.lost = 99
    async with running(database_url, tmp_path, [post.kit]) as agent:
        result = await agent.run(plan=plan(CHARGE), limits={"max_attempts": 1})
    assert (result.status, [each.kind for each in result.approvals]) == ("paused", ["unknown_outcome"])
    assert len(post.keys) == 1


async def test_a_letter_that_was_sent_without_success_is_not_sent_again_unasked(
    database_url: str, tmp_path: Path
) -> None:
    """Its criterion is false, but it has gone out: the run fails, and another step with the same letter asks first."""
    post = Post()
    wrong = {**SEND, "success_when": "sent == 'bye'"}
    again = step("again", "send", "s", args={"text": "hi"}, on_dependency_failure="degrade")
    async with running(database_url, tmp_path, [post.kit]) as agent:
        result = await agent.run(plan=plan(wrong, again), thread_id="t")
    assert (result.status, post.sent) == ("paused", ["hi"])
    assert "repeat what step s has done" in result.approvals[0].reason


async def test_two_steps_with_one_effect_that_are_ready_together_are_not_both_let_through(
    database_url: str, tmp_path: Path
) -> None:
    """They ask in the same moment, before either has anything in the journal; one goes on, the other asks a person."""
    post = Post()
    steps = [step("l", "look"), *(step(name, "send", args={"text": "${l}"}) for name in ("one", "twin"))]
    async with running(database_url, tmp_path, [post.kit]) as agent:
        result = await agent.run(plan=plan(*steps))
    assert (result.status, post.sent, len(result.approvals)) == ("paused", ["hi"], 1)


kit = Toolkit("codes")


@kit.tool(effect="read")
def look() -> int:
    """Look."""
    return 1


@kit.tool(effect="idempotent")
def put() -> int:
    """Put."""
    return 1


@pytest.mark.parametrize(
    ("tool", "doubted", "code", "called", "open_", "expected"),
    [
        ("look", False, "UNKNOWN_OUTCOME", True, False, "UNAVAILABLE"),
        ("put", False, "UNAVAILABLE", True, False, "UNAVAILABLE"),
        ("put", False, "UNAVAILABLE", True, True, "UNKNOWN_OUTCOME"),
        ("put", False, "BREAKER_OPEN", False, False, "BREAKER_OPEN"),
        ("put", True, "BREAKER_OPEN", False, False, "UNKNOWN_OUTCOME"),
        ("put", True, "UNAVAILABLE", True, False, "UNKNOWN_OUTCOME"),
        ("put", True, "NOT_FOUND", True, False, "NOT_FOUND"),
    ],
)
def test_what_a_failed_call_says_about_its_effect(
    tool: str, doubted: bool, code: str, called: bool, open_: bool, expected: str
) -> None:
    """A call that was refused, or never got through, says nothing about the one before; a read is never in doubt; what
    may have happened is unknown, whatever else the failure is."""
    attempt = Attempt("s1", Step(id="s1", tool=tool), Registry.of(kit)[tool], {}, "key", 2, doubted=doubted)
    outcome = CallFailure(Failure(code=code, message="no"), called=called, in_doubt=open_)
    assert _code(attempt, outcome) == expected


async def test_a_constraint_checked_at_the_commit_is_the_tools_failure(database_url: str, tmp_path: Path) -> None:
    """Nothing of the transaction is kept, the run fails in plain words, and nobody is told of another worker."""
    bank = Toolkit("bank")

    @bank.tool(effect="transactional")
    async def book(ctx: ToolContext) -> dict[str, bool]:
        """Book to an account that there is not."""
        await ctx.connection.execute("INSERT INTO entries VALUES (7)")
        return {"booked": True}

    async with running(database_url, tmp_path, [bank]) as agent:
        database = agent.engine.database
        await database.execute("CREATE TABLE accounts (id integer PRIMARY KEY)")
        await database.execute(
            "CREATE TABLE entries (account integer REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)"
        )
        result = await agent.run(plan=plan(step("b", "book")))
        entries = await database.fetch("SELECT * FROM entries")
    assert (result.status, [each.code for each in result.failures], entries) == ("failed", ["RULE_VIOLATED"], [])
    assert "could not be committed" in (result.answer or "")


async def test_a_definite_failure_of_an_effect_is_tried_again_without_asking(database_url: str, tmp_path: Path) -> None:
    """The other side says that nothing has happened: a retry repeats nothing."""
    shop = Toolkit("shop")
    tries: list[str] = []

    @shop.tool(effect="irreversible")
    async def ship(ctx: ToolContext) -> dict[str, bool]:
        """Ship it, at the second try."""
        tries.append(ctx.idempotency_key)
        await asyncio.sleep(0)
        if len(tries) == 1:
            raise ToolFailure("CONFLICT", "the parcel is being weighed")
        return {"shipped": True}

    async with running(database_url, tmp_path, [shop]) as agent:
        result = await agent.run(plan=plan(step("p", "ship")))
    assert (result.status, len(tries), len(set(tries))) == ("done", 2, 1)
