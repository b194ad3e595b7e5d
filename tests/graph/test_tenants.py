"""Two tenants on one database, through the library: neither sees, changes or learns anything of the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from graph.gateway import Agent
from graph.result import RunResult
from plans.decisions import Approve
from plans.errors import (
    InvalidInput,
    ModelNotConfigured,
    NotPermitted,
    PlanRejected,
    UnknownThread,
    UsageError,
)
from plans.principals import Principal
from tests.graph.conftest import OpenAgent
from tools.registry import Toolkit

ACME = Principal(name="ann", roles=("support",), tenant="acme")
BEST = Principal(name="bob", roles=("support",), tenant="best")
PLAN = {"goal": "tell them", "steps": [{"id": "s1", "tool": "tell", "args": {"text": "hi"}, "reason": "asked for"}]}


def kit() -> tuple[Toolkit, list[str]]:
    """A toolkit with an effect that asks before it happens, and what it has told."""
    told: list[str] = []
    kit = Toolkit("talk")

    @kit.tool(effect="irreversible", risk="high", roles=("support",))
    async def tell(text: str) -> str:
        """Tell somebody."""
        told.append(text)
        return text

    return kit, told


@pytest.fixture
async def both(agent_on: OpenAgent) -> tuple[Agent, Agent, list[str]]:
    """The same agent for a principal of each tenant, and what the tool has told."""
    toolkit, told = kit()
    agent = await agent_on([toolkit])
    return agent.acting_as(ACME), agent.acting_as(BEST), told


async def test_a_thread_is_there_for_its_tenant_only(both: tuple[Agent, Agent, list[str]]) -> None:
    """Looking, deciding, going on, ending, forking and erasing find nothing on another tenant's thread, in the very
    words in which they find nothing where there never was anything."""
    acme, best, told = both
    first = await acme.run(plan=PLAN, thread_id="t1")
    [waiting] = first.approvals
    doors: list[Callable[[str], Awaitable[object]]] = [
        best.show,
        best.drafts,
        best.resume,
        best.cancel,
        best.erase,
        lambda thread: best.decide(thread, "s1", Approve()),
        lambda thread: best.resume(thread, decisions={waiting.approval_id: Approve()}),
        lambda thread: best.fork(thread, "s1"),
        lambda thread: best.output(thread, "sha256-0"),
        lambda thread: best.archive(older_than=0, thread_id=thread),
        best.templates.learn,
    ]
    for door in doors:
        with pytest.raises(UnknownThread) as theirs:
            await door("t1")
        with pytest.raises(UnknownThread) as nobodys:
            await door("t2")
        assert str(theirs.value).replace("t1", "t2") == str(nobodys.value)
    assert told == []
    assert (await acme.resume("t1", decisions={waiting.approval_id: Approve()})).status == "done"
    assert told == ["hi"]


async def test_lists_hold_what_is_the_tenants_own(both: tuple[Agent, Agent, list[str]]) -> None:
    """Runs and approvals are listed for one tenant; a request id is a tenant's own, too."""
    acme, best, _ = both
    mine = await acme.run(plan=PLAN, request_id="q1")
    theirs = await best.run(plan={**PLAN, "goal": "another goal"}, request_id="q1")
    assert mine.run_id != theirs.run_id
    assert [run.goal for run in await acme.runs()] == ["tell them"]
    assert [run.goal for run in await best.runs()] == ["another goal"]
    assert [each.run_id for each in await acme.approvals()] == [mine.run_id]
    assert await best.approvals(mine.thread_id) == []


async def test_a_run_acts_in_a_role_of_its_principal(agent_on: OpenAgent) -> None:
    """A role that one has not cannot be asked for, and a tool of a role is not there without it."""
    toolkit, told = kit()
    agent = await agent_on([toolkit], user="eve", roles=("support", "sales"), tenant="acme")
    with pytest.raises(NotPermitted, match="eve cannot act as 'admin'"):
        await agent.run(plan=PLAN, role="admin")
    with pytest.raises(PlanRejected, match="NOT_PERMITTED: step s1"):
        await agent.run(plan=PLAN, role="sales", approve="all")
    done = await agent.run(plan=PLAN, role="support", approve="all")
    assert (done.status, told) == ("done", ["hi"])


async def test_a_fork_acts_in_the_role_of_its_parent_if_its_maker_has_it(agent_on: OpenAgent) -> None:
    """Nobody gets a role by forking the run of somebody who has it."""
    toolkit, _ = kit()
    agent = (await agent_on([toolkit])).acting_as(ACME)
    await agent.run(plan=PLAN, thread_id="t1", approve="all")
    without = agent.acting_as(Principal(name="eve", tenant="acme"))
    with pytest.raises(NotPermitted, match="eve cannot act as 'support'"):
        await without.fork("t1", "s1")


async def test_only_the_roles_that_the_settings_name_may_start_runs(agent_on: OpenAgent) -> None:
    """`start_roles` is for starting; who may not start may still look and decide."""
    toolkit, _ = kit()
    agent = await agent_on([toolkit], user="ann", roles=("support",), start_roles=("support",))
    waiting = await agent.run(plan=PLAN, thread_id="t1")
    other = agent.acting_as(Principal(name="eve", roles=("audit",)))
    with pytest.raises(NotPermitted, match="eve may not start runs"):
        await other.run(plan=PLAN)
    with pytest.raises(NotPermitted, match="eve may not start runs"):
        await other.fork("t1", "s1")
    assert (await other.show("t1")).run_id == waiting.run_id


