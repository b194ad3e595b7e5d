"""Tests of fallbacks in a run: each kind as an attempt of its own, admitted again, with its verdict in state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graph.gateway import Agent
from nodes.state import Verdict
from plans.decisions import Approve, Reject
from plans.failure import ToolFailure
from tests.running import plan, running, step
from tools.registry import Toolkit

ONCE = {"max_attempts": 1}
LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}


class Price(BaseModel):
    """A price in cents."""

    item: str
    cents: int


class Market:
    """Prices from a tool that fails as the test says, and what stands in for it."""

    def __init__(self, fallbacks: list[Any], **spec: Any) -> None:
        self.calls: Counter[str] = Counter()
        self.failing: ToolFailure | None = None
        self.kit = Toolkit("market")
        spec = {"effect": "read", "retry": ONCE, "breaker": LENIENT, **spec}
        self.kit.tool(fallbacks=fallbacks, **spec)(self._price())
        self.kit.tool(effect="read", retry=ONCE, breaker=LENIENT)(self._old_price())
        self.kit.tool(effect="read", retry=ONCE)(self._double())

    def _price(self) -> Any:
        async def price(item: str) -> Price:
            """Price of an item."""
            self.calls["price"] += 1
            if self.failing is not None:
                raise self.failing
            return Price(item=item, cents=self.calls["price"])

        return price

    def _old_price(self) -> Any:
        async def old_price(item: str, year: int = 1999) -> Price:
            """What it cost then."""
            self.calls["old_price"] += 1
            return Price(item=item, cents=year)

        return old_price

    def _double(self) -> Any:
        async def double(number: int) -> dict[str, int]:
            """Twice."""
            self.calls["double"] += 1
            return {"number": number * 2}

        return double


PRICE = step("s1", "price", args={"item": "ball"})
DOUBLE = step("s2", "double", args={"number": "${s1.cents}"})
TRIPLE = step("s3", "double", args={"number": "${s2.number}"})
DOWN = ToolFailure("UNAVAILABLE", "the market is closed")
GONE = ToolFailure("NOT_FOUND", "there is no ball")


async def verdicts(agent: Agent, thread_id: str) -> list[tuple[str, str, str | None]]:
    """The verdicts that waited in state where an edge was taken: what was decided, why and by which fallback."""
    config: Any = {"configurable": {"thread_id": thread_id}}
    found: dict[tuple[str, str, str | None], None] = {}
    states: list[Any] = [snapshot.values async for snapshot in agent.graph.aget_state_history(config)]
    for state in reversed(states):
        for verdict in (Verdict.model_validate(each) for each in state.get("verdicts") or []):
            found[verdict.verdict, verdict.code, verdict.alternative] = None
    return list(found)


async def test_an_open_breaker_is_answered_by_what_was_kept(database_url: str, tmp_path: Path) -> None:
    """The kept result comes first, wherever it stands; it says how old it is, and everything that rests on it says
    where it comes from: the steps, the JSON, the answer and the state."""
    market = Market(["old_price", {"cached": 3600}], breaker={"in_a_row": 1})
    async with running(database_url, tmp_path, [market.kit]) as agent:
        fresh = await agent.run(plan=plan(PRICE))
        assert (fresh.steps[0].degraded, fresh.steps[0].mock) == (None, False)
        await agent.engine.database.execute("UPDATE surestep.tool_cache SET stored_at = stored_at - '40 min'::interval")
        market.failing = DOWN
        await agent.run(plan=plan(PRICE), limits={"max_attempts": 1})
        assert market.calls == {"price": 2, "old_price": 1}
        result = await agent.run(plan=plan(PRICE, DOUBLE, TRIPLE), thread_id="t")
        state: Any = (await agent.graph.aget_state({"configurable": {"thread_id": "t"}})).values
        taken = await verdicts(agent, "t")
    assert (result.status, market.calls["price"], market.calls["old_price"]) == ("done", 2, 1)
    assert taken == [("fallback", "BREAKER_OPEN", "cached result")]
    told = "answered by a result of price from 40 minutes ago, because price failed: "
    own, below, last = (each.degraded or "" for each in result.steps)
    assert own.startswith(told)
    assert below.startswith(f"made from s1, which was {told}")
    assert last.startswith(f"made from s1, which was {told}")
    assert f"Note: step s1 was {own}; s2, s3 rest on it." in (result.answer or "")
    assert [each["degraded"] for each in result.as_json()["steps"]] == [own, below, last]
    assert state["degraded"] == {"s1": own, "s2": below, "s3": last}
    assert (result.usage.attempts, result.usage.cached) == (2, 1)  # what an open breaker refuses is no call


async def test_where_nothing_is_kept_the_tool_is_asked_again_when_its_breaker_lets_it(
    database_url: str, tmp_path: Path
) -> None:
    """The kept result first, then a retry, not before the breaker's delay is over; a miss hides nothing."""
    market = Market([{"cached": 3600}], breaker={"in_a_row": 1, "cooldown_s": 3})
    market.failing = DOWN
    async with running(database_url, tmp_path, [market.kit]) as agent:
        await agent.run(plan=plan(step("s1", "price", args={"item": "cup"})), limits={"max_attempts": 1})
        market.failing = None
        result = await agent.run(plan=plan(PRICE), thread_id="t")
        rows = await agent.engine.journal.read(result.run_id)
    made = [Verdict.model_validate(row.body["verdict"]) for row in rows if row.kind == "verdict"]
    assert [(each.verdict, each.code) for each in made] == [("fallback", "BREAKER_OPEN"), ("retry", "BREAKER_OPEN")]
    assert "no result of price from the last 1 hour is kept" in made[1].reason
    assert (result.status, result.steps[0].degraded, market.calls["price"]) == ("done", None, 2)


