"""Two tenants on one database, through the library: neither sees, changes or learns anything of the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from graph.gateway import Agent
from plans.decisions import Approve
from plans.errors import NotPermitted, PlanRejected, UnknownThread
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
