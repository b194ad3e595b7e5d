"""What a client of the graph sends beside goals and answers: it changes nothing, and what waits goes on waiting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command, StateUpdate

from graph.gateway import Agent
from graph.result import RunResult
from nodes.state import Drafted, Planning
from plans.decisions import Approve
from plans.errors import InvalidInput, NotPermitted
from plans.plan import PlanDraft
from tests.nodes.test_approve import Office
from tests.running import plan, running, step

EVIL = PlanDraft.model_validate(plan(step("a", "send", args={"text": "evil"}, risk="low")))
YES = {"decisions": [{"type": "approve"}, {"type": "approve"}]}
COMMANDS: list[dict[str, Any]] = [
    *(
        {"goto": node}
        for node in ("plan", "validate", "dispatch", "execute", "observe", "fallback", "replan", "finish")
    ),
    {"goto": ["execute", "approve"], "resume": YES},
    {"update": {"drafted": Drafted(draft=EVIL)}, "goto": "validate"},
    {"update": {"drafted": {"draft": EVIL.model_dump(mode="json")}}, "resume": YES},
    {"update": {"approvals": []}, "resume": {"decisions": []}},
    {"update": {"run": {"run_id": "another"}}, "resume": YES},
    {"update": {"status": "done", "edge": "approved"}},
    {"update": [("edge", "approved")], "goto": "dispatch"},
]
UPDATES: list[tuple[str | None, dict[str, Any]]] = [
    ("approve", {"edge": "approved"}),
    ("approve", {"edge": "edited", "drafted": Drafted(draft=EVIL)}),
    ("observe", {"edge": "finish"}),
    ("observe", {"edge": "global_replan", "planning": Planning(purpose="global", trigger="x#1", instruction="evil")}),
    ("finish", {"status": "done"}),
    (None, {"approvals": []}),
]


@pytest.mark.parametrize(
    ("context", "kind", "says"),
    [
        ({"role": "admin"}, NotPermitted, "cannot act as 'admin'"),
        ({"approve": "all"}, InvalidInput, "cannot be said there: approve. It may have `approve` (ask or none)"),
        ({"tenant": "acme", "limits": {"max_steps": "x"}}, InvalidInput, "there: limits.max_steps, tenant. It may"),
    ],
)
async def test_a_context_that_cannot_be_is_told_in_words_that_reach_a_client(
    context: dict[str, Any], kind: type[Exception], says: str, database_url: str, tmp_path: Path
) -> None:
    """A LangGraph server tells the text of a ValueError and hides that of others; nothing of pydantic's is in it."""
    async with running(database_url, tmp_path, [Office().kit]) as agent:
        given: Any = {"plan": plan(step("a", "send", args={"text": "a"}))}
        invoke: Any = agent.graph.ainvoke
        with pytest.raises(kind) as told:
            await invoke(given, {"configurable": {"thread_id": "t"}}, context=context)
    assert isinstance(told.value, ValueError)
    assert says in str(told.value)
    assert "pydantic" not in str(told.value)


async def paused(agent: Agent) -> RunResult:
    """A thread on which two steps wait for a person."""
    waiting = [step(name, "send", args={"text": name}, require_approval=True) for name in ("a", "b")]
    return await agent.run(plan=plan(*waiting), thread_id="t")


async def test_a_client_writes_no_state_goes_to_no_node_and_bypasses_no_question(
    database_url: str, tmp_path: Path
) -> None:
    """Commands that update or go somewhere, answers beside them too, bare resumes and updates of the state: each leaves
    the same interrupt, nothing is sent, and afterwards the thread is answered as if nothing had been."""
    office, config = Office(), {"configurable": {"thread_id": "t"}}
    async with running(database_url, tmp_path, [office.kit]) as agent:
        first = await paused(agent)
        ids = {request.approval_id for request in first.approvals}
        for given in [*COMMANDS, None]:
            told = await agent.graph.ainvoke(None if given is None else Command(**given), config)  # type: ignore[call-overload]
            assert _listed(told) == ids, given
        for node, values in UPDATES:
            with pytest.raises(InvalidUpdateError, match="written by its run alone"):
                await agent.graph.aupdate_state(config, values, as_node=node)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="surestep fork"):
            await agent.graph.abulk_update_state(config, [[StateUpdate(values={"status": "done"})]])  # type: ignore[arg-type]
        assert (office.sent, len(await agent.approvals("t"))) == ([], 2)
        done = await agent.resume("t", decisions={each: Approve() for each in ids})
    assert (done.status, sorted(office.sent)) == ("done", ["a", "b"])


async def test_a_thread_is_gone_on_with_from_where_it_is(database_url: str, tmp_path: Path) -> None:
    """Every older checkpoint of a thread that waits leads to the question that waits now; an answer that names one
    decides nothing, and one that names the newest does."""
    office = Office()
    async with running(database_url, tmp_path, [office.kit]) as agent:
        first = step("a", "send", args={"text": "a"}, require_approval=True)
        second = step("b", "send", "a", args={"text": "b"}, require_approval=True)
        asked = await agent.run(plan=plan(first, second), thread_id="t")
        await agent.resume("t", decisions={asked.approvals[0].approval_id: Approve()})
        waits = {request.approval_id for request in await agent.approvals("t")}
        config: Any = {"configurable": {"thread_id": "t"}}
        places = [snapshot.config async for snapshot in agent.graph.aget_state_history(config)]
        yes: Any = Command(resume={"decisions": [{"type": "approve"}]})
        for place in places[1:]:
            assert _listed(await agent.graph.ainvoke(None, place)) == waits
            assert _listed(await agent.graph.ainvoke(yes, place)) == waits
        assert (len(places) > 8, office.sent) == (True, ["a"])
        done = await agent.graph.ainvoke(yes, (await agent.graph.aget_state(config)).config)
    assert (done["status"], office.sent) == ("done", ["a", "b"])


def _listed(told: Mapping[str, Any]) -> set[str]:
    [interrupt] = told["__interrupt__"]
    return {request["approval_id"] for request in interrupt.value["action_requests"]}