async def test_a_kept_result_that_is_too_old_is_none_and_the_next_fallback_answers(
    database_url: str, tmp_path: Path
) -> None:
    """At most so many seconds, and not one more."""
    market = Market([{"cached": 3600}, "old_price"])
    async with running(database_url, tmp_path, [market.kit]) as agent:
        await agent.run(plan=plan(PRICE))
        await agent.engine.database.execute("UPDATE surestep.tool_cache SET stored_at = stored_at - '61 min'::interval")
        market.failing = DOWN
        result = await agent.run(plan=plan(PRICE), limits={"max_attempts": 1}, thread_id="t")
        taken = await verdicts(agent, "t")
    assert [alternative for _, _, alternative in taken] == ["cached result", "old_price"]
    assert (result.status, result.steps[0].tool) == ("done", "old_price")


@pytest.mark.parametrize(("last", "tool"), [("old_price", "old_price"), ({"mock": True}, "price")])
async def test_a_switched_off_tool_is_not_answered_by_what_it_has_given_before(
    database_url: str, tmp_path: Path, last: Any, tool: str
) -> None:
    """Whoever switches a tool off does not want its results: another tool answers, or a mock that says so."""
    market = Market([{"cached": 3600}, last])
    async with running(database_url, tmp_path, [market.kit]) as agent:
        await agent.run(plan=plan(PRICE))
        await agent.engine.database.execute(
            "INSERT INTO surestep.tool_settings (tool, settings, updated_by)"
            " VALUES ('price', '{\"enabled\": false}', 'ann')"
        )
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(plan=plan(PRICE))
    assert (result.status, result.steps[0].tool, market.calls["price"]) == ("done", tool, 1)
    assert result.steps[0].mock is (tool == "price")


async def test_a_fork_takes_over_what_is_to_be_told(database_url: str, tmp_path: Path) -> None:
    """A mock that is kept by reference stays one, and what is made from it anew says so."""
    market = Market([{"mock": True}])
    market.failing = GONE
    async with running(database_url, tmp_path, [market.kit]) as agent:
        await agent.run(plan=plan(PRICE, DOUBLE, TRIPLE), thread_id="t")
        market.failing = None
        forked = await agent.fork("t", "s3", new_thread_id="u")
    assert [each.mock for each in forked.steps] == [True, True, True]
    assert (forked.steps[2].degraded or "").startswith("made from s1, which was answered by a mock")
    assert market.calls["price"] == 1


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"item": "thing"}, "'item' is 'thing', which finds nothing"),
        ({"item": "item", "year": "item"}, "year"),
        ({"item": "item", "year": "to_number(other.part)"}, "to_number"),
    ],
    ids=["nothing found", "wrong type", "no function of that"],
)
async def test_an_alternative_whose_arguments_cannot_be_made_never_starts(
    database_url: str, tmp_path: Path, mapping: dict[str, str], said: str
) -> None:
    """A mapping that finds nothing, or arguments that its schema refuses, is a failure with its reason, and the next
    fallback is tried."""
    market = Market([{"tool": "old_price", "args": mapping}, {"tool": "old_price", "args": {"item": "item"}}])
    market.failing = DOWN
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(plan=plan(PRICE), limits={"max_attempts": 1}, thread_id="t")
        rows = await agent.engine.journal.read(result.run_id)
        taken = await verdicts(agent, "t")
    [refusal] = [row.body["failure"] for row in rows if row.kind == "refusal"]
    assert refusal["code"] in ("UNRESOLVED_REFERENCE", "INVALID_ARGS")
    assert said in refusal["message"]
    assert [alternative for _, _, alternative in taken] == ["old_price", "old_price #2"]
    assert (result.status, market.calls["old_price"]) == ("done", 1)