async def test_a_thread_id_of_another_tenant_is_refused_and_says_no_more(both: tuple[Agent, Agent, list[str]]) -> None:
    """The first tenant on a thread keeps it, also when its run has ended, is archived or is erased; who comes later
    learns that the id is no use, and nothing of why."""
    acme, best, _ = both
    asked: dict[str, Any] = {"plan": PLAN, "approve": "none"}
    await acme.run(thread_id="open", plan=PLAN)
    for thread in ("over", "archived", "erased"):
        await acme.run(thread_id=thread, **asked)
    await acme.archive(older_than=0, thread_id="archived")
    await acme.erase("erased")
    for thread in ("open", "over", "archived", "erased"):
        with pytest.raises(UsageError) as told:
            await best.run(thread_id=thread, **asked)
        assert str(told.value) == (
            f"the thread id {thread!r} cannot be used here; choose another, or leave it out to get one"
        )
        assert await best.runs() == []
    await best.run(thread_id="theirs", **asked)
    with pytest.raises(UsageError, match="cannot be used here"):
        await best.fork("theirs", "s1", new_thread_id="over")


async def test_two_tenants_that_take_one_thread_at_once_are_not_both_on_it(
    both: tuple[Agent, Agent, list[str]],
) -> None:
    """Of two that begin on the same thread id at the same moment one is refused."""
    acme, best, _ = both
    tries = (agent.run(plan=PLAN, thread_id="t1", approve="none") for agent in (acme, best) for _ in range(2))
    ended = await asyncio.gather(*tries, return_exceptions=True)
    tenants = {agent.principal.tenant for agent in (acme, best) if await agent.runs()}
    assert len(tenants) == 1
    assert sum(isinstance(each, UsageError) for each in ended) >= 2, ended


async def test_kept_results_and_failures_are_a_tenants_own(agent_on: OpenAgent) -> None:
    """The same read with the same arguments is made for each tenant, its kept result answers that tenant only, and
    calls that failed for one are still made for the other."""
    calls: list[str] = []
    toolkit = Toolkit("shop")

    @toolkit.tool(effect="read", cache_ttl_s=60)
    async def secret_of(name: str) -> str:
        """Look it up."""
        calls.append(name)
        return f"secret {len(calls)}"

    @toolkit.tool(effect="read", repeats={"failures": 1, "within_s": 60}, retry={"max_attempts": 1})
    async def broken(name: str) -> str:
        """Fail."""
        calls.append(name)
        raise LookupError(name)

    agent = await agent_on([toolkit])
    acme, best = agent.acting_as(ACME), agent.acting_as(BEST)

    async def asked(who: Agent, tool: str) -> RunResult:
        steps = [{"id": "s1", "tool": tool, "args": {"name": "x"}, "reason": "asked for"}]
        plan = {"goal": "look", "steps": steps, "answer": "${s1}" if tool == "secret_of" else None}
        return await who.run(plan=plan, limits={"max_attempts": 1})

    answers = [(await asked(who, "secret_of")).answer for who in (acme, best, acme, best)]
    assert answers == ["secret 1", "secret 2", "secret 1", "secret 2"]
    codes = [(await asked(who, "broken")).steps[0].failure for who in (acme, acme, best, best)]
    assert [each.code if each else None for each in codes] == ["TOOL_ERROR", "REPEATED_FAILURE"] * 2
    kept = await agent.engine.database.fetch("SELECT split_part(key, '/', 1) AS tenant FROM surestep.tool_cache")
    assert sorted(row["tenant"] for row in kept) == ["acme", "best"]
    await acme.erase((await acme.runs())[0].thread_id)
    failed = await agent.engine.database.fetch("SELECT split_part(key, '/', 1) AS tenant FROM surestep.failed_calls")
    assert [row["tenant"] for row in failed] == ["best"]


async def test_a_template_of_a_tenant_is_none_of_anothers(agent_on: OpenAgent, tmp_path: Path) -> None:
    """What was learned from a tenant's run is written for that tenant, matches its goals, and is unknown elsewhere."""
    toolkit = Toolkit("shop")

    @toolkit.tool(effect="read")
    async def look(text: str) -> str:
        """Look."""
        return text

    steps = [{"id": "s1", "tool": "look", "args": {"text": "hello"}, "reason": "asked for"}]
    plan = {"goal": "look at the greeting hello", "steps": steps}
    first = (await agent_on([toolkit])).acting_as(ACME)
    done = await first.run(plan=plan, approve="all")
    learned = await first.templates.learn(done.thread_id, name="greet")
    assert yaml.safe_load(learned.text)["tenants"] == ["acme"]
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "greet.yaml").write_text(learned.text, "utf-8")
    agent = await agent_on([toolkit], templates=tmp_path / "templates")
    acme, best = agent.acting_as(ACME), agent.acting_as(BEST)
    assert (await acme.run("look at the greeting hello")).status == "done"
    with pytest.raises(ModelNotConfigured):
        await best.run("look at the greeting hello")
    with pytest.raises(InvalidInput) as named:
        await best.run("look at the greeting hello", template="greet")
    with pytest.raises(InvalidInput) as nobodys:
        await best.run("look at the greeting hello", template="greed")
    assert str(named.value).replace("greet'", "greed'") == str(nobodys.value)
    assert "greet" not in [each.name for each in await best.templates.standing()]
    assert "greet" in [each.name for each in await acme.templates.standing()]
