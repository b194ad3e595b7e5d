"""The library's way to change tools: `agent.tools`, followed by its own process at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from checkpoints.shadow_counts import PostgresShadows
from graph.gateway import Agent
from nodes.events import Event
from plans.errors import InvalidInput, PromotionRefused, UnknownTool
from plans.failure import ToolFailure
from plans.shadowing import AGREED, Agreement
from tests.graph.conftest import OpenAgent
from tests.graph.kits import ONCE, Shop, plan, step
from tools.registry import Toolkit
from tools.shadows import pair_of

ASK = plan(step("s", "price", args={"item": "abc"}))


@pytest.fixture
async def agent(agent_on: OpenAgent) -> Agent:
    """An agent with a small shop, in which `quote` shadows `price`."""
    shop = Shop()

    async def quote(item: str) -> dict[str, int]:
        """Price of an item, asked elsewhere."""
        return {"price": len(item) + 100}

    shop.kit.add(quote, effect="read", retry=ONCE, shadow_of="price")
    opened: Agent = await agent_on([shop.kit])
    return opened


async def answer(agent: Agent) -> Any:
    """What the shop says of the price now, and what is said about the step."""
    result = await agent.run(plan=ASK)
    return (result.answer or "").splitlines()[0], result.steps[0].degraded


async def test_a_tool_switched_off_goes_to_its_fallback_at_once_and_comes_back(agent: Agent) -> None:
    """The process that changes a setting does not wait two seconds for it."""
    assert await answer(agent) == ('{"price": 3}', None)
    changed = await agent.tools.disable("price", by="ann")
    assert (changed.before, changed.after) == ({}, {"enabled": False})
    said, degraded = await answer(agent)
    assert (said, "switched off" in degraded) == ('{"price": 7}', True)
    await agent.tools.enable("price", by="bob")
    assert await answer(agent) == ('{"price": 3}', None)
    history = await agent.tools.history("price")
    assert [(each.changed_by, each.before, each.after) for each in history] == [
        ("bob", {"enabled": False}, {}),
        ("ann", {}, {"enabled": False}),
    ]


async def test_what_failed_again_and_again_is_called_at_once_when_its_tool_is_enabled(
    agent_on: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who has mended what was broken, and says so in this process, waits for no copy to grow old."""
    monkeypatch.setattr("checkpoints.failed_calls.FRESH_S", 60.0)
    kit, mended = Toolkit("shop"), False

    @kit.tool(effect="read", retry=ONCE)
    async def stock(item: str) -> dict[str, int]:
        """How many there are."""
        if not mended:
            raise ToolFailure("NOT_FOUND", f"nobody knows of {item}")
        return {"stock": 2}

    agent: Agent = await agent_on([kit])
    asking = plan(step("s", "stock", args={"item": "abc"}))
    codes = [(await agent.run(plan=asking)).failures[-1].code for _ in range(4)]
    assert codes == [*["NOT_FOUND"] * 3, "REPEATED_FAILURE"]
    mended = True
    assert (await agent.tools.enable("stock")).forgiven == 1
    assert (await agent.run(plan=asking)).answer == '{"stock": 2}'


async def test_enabling_closes_an_open_breaker_and_the_wait_for_it_is_told(agent_on: OpenAgent) -> None:
    """A run that waits for a breaker says so; a person who has mended the tool lets the next call through at once."""
    kit, mended = Toolkit("shop"), False

    @kit.tool(effect="read", repeats=None, retry={"max_attempts": 3, "initial_interval": 0, "jitter": 0})
    async def stock(item: str) -> dict[str, int]:
        """How many there are."""
        if not mended:
            raise ToolFailure("UNAVAILABLE", f"nobody knows of {item}")
        return {"stock": 2}

    agent: Agent = await agent_on([kit])
    said: list[str] = []

    def listen(event: Event) -> None:
        said.append(event.message or "" if event.kind == "notice" else "")
        if "is tried again in" in said[-1]:
            waiting.set()

    waiting = asyncio.Event()
    asking = plan(step("s", "stock", args={"item": "abc"}))
    first = asyncio.create_task(agent.run(plan=asking, on_event=listen))
    await asyncio.wait_for(waiting.wait(), 30)
    first.cancel()
    await asyncio.wait({first})
    assert any("left alone for" in each and "UNAVAILABLE" in each for each in said)
    mended = True
    assert (await agent.tools.enable("stock")).closed
    assert (await agent.run(plan=asking)).answer == '{"stock": 2}'


async def test_settings_are_given_by_name_or_by_group_and_taken_back_one_by_one(agent: Agent) -> None:
    """`retry.max_attempts` and `{"retry": {"max_attempts": …}}` are one setting."""
    await agent.tools.set("price", {"timeout_s": 3, "retry.max_attempts": 2})
    await agent.tools.set("price", {"retry": {"jitter": 0}}, unset=["timeout_s"])
    standing = (await agent.tools.standing())["price"]
    retry = standing.now.tool.spec.retry
    assert (retry.max_attempts, retry.jitter, standing.now.tool.spec.timeout_s) == (2, 0, 8)
    assert set(standing.changed) == {"retry.max_attempts", "retry.jitter"}
    assert standing.changed["retry.jitter"].by == "library"
    await agent.tools.reset("price")
    assert (await agent.tools.standing())["price"].changed == {}


async def test_faults_come_all_at_once_and_change_nothing(agent: Agent) -> None:
    """As an exception with every sentence."""
    with pytest.raises(InvalidInput) as refused:
        await agent.tools.set("send", {"retry.max_attempts": 2, "timeout_s": 0, "nonsense": 1})
    assert str(refused.value).count("\n- ") == 3
    with pytest.raises(UnknownTool, match="did you mean price"):
        await agent.tools.disable("prize")
    with pytest.raises(InvalidInput, match="empty"):
        await agent.tools.disable("price", by="")
    assert await agent.tools.history() == []


async def test_a_candidate_is_promoted_once_it_has_agreed_and_has_to_agree_anew_when_it_was_taken_back(
    agent: Agent,
) -> None:
    """The journal keeps the tool's name and says who has answered; what runs beside then is the former tool."""
    registry = agent.engine.registry
    pair = pair_of(registry["price"], registry.shadows["price"])
    store = PostgresShadows(agent.engine.database)
    with pytest.raises(PromotionRefused, match="agreed 0 times in a row with price, and 3 are needed"):
        await agent.tools.promote("quote", after=3)
    await store.add({pair: AGREED.then(AGREED).then(AGREED)})
    await agent.tools.promote("quote", after=3, by="ann")
    result = await agent.run(plan=ASK)
    assert (result.answer, result.steps[0].tool) == ('{"price": 103}', "price")
    rows = await agent.engine.database.fetch(
        "SELECT body FROM surestep.journal WHERE run_id = %s AND kind = 'outcome'", (result.run_id,)
    )
    assert [row["body"].get("answered_by") for row in rows] == ["quote"]
    while not (found := (await store.counts())[pair]).differed:
        await agent.run(plan=ASK)
    assert found == Agreement(agreed=3, differed=found.differed)
    await store.add({pair: AGREED.then(AGREED).then(AGREED)})
    await agent.tools.demote("quote")
    assert await answer(agent) == ('{"price": 3}', None)
    with pytest.raises(PromotionRefused, match="agreed 0 times in a row"):
        await agent.tools.promote("quote", after=3)