async def test_a_mock_is_marked_wherever_it_goes(database_url: str, tmp_path: Path) -> None:
    """A value of the declared type, and nowhere taken for a result: not in the steps, the JSON, the answer, the state,
    nor in what was made from it."""
    market = Market([{"mock": True}])
    market.failing = GONE
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(
            plan=plan(PRICE, DOUBLE, TRIPLE, step("s4", "double", args={"number": 1})), thread_id="t"
        )
        made_up = await agent.output("t", result.steps[0].output_ref or "")
        state: Any = (await agent.graph.aget_state({"configurable": {"thread_id": "t"}})).values
        taken = await verdicts(agent, "t")
    assert taken == [("fallback", "NOT_FOUND", "mock result")]
    assert made_up == b'{"item":"mock","cents":0}'
    assert [each.mock for each in result.steps] == [True, True, True, False]
    assert [each["mock"] for each in result.as_json()["steps"]] == [True, True, True, False]
    told = "answered by a mock and not by price, because price failed: there is no ball"
    assert [each.degraded for each in result.steps] == [told, *[f"made from s1, which was {told}"] * 2, None]
    assert f"Note: step s1 was {told}; s2, s3 rest on it." in (result.answer or "")
    assert state["degraded"]["s3"] == f"made from s1, which was {told}"


async def test_a_code_ends_the_step_and_what_follows_is_what_follows_that_code(
    database_url: str, tmp_path: Path
) -> None:
    """The soft failure has become a refusal: nothing is tried again, and what can do without goes on."""
    market = Market([{"code": "RULE_VIOLATED"}])
    market.failing = DOWN
    lenient = {**DOUBLE, "args": {"number": 4}, "depends_on": ["s1"], "on_dependency_failure": "degrade"}
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(plan=plan(PRICE, lenient), limits={"max_attempts": 1}, thread_id="t")
        strict = await agent.run(plan=plan(PRICE, DOUBLE), limits={"max_attempts": 1})
        rows = await agent.engine.journal.read(result.run_id)
    made = [Verdict.model_validate(row.body["verdict"]) for row in rows if row.kind == "verdict"]
    assert [(each.verdict, each.code, each.alternative) for each in made] == [
        ("fallback", "UNAVAILABLE", "code RULE_VIOLATED"),
        ("next", "RULE_VIOLATED", None),
    ]
    assert (result.status, result.steps[1].status, market.calls["price"]) == ("done", "done", 2)
    assert [failure.code for failure in result.failures] == ["RULE_VIOLATED"]
    assert "the market is closed" in (result.answer or "")
    assert (strict.status, strict.steps[1].status) == ("failed", "pending")


async def test_a_code_that_would_be_tried_again_elsewhere_ends_the_step_all_the_same(
    database_url: str, tmp_path: Path
) -> None:
    """There is nothing behind a code that a retry could call."""
    market = Market([{"code": "TIMEOUT"}])
    market.failing = GONE
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(plan=plan(PRICE))
    assert (result.status, [failure.code for failure in result.failures]) == ("failed", ["TIMEOUT"])
    assert (result.steps[0].attempts, market.calls["price"]) == (2, 1)


class Till:
    """A way to pay that fails, and another that a person has to agree to."""

    def __init__(self, *more: Any) -> None:
        self.paid: list[str] = []
        self.kit = Toolkit("till")
        fallback = {"tool": "pay_by_card", "args": {"who": "account"}}
        self.kit.tool(effect="idempotent", retry=ONCE, breaker=LENIENT, fallbacks=[fallback, *more])(self._charge())
        self.kit.tool(effect="idempotent", retry=ONCE)(self._pay())
        self.kit.tool(effect="idempotent", retry=ONCE)(self._note())

    def _charge(self) -> Any:
        async def charge(account: str) -> dict[str, str]:
            """Charge an account."""
            raise ToolFailure("NOT_FOUND", "there is no such account")

        return charge

    def _pay(self) -> Any:
        async def pay_by_card(who: str) -> dict[str, str]:
            """Pay."""
            self.paid.append(f"card of {who}")
            return {"paid": who}

        return pay_by_card

    def _note(self) -> Any:
        async def note(account: str) -> dict[str, str]:
            """Write it down."""
            self.paid.append(f"note about {account}")
            return {"paid": "later"}

        return note


CHARGE = step("c", "charge", args={"account": "ann"})


async def test_an_alternative_of_high_risk_asks_a_person_about_itself(database_url: str, tmp_path: Path) -> None:
    """The question and its approval are about the alternative and its own arguments, and it is called once."""
    till = Till()
    async with running(database_url, tmp_path, [till.kit]) as agent:
        paused = await agent.run(plan=plan(CHARGE), thread_id="t")
        [request] = paused.approvals
        assert (paused.status, request.tool, request.args, till.paid) == ("paused", "pay_by_card", {"who": "ann"}, [])
        result = await agent.resume("t", decisions={request.approval_id: Approve()})
        assert await verdicts(agent, "t") == [("fallback", "NOT_FOUND", "pay_by_card")]
    assert (result.status, till.paid) == ("done", ["card of ann"])
    assert (result.steps[0].degraded or "").startswith("answered by pay_by_card, because charge failed")


@pytest.mark.parametrize(
    ("more", "status", "paid"), [((), "failed", []), (("note",), "done", ["note about ann"])], ids=["the last", "not"]
)
async def test_a_rejected_alternative_leads_to_the_next_one_or_fails(
    database_url: str, tmp_path: Path, more: tuple[str, ...], status: str, paid: list[str]
) -> None:
    """A no is about this alternative: it is not called, the next one asks for itself; without one the step fails."""
    till = Till(*more)
    async with running(database_url, tmp_path, [till.kit]) as agent:
        paused = await agent.run(plan=plan(CHARGE), thread_id="t")
        result = await agent.resume("t", decisions={paused.approvals[0].approval_id: Reject(message="no card")})
    assert (result.status, till.paid) == (status, paid)
    assert [failure.code for failure in result.failures] == ([] if more else ["REJECTED"])


async def test_each_element_of_a_list_falls_back_for_itself_and_the_list_says_so(
    database_url: str, tmp_path: Path
) -> None:
    """The list rests on the elements that were made up, and so does what reads it."""
    market = Market([{"mock": {"value": {"item": "none", "cents": 5}}}])
    market.failing = GONE
    each = step("e", "price", args={"item": "${item}"}, for_each="${inputs.items}")
    after = step("a", "double", args={"number": "${e[0].cents}"})
    async with running(database_url, tmp_path, [market.kit]) as agent:
        result = await agent.run(plan=plan(each, after, answer="${a.number}"), inputs={"items": ["x", "y"]})
    assert (result.status, (result.answer or "").splitlines()[0]) == ("done", "10")
    assert [child.mock for child in result.steps[0].children] == [True, True]
    assert (result.steps[0].mock, result.steps[1].mock) == (True, True)
    assert (result.steps[1].degraded or "").startswith("made from e[0], which was answered by a mock")


async def test_a_result_from_the_cache_is_told_and_counts_as_no_call(database_url: str, tmp_path: Path) -> None:
    """Who reads the run sees that nothing was called for this step, and how old its result is."""
    market = Market([], cache_ttl_s=60)
    async with running(database_url, tmp_path, [market.kit]) as agent:
        first = await agent.run(plan=plan(PRICE))
        second = await agent.run(plan=plan(PRICE))
    assert (first.usage.attempts, first.usage.cached, first.steps[0].kept_s) == (1, 0, None)
    assert (second.usage.attempts, second.usage.cached, market.calls["price"]) == (0, 1, 1)
    assert second.steps[0].kept_s is not None
    assert second.steps[0].degraded is None
